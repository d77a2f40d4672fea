"""Parsing: the constituency tree of a sentence."""
