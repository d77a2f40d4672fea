"""Served runs, the choice among them, and the checks that all endpoints share."""
