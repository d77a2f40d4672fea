"""The models: one contract (``interface.py``), and the kinds of models that fulfil it."""
