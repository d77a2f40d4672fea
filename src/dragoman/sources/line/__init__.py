"""Lines of text as pictures, which are read as columns of pixels."""
