"""This package has the settings, the files and the forms of each kind of source."""
