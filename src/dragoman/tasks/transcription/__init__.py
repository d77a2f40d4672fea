"""Transcription: recordings are read, and their words written."""
