"""What tasks share: examples, validation, and what counts as having learned."""
