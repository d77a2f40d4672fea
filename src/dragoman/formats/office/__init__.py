"""Documents of office programs: archives of XML."""
