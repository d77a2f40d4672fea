"""This package has the recipe, which is the complete settings of a run, the description of a
task, and the recipes that come with the program (``shipped``)."""
