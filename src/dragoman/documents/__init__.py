"""Documents translated: units out of a file, through a model, and back to where they stood."""
