"""Between people and a model: how a text, a label or a tree becomes numbers, and back."""
