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
    "opennmt-py": Toolkit(
        "opennmt_peer.py",
        "OpenNMT-py==3.5.1",
        ("configargparse", "pyonmttok>=1.37,<2", "pyyaml", "sacrebleu", "six"),
    ),
    "eole": Toolkit(
        "eole_peer.py",
        "eole==0.6.4",
        ("configargparse", "huggingface_hub", "pillow", "pydantic>=2", "pyonmttok>=1.38.1,<2",
         "pyyaml", "rich", "sacrebleu", "safetensors", "six", "tokenizers"),
        ("fp32", "bf16"),
    ),
    "fairseq": Toolkit(
        "fairseq_peer.py",
        "fairseq==0.12.2",
        ("bitarray", "hydra-core==1.3.2", "omegaconf==2.3.0", "regex", "sacrebleu", "setuptools",
         "tqdm", "wheel"),
        ("fp32", "bf16"),
    ),
}  # fmt: skip
