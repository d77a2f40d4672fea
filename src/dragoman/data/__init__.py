"""This package turns files into cleaned pairs, tokens on disk and the examples of each update."""
