"""Formats of documents: text between marks that are kept."""
