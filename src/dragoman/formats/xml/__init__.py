"""XML as tokens with their places: all that is not replaced stays byte for byte."""
