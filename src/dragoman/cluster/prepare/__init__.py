"""The training text of a recipe, prepared in parts: read, cleaned, cut into tokens, stored."""
