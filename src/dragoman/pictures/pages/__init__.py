"""Whole pages and cards: the report of a run, the page of all figures, a comparison, and the page
of ``dragoman look``."""
