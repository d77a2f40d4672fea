"""Many lines in parts, over many processes and machines: each part is committed once.

``inputs/`` finds and cuts what is worked on, ``stores/`` is where it lies; ``parts/`` has the plan,
and does one part; ``driver.py`` gives parts to workers (``workers.py``) until all stand. What is
done to lines is a ``LineMapper``, which the command line makes for a verb.
"""
