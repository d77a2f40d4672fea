"""Imports what serves each task. Not a test: ``warm_server.py`` has it imported beforehand."""

from dragoman.tasks import program

program.serving_tasks()
