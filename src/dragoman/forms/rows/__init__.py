"""Sources that are rows of numbers: frames of sound, patches of pictures."""
