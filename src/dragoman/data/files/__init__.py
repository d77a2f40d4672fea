"""Files as people keep them -> examples as they stand."""
