"""Networks by the kind that a recipe names, and heads over them."""
