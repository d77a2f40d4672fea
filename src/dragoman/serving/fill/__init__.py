"""Filling in: what may stand in the blanks of a text."""
