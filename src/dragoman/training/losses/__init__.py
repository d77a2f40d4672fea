"""What a model is trained to do, in numbers."""
