"""Pictures as codes."""
