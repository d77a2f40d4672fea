"""The tasks: each joins forms, data, model, training and search into something to ask for."""
