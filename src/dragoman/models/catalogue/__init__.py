"""Networks by the kinds that recipes name, classifiers over them, and the fastest way to run a
model."""
