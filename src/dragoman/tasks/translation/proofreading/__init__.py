"""What is doubtful about a translation: a proofreader who knows the model, but no reference."""
