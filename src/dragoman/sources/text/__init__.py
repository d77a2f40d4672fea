"""Text, which is read as tokens of a vocabulary."""
