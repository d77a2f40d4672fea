"""The programs that are compared, each in a process and an environment of its own."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from environments import environment
from peers import Process, ask, begin
from training.toolkits import TOOLKITS

HERE = Path(__file__).resolve().parent
KEEP = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
        "MALLOC_TOP_PAD_": str(64 << 20)}  # fmt: skip


@dataclass
class System:
    """One program under one kind of settings."""

    name: str
    kind: str
    precision: str
    process: Process
    version: str
    rates: list[float] = field(default_factory=list)
    """Tokens per second of each turn."""
    losses: list[float] = field(default_factory=list)
    held_out: float = 0.0
    memory_mb: float = 0.0

    def ask(self, job: dict[str, Any]) -> dict[str, Any]:
        return ask(self.process, f"{self.name} ({self.kind}, {self.precision})", job)

    def take_turn(self, updates: int, count: bool) -> None:
        answer = self.ask({"updates": updates})
        self.losses += answer["loss"]
        self.memory_mb = answer["memory_mb"]
        if count:
            self.rates.append(sum(answer["tokens"]) / sum(answer["seconds"]))


def peer_python(arguments: argparse.Namespace) -> Path:
    """Of the environment that both plain loops run in."""
    wanted = [f"torch=={torch.__version__.split('+')[0]}", "transformers>=5", "sentencepiece"]
    return arguments.peer_python or environment("hugging-face", [*wanted, "numpy"])


def start(
    folder: Path, name: str, kind: str, precision: str, script: str, python: Path, last: str
) -> System:
    """One program, ready."""
    more = KEEP if kind == "tuned" else {}
    if last == "plain":
        more = {"DRAGOMAN_NATIVE": "off"}
    command = [python, HERE / script, folder, precision, last]
    process, version = begin(f"{name} ({kind}, {precision})", command, more)
    return System(name, kind, precision, process, version)


def wanted(arguments: argparse.Namespace, name: str, kind: str, precision: str) -> bool:
    label = f"{name}:{kind}:{precision}"
    return not arguments.only or any(part in label for part in arguments.only)


def systems(arguments: argparse.Namespace, folder: Path) -> list[System]:
    """Ours and the plain loops, started. Environments are made when first asked for."""
    found = []

    def add(
        name: str, kind: str, precision: str, script: str, python: Callable[[], Path], last: str
    ) -> None:
        if wanted(arguments, name, kind, precision):
            found.append(start(folder, name, kind, precision, script, python(), last))

    def mine() -> Path:
        return Path(sys.executable)

    def peer() -> Path:
        return peer_python(arguments)

    for precision in ("bf16", "fp32"):
        add("dragoman", "ours", precision, "ours.py", mine, "auto")
        if arguments.device == "cpu":
            add("dragoman, plain torch", "ours", precision, "ours.py", mine, "plain")
    for kind in ("shipped", "tuned"):
        for precision in ("fp32", "bf16"):
            add("torch.nn.Transformer", kind, precision, "torch_peer.py", peer, kind)
            add("hugging-face-marian", kind, precision, "marian_peer.py", peer, kind)
    return found


def toolkits(arguments: argparse.Namespace, folder: Path, work: str) -> list[System]:
    """Ours in bf16, to compare with, and the toolkits, started; none on a GPU.

    All at the small work; at others those that ``--only`` names.
    """
    parts = [part.partition(":")[0] for part in arguments.only or ()]
    chosen = [
        (name, precision)
        for name, toolkit in TOOLKITS.items()
        for precision in toolkit.precisions
        if arguments.device == "cpu" and wanted(arguments, name, "shipped", precision)
        if work == "train-d256" or any(part and part in name for part in parts)
    ]
    if not chosen:
        return []
    found = [start(folder, "dragoman", "ours", "bf16", "ours.py", Path(sys.executable), "auto")]
    for name, precision in chosen:
        toolkit = TOOLKITS[name]
        python = toolkit.python()
        found.append(start(folder, name, "shipped", precision, toolkit.script, python, "shipped"))
    return found
