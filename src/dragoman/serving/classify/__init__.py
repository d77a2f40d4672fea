"""Classification: the label of a text, and what its words have to do with it."""
