"""The kinds of inputs: lines of text, JSON Lines, Parquet."""
