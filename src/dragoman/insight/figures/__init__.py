"""This package computes the figures of the paper and its lectures; ``catalogue.py`` lists them."""
