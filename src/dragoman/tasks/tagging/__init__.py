"""Tagging: one tag for each word."""
