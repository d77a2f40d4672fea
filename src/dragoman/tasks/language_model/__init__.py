"""Language models, which write a text token by token."""
