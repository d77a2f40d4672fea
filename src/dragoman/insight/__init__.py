"""Experiments on a trained run, and figures that show how its model works inside."""
