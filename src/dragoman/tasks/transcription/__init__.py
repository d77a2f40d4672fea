"""Transcription, which writes the words of recordings."""
