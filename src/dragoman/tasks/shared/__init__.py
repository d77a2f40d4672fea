"""The parts that tasks share: examples, validation, evaluation and tests of learning."""
