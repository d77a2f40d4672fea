"""The preparation of a recipe's training text in parts: read, clean, tokenise, store."""
