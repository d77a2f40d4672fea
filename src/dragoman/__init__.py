"""The Transformer of *Attention Is All You Need* as software that people use."""
