"""Tasks as far as they need no torch: words, metrics, forms, checks of a recipe; a file a task."""
