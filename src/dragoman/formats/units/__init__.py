"""What every format is made of: units, codes, documents, and how they are written."""
