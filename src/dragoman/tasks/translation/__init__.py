"""Translation: from one language into another."""
