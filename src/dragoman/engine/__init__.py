"""A trained model, made ready for inference: its fastest path, its search, its attention."""
