"""From a model and the batches of its updates to trained weights: exact, resumable, distributed."""
