"""From the files that a user names to a recipe with a suitable size and schedule."""
