"""Masked language models: what stands in a blank."""
