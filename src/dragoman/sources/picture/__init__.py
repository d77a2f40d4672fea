"""Pictures, which are read as patches."""
