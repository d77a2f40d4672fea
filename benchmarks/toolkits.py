"""Toolkits with a model, a loss and a training loop of their own, and what each takes to install.

Every one asks for far more than training imports, and most for another torch, so each is installed
without what it asks for, behind the packages that its training loop does import.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from environments import environment

TORCH = f"torch=={torch.__version__.split('+')[0]}"


@dataclass(frozen=True)
class Toolkit:
    """One program of others."""

    script: str
    """Its part in the conversation, in ``training/``."""
    package: str
    imports: tuple[str, ...]
    """What its training loop imports, beside torch."""
    precisions: tuple[str, ...] = ("fp32",)
    """What it trains in on a CPU."""

    def python(self) -> Path:
        """Of an environment that holds it; made when first asked for."""
        name = self.package.partition("==")[0]
        return environment(name, [TORCH, "numpy", *self.imports], [self.package])


TOOLKITS = {
    "joeynmt": Toolkit(
        "joeynmt_peer.py",
        "joeynmt==2.3.0",
        ("importlib_metadata", "matplotlib", "packaging", "pyyaml", "sacrebleu", "sentencepiece",
         "setuptools", "subword-nmt", "tensorboard", "tqdm"),
    ),
}  # fmt: skip
