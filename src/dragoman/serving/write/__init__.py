"""Writing: a text gone on with, its surprises, and what else could have come."""
