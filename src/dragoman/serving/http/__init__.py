"""The HTTP layer: connections, limits, request bodies, refusals and answers."""
