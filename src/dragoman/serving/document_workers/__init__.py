"""Documents of clients, read and written in processes of their own."""
