"""Transcription: what is said in a recording, as OpenAI's clients ask for it."""
