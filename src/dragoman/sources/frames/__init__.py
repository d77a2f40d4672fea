"""Recordings, which are read as frames."""
