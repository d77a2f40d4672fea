"""Tasks: what joins forms, data, model, training and search into something a user asks for."""
