"""A run folder: its files, its data and its vocabularies."""
