"""The tasks. Each joins forms, data, model, training and search into something that users ask
for."""
