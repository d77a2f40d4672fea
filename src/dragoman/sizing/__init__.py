"""From the files that a user names to a recipe: a size and a schedule that suit them."""
