"""What the specs of tasks have in common: each task's own is ``tasks/NAME/spec.py``."""
