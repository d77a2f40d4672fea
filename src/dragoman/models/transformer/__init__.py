"""The Transformer (``model.py``), and the faster ways to run it."""
