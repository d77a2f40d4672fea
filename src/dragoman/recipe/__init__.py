"""The recipe: the complete settings of a run, what a task says of them, and those that come with
the package (``shipped``)."""
