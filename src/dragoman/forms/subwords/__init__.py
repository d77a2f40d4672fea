"""Text <-> subword tokens, by SentencePiece."""
