"""Processes that read and write the documents of clients."""
