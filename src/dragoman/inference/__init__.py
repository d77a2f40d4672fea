"""Which way of this machine runs a model the fastest, and its packed weights."""
