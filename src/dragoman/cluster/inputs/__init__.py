"""What is worked on: files found by their addresses, cut into parts, and read row by row."""
