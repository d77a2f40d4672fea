"""Codes of pictures: what a painter writes."""
