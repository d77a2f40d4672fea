"""The tasks: each combines forms, data, a model, training and search into something to run."""
