"""Which words of a pair belong together, by statistics: a dictionary, an HMM, symmetrisation."""
