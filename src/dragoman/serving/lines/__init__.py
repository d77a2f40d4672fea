"""Lines of text in pictures: what they say, in the language that a run writes."""
