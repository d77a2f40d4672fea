"""This package reads pictures as patches."""
