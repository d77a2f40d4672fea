"""The queue of searches: one batch for all requests, shared fairly."""
