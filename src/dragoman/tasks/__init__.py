"""The tasks: each combines forms, data, a model, training and search for one purpose."""
