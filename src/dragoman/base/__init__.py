"""The foundation of all other packages: errors, files, and numbers and words for people."""
