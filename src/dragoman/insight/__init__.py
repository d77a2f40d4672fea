"""This package runs experiments on a trained run and shows its inside as records and figures."""
