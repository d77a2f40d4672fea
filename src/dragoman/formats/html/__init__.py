"""HTML as a browser parses it: text as units, with the tags kept around them."""
