"""Scores, and whether a difference between two of them is more than luck."""
