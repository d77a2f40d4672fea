"""The engine: a trained model made ready for inference, with its fastest path, search and
attention."""
