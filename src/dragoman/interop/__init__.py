"""Models of other programs, as runs of this one. Each program has a file of its own."""
