"""The programs that are compared, each in a process and an environment of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from choosing import Options
from environments import environment
from peers import Process, ask, begin, end
from translating.works import Work, export

from dragoman.engine.machine import cores

HERE = Path(__file__).resolve().parent


@dataclass
class System:
    """One program, running."""

    name: str
    process: Process
    version: str
    cpu_ms: list[float] = field(default_factory=list)
    """Processor time of a sentence, of each turn."""
    memory_mb: float = 0.0
    outputs: list[Any] = field(default_factory=list)

    def ask(self, job: dict[str, Any]) -> dict[str, Any]:
        return ask(self.process, self.name, job)

    def translate(self, job: dict[str, Any], least: float) -> float:
        """Sentences per second; the work again and again until ``least`` seconds have passed."""
        seconds, busy, count = 0.0, 0.0, 0
        while seconds < least or not count:
            answer = self.ask(job)
            self.memory_mb, self.outputs = answer["memory_mb"], answer["outputs"]
            seconds += answer["seconds"][0]
            busy += answer["seconds"][1]
            count += len(self.outputs)
        self.cpu_ms.append(busy / count * 1e3)
        return count / seconds

    def end(self) -> None:
        end(self.process)


@dataclass(frozen=True)
class Program:
    """One program under one kind of settings, not started yet."""

    name: str
    kind: str
    """ours, shipped (its defaults) or tuned (the fastest of ``options``)."""
    script: str
    python: Callable[[], Path]
    """Of its environment, which is made when first asked for."""
    options: Options
    """What is tried."""
    one_by_one: Options
    """What is tried for single sentences, which know no batches."""
    vocabulary: str = "full"
    native: str | None = None

    def start(self, work: Work) -> System:
        who, arguments = f"{self.name} ({self.kind})", [HERE / self.script, work.folder]
        tuned = self.kind == "tuned"
        running = begin(who, self.python, arguments, is_tuned=tuned, native=self.native)
        return System(self.name, *running)


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


def programs(work: Work, peers: Sequence[str], environments: Environments) -> list[Program]:
    """All that is to be compared on ``work``; ours with the full vocabulary first."""

    def mine() -> Path:
        return Path(sys.executable)

    threads = {"threads": cores()}
    batches = [{"rows": n} for n in (64, 32, 128)]
    int8 = {"precision": "int8"} | threads
    found = [Program("dragoman", "ours", "ours.py", mine, [[int8], batches], [[int8], batches[:1]])]
    if work.has_shortlist:
        short = int8 | {"shortlist": True}
        options, single = [[short], batches], [[short], batches[:1]]
        found.append(Program("dragoman", "ours", "ours.py", mine, options, single, "shortlist"))
    plain = [{"precision": precision} | threads for precision in ("bf16", "fp32")]
    found.append(
        Program(
            "dragoman, no compiler", "ours", "ours.py", mine,
            [plain, [{"rows": n} for n in (64, 128, 256)]], [plain, [{"rows": 64}]], native="off",
        )
    )  # fmt: skip
    for peer in peers:
        export(work, peer)
    if "ctranslate2" in peers:
        python, script = environments.python_of_ctranslate2, "ctranslate2_peer.py"
        shipped: Options = [[{"compute_type": "default"}]]
        found += [
            Program("ctranslate2", "shipped", script, python, shipped, shipped),
            Program("ctranslate2", "tuned", script, python, *_ctranslate2_options()),
        ]
    if "hugging-face" in peers:
        python, script = environments.python_of_hugging_face, "hugging_face_peer.py"
        shipped = [[{"precision": "fp32", "batch": 64} | threads]]
        found += [
            Program("hugging-face", "shipped", script, python, shipped, shipped),
            Program("hugging-face", "tuned", script, python, *_hugging_face_options(threads)),
        ]
    return found


def _ctranslate2_options() -> tuple[Options, Options]:
    """int8 in the ways that its documentation names: workers or threads, sizes of batches."""
    kinds = [{"compute_type": "int8"}, {"compute_type": "int8_float32"}]
    shares = [{"workers": cores(), "threads": 1}, {"workers": 1, "threads": cores()}]
    batches = [{"batch": n, "batch_type": "examples"} for n in (64, 32, 128, 256)]
    batches += [{"batch": n, "batch_type": "tokens"} for n in (1024, 2048, 4096)]
    single = [{"workers": 1, "threads": n} for n in sorted({1, cores()}, reverse=True)]
    return [shares, batches, kinds], [single, kinds]


def _hugging_face_options(threads: dict[str, Any]) -> tuple[Options, Options]:
    """Precision, batches, a cache that grows or one that is laid out once, kinds of attention."""
    kinds = [{"precision": precision} | threads for precision in ("bf16", "fp32")]
    batches = [{"batch": n} for n in (64, 32, 128, 256)]
    caches = [{"cache": "dynamic"}, {"cache": "static"}]
    attention = [{"attention": "sdpa"}, {"attention": "eager"}]
    return [kinds, batches, caches, attention], [kinds, [{"batch": 1}], caches, attention]
