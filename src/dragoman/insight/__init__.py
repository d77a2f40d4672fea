"""Experiments on a trained run: what its inside shows, as records and figures."""
