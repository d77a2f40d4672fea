"""The programs that are compared, each in a process and an environment of its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from environments import environment
from peers import Process, ask, begin
from translating.works import Work

HERE = Path(__file__).resolve().parent
CORES = len(os.sched_getaffinity(0))


@dataclass
class System:
    """One program under one kind of settings."""

    name: str
    kind: str
    """ours, shipped (its defaults) or tuned (the best of ``settings``)."""
    settings: list[dict[str, Any]]
    """What is tried; the fastest is measured."""
    process: Process
    version: str
    vocabulary: str = "full"
    slow: bool = False
    """So far behind that it is given a part of the work, once."""
    rates: list[float] = field(default_factory=list)
    """Sentences per second of each round."""
    cpu_ms: list[float] = field(default_factory=list)
    """Processor time of one sentence, likewise."""
    memory_mb: float = 0.0
    outputs: list[Any] = field(default_factory=list)
    chosen: dict[str, Any] = field(default_factory=dict)

    @property
    def precision(self) -> str:
        return str(self.chosen.get("precision", self.chosen.get("compute_type")))

    def ask(self, job: dict[str, Any]) -> dict[str, Any]:
        return ask(self.process, self.name, job)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


@dataclass(frozen=True)
class Environments:
    """Pythons that are there already; made where None."""

    ctranslate2: Path | None
    hugging_face: Path | None

    def python_of_ctranslate2(self) -> Path:
        wanted = ["ctranslate2>=4.8", "numpy", "sentencepiece"]
        return self.ctranslate2 or environment("ctranslate2", wanted)

    def python_of_hugging_face(self) -> Path:
        version = torch.__version__.split("+")[0]
        wanted = [f"torch=={version}", "transformers>=5", "sentencepiece", "numpy"]
        return self.hugging_face or environment("hugging-face", wanted)


def start_systems(
    work: Work, peers: Sequence[str], rows: Sequence[int], environments: Environments
) -> list[System]:
    """All that is to be compared on ``work``; ours with the full vocabulary first."""
    found: list[System] = []

    def add(
        name: str, kind: str, script: str, python: Path | str, settings: list[dict[str, Any]],
        native: str = "auto", **more: Any,
    ) -> None:  # fmt: skip
        command = [python, HERE / script, work.folder]
        process, version = begin(name, command, {"DRAGOMAN_NATIVE": native})
        found.append(System(name, kind, settings, process, version, **more))

    ours = [{"precision": "int8", "threads": CORES, "rows": n} for n in rows]
    add("dragoman", "ours", "ours.py", sys.executable, ours)
    if work.has_shortlist:
        short = [setting | {"shortlist": True} for setting in ours]
        add("dragoman", "ours", "ours.py", sys.executable, short, vocabulary="shortlist")
    plain = [
        {"precision": precision, "threads": CORES, "rows": n}
        for precision in ("bf16", "fp32")
        for n in (64, 128)
    ]
    name = "dragoman, no compiler"
    add(name, "ours", "ours.py", sys.executable, plain, native="off", slow=True)
    if "ctranslate2" in peers:
        python = environments.python_of_ctranslate2()
        script = "ctranslate2_peer.py"
        shipped = [{"compute_type": "default"}]  # fp32: minutes a round where there are no captions
        add("ctranslate2", "shipped", script, python, shipped, slow=work.references is None)
        add("ctranslate2", "tuned", script, python, _ctranslate2_settings())
    if "hugging-face" in peers:
        python = environments.python_of_hugging_face()
        for kind, precisions in (("shipped", ["fp32"]), ("tuned", ["fp32", "bf16"])):
            settings = [{"precision": p, "threads": CORES, "batch": 64} for p in precisions]
            add("hugging-face", kind, "hugging_face_peer.py", python, settings, slow=True)
    return found


def _ctranslate2_settings() -> list[dict[str, Any]]:
    """int8 in the ways that its documentation names: workers or threads, sizes of batches."""
    base = {"compute_type": "int8", "workers": CORES, "threads": 1, "batch": 64}
    base |= {"batch_type": "examples"}
    changes: list[dict[str, Any]] = [
        {},
        {"workers": 1, "threads": CORES},
        {"batch": 32},
        {"batch": 128},
        {"batch": 2048, "batch_type": "tokens"},
        {"compute_type": "int8_float32"},
    ]
    return [base | change for change in changes]
