"""The server's part of the view Look: the attention and the search of one translation, as messages
of the API."""
