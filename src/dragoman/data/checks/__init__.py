"""What looks wrong with a corpus: sides that do not correspond, languages, encodings."""
