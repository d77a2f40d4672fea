"""Checks of a corpus: sides that do not correspond, wrong languages, wrong encodings."""
