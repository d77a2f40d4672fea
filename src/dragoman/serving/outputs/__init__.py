"""What a run has written, as the API tells it: texts, words, tokens, and what is doubtful."""
