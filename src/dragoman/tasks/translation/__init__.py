"""The task of translation, from one language into another."""
