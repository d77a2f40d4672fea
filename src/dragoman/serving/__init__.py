"""The server: a web page and an API over runs that its operators trained."""
