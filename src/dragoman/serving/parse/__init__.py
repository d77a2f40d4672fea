"""Parsing: the constituency trees of sentences."""
