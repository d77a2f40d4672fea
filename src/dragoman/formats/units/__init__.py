"""The parts that all formats share: units, codes, documents, and their output."""
