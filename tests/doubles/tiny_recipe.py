"""A recipe so small that it trains in seconds. Not a test: tests import it."""

from __future__ import annotations

TINY = (
    "text.vocabulary=600", "model.model_dim=32", "model.ffn_dim=64", "model.encoder_layers=2",
    "model.decoder_layers=2", "model.attention.num_heads=4", "plan.tokens_per_update=512",
    "plan.tokens_per_micro_batch=512", "training.updates=30", "training.validate_every=10",
    "training.schedule.warmup=10", "training.average_last=2", "evaluation.dev_sentences=10",
    "training.schedule.kind=inverse_square_root", "training.schedule.peak=3e-3",
    "training.optimizer.kind=adam",
)  # fmt: skip
"""Changes that make any recipe so small that it trains in seconds, and translates badly."""
