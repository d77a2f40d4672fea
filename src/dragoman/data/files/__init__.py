"""This package reads examples from the files of users."""
