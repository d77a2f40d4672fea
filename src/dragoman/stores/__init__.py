"""Stores of inputs and of parts: folders, object stores, and addresses of the web."""
