"""The queue of searches: all requests share its batches, and clients take turns."""
