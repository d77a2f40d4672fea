"""Tagging: a tag for each word of a text."""
