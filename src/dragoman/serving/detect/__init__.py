"""Detection: boxes around what is in pictures."""
