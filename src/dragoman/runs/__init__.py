"""A run: its recipe (``recipe/``), its folder, its data and its vocabularies."""
