"""Sentences of the demo's grammar, spoken by a formant synthesiser."""
