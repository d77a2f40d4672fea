"""Examples are varied in training, by draws that are keyed."""
