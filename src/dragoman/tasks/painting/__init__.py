"""The task of painting: a model reads a caption and writes the codes of a picture."""
