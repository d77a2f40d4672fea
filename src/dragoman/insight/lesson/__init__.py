"""The lesson: ten steps from text to translation, with the numbers of one run and one sentence."""
