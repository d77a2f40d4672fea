"""Training of a model on the batches of its updates: exact, resumable, distributed."""
