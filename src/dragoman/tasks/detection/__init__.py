"""Detection: boxes around what is in a picture."""
