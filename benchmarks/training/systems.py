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
from instructions import kept_to
from peers import Process, ask, begin, end
from training.toolkits import TOOLKITS

from dragoman.native import loader
from dragoman.native.linear import is_supported
from dragoman.native.processor import no_bf16_units

HERE = Path(__file__).resolve().parent


@dataclass
class System:
    """One program, running."""

    label: str
    process: Process
    version: str
    losses: list[float] = field(default_factory=list)
    """Per token, of each update."""
    memory_mb: float = 0.0

    def ask(self, job: dict[str, Any]) -> dict[str, Any]:
        return ask(self.process, self.label, job)

    def train(self, updates: int) -> float:
        """So many updates -> target tokens per second."""
        answer = self.ask({"updates": updates})
        self.losses += answer["loss"]
        self.memory_mb = answer["memory_mb"]
        return float(sum(answer["tokens"]) / sum(answer["seconds"]))

    def end(self) -> None:
        end(self.process)


@dataclass(frozen=True)
class Program:
    """One program under one kind of settings, not started yet."""

    name: str
    kind: str
    """ours, shipped (a plain loop, or a toolkit's own step) or tuned."""
    precision: str
    script: str
    python: Callable[[], Path]
    """Of its environment, which is made when first asked for."""
    last: str
    """What the script is told behind the precision."""
    level: str | None = None
    """The instruction set of our kernels, if not the best that trains in this precision."""

    @property
    def label(self) -> str:
        return f"{self.name}:{self.kind}:{self.precision}"

    def start(self, folder: Path) -> System:
        arguments = [HERE / self.script, folder, self.precision, self.last]
        native = "off" if self.last == "plain" else self.level
        tuned = self.kind == "tuned"
        running = begin(self.label, self.python, arguments, is_tuned=tuned, native=native)
        return System(self.label, *running)


def precisions(device: str) -> tuple[str, ...]:
    """What processor or GPU multiplies itself, the fastest first; bf16 may only be imitated."""
    if device == "cpu":
        able = no_bf16_units(kept_to()) is None
    else:
        able = torch.cuda.is_bf16_supported(including_emulation=False)
    return ("bf16", "fp32") if able else ("fp32",)


def other_levels(precision: str) -> list[str]:
    """The instruction sets of our kernels that train in bf16 here, behind the best one: those whose
    units may be slower. (In fp32 the best one's are never.)"""
    if precision != "bf16":
        return []
    levels = [loader.training_level(level, precision) for level in loader.levels_offered()]
    return [level for level in dict.fromkeys(levels) if level and _multiplies(level, precision)][1:]


def _multiplies(level: str, precision: str) -> bool:
    """True if an instruction set multiplies matrices in this precision. Others use torch."""
    with loader.using(level):
        return is_supported(64, 64, precision)


def peer_python(arguments: argparse.Namespace) -> Path:
    """Of the environment that both plain loops run in."""
    wanted = [f"torch=={torch.__version__.split('+')[0]}", "transformers>=5", "sentencepiece"]
    return arguments.peer_python or environment("hugging-face", [*wanted, "numpy"])


def programs(arguments: argparse.Namespace) -> list[Program]:
    """All that this machine can run; ours first, as ``dragoman train`` runs here."""
    found = []

    def mine() -> Path:
        return Path(sys.executable)

    def peer() -> Path:
        return peer_python(arguments)

    here = precisions(arguments.device)
    for precision in here:
        found.append(Program("dragoman", "ours", precision, "ours.py", mine, "auto"))
        for level in other_levels(precision) if arguments.device == "cpu" else ():
            name = f"dragoman, {level} kernels"
            found.append(Program(name, "ours", precision, "ours.py", mine, "auto", level))
        if arguments.device == "cpu" and is_supported(64, 64, precision):  # else it is the same
            name = "dragoman, plain torch"
            found.append(Program(name, "ours", precision, "ours.py", mine, "plain"))
    for kind in ("shipped", "tuned"):
        for precision in reversed(here):
            for name, script in (
                ("torch.nn.Transformer", "torch_peer.py"),
                ("hugging-face-marian", "marian_peer.py"),
            ):
                found.append(Program(name, kind, precision, script, peer, kind))
    if arguments.device == "cpu":
        for name, toolkit in TOOLKITS.items():
            for precision in toolkit.precisions:
                if precision in here:
                    python, script = toolkit.python, toolkit.script
                    found.append(Program(name, "shipped", precision, script, python, "shipped"))
    return found


def quickest_of_ours(programs: list[Program], folder: Path, turn: int) -> Program:
    """dragoman in the precision that trains fastest on this machine, as ``auto`` chooses it."""
    ours = [program for program in programs if program.name == "dragoman"]
    if len(ours) == 1:
        return ours[0]
    rates: dict[Program, float] = {}
    for program in ours:
        system = program.start(folder)
        try:
            system.train(turn)  # warms up
            rates[program] = system.train(turn)
        finally:
            system.end()
    return max(rates, key=rates.__getitem__)


def wanted(arguments: argparse.Namespace, program: Program, work: str) -> bool:
    """Whether ``--only`` names it; toolkits run at the small work unless they are named."""
    parts = arguments.only or ()
    if program.name in TOOLKITS and work != "train-d256":
        return any(part and part in program.name for part in (p.split(":")[0] for p in parts))
    return not parts or any(part in program.label for part in parts)
