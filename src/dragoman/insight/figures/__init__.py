"""Figures like those of the paper and of lectures about it. ``catalogue.py`` lists them."""
