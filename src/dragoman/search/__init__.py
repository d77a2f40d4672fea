"""From a model's scores to outputs: beams, sampling, constraints, one full batch."""
