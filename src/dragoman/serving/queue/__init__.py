"""The queue of searches: the batches that all requests share, and the turns of clients."""
