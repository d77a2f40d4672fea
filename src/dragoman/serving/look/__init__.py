"""Looking inside: one translation's heads and steps, the figures of a run, and its curves."""
