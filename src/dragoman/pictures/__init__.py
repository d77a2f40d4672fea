"""Plain records in; SVG, PNG, HTML and terminal text out. No torch, nothing of the layers above."""
