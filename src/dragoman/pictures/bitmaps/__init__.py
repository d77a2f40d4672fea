"""Arrays of pixels as PNG, in SVG and in a terminal."""
