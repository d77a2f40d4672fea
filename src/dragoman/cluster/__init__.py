"""Large inputs in parts, over many processes and machines: each part is committed once.

``files.py`` and ``kinds.py`` find the inputs and cut them; ``stores.py`` reads and writes them.
``plan.py`` describes the parts, and ``work.py`` is the interface between the driver and the
workers. ``driver.py`` gives parts to workers until all are done. ``lines.py`` does a verb's work on
lines, with a ``LineMapper`` that the command line makes.
"""
