"""``python -m dragoman`` is ``dragoman``."""

from dragoman.cli.app import main

main()
