"""This package has what commands share: options, output for people, and work on lines."""
