"""Translating for many at once: whose turn it is, HTML around a text, and the two interfaces."""
