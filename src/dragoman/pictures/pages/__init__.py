"""Whole pages and cards: the report of a run, the book of figures, a comparison, a look."""
