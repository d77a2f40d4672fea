"""This package reads lines of text in pictures as columns of pixels."""
