"""What is read: the settings of each kind of source, its files and what a model gets of them."""
