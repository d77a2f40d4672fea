"""A translator in the browser and behind an API, over runs that people trained themselves."""
