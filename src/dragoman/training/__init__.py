"""This package trains a model on the batches of its updates: exact, resumable, distributed."""
