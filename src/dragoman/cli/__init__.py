"""The command line has verbs over run folders, and the program of all verbs. A verb of one task
is ``tasks/NAME/verb.py``. Heavy imports are inside the verbs."""
