"""Endpoints that are of no one task: looking inside, figures, and how a run was trained."""
