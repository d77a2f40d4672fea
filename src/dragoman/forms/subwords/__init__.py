"""Text <-> subword tokens, as SentencePiece has them."""
