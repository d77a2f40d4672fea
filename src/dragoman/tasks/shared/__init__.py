"""The parts that tasks share: examples, validation, evaluation, and checks of what a run has
learned."""
