"""From files to cleaned pairs, to tokens on disk, to the examples of each update."""
