"""Language models: a text, token by token."""
