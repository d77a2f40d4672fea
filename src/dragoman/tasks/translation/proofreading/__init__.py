"""Proofreading: finds doubtful translations without a reference."""
