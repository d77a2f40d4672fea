"""Formats of documents: they translate the text and keep the markup."""
