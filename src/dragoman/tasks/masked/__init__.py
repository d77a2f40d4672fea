"""Masked language models, which fill in blanks."""
