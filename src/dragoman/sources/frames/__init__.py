"""This package reads recordings as frames."""
