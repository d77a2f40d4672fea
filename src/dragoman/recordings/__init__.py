"""Recordings of any length: where they are cut, and what is written of what is said in them."""
