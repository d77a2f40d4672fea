"""HTML as a browser reads it: its text in translatable units, its tags around them."""
