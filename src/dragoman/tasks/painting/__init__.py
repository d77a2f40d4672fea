"""Painting: a caption is read, and the codes of a picture are written."""
