"""The models: one contract, and each kind that meets it."""
