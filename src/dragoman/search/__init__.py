"""Search for the outputs of a model: beams, sampling, constraints, and one batch that is kept
full."""
