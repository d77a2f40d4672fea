"""Many lines in parts, over many processes and machines: each part is committed once.

``files.py``, ``rows.py`` and ``kinds.py`` find and cut what is worked on; ``stores/`` is where it
lies. ``plan.py`` says what the parts are, and ``work.py`` what the driver and the workers know of
them. ``driver.py`` gives parts to workers (``workers.py``) until all stand. ``lines.py`` does what
a verb does to lines, with a ``LineMapper`` that the command line makes; ``prepare/`` prepares the
training text of a recipe.
"""
