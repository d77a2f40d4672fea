"""Experiments on a trained run, and records and figures that show its inside."""
