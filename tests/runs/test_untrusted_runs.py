"""A run folder from a stranger: whatever its files hold, one line says so, and nothing happens.

Each file that a run may hold is damaged in many ways (bits, lengths, types, sizes) and then given
to all that reads it. Allowed is that it works, or one of the errors of ``base/errors.py``; within a
bounded time, and a memory of four times the file and 64 MB.
"""

from __future__ import annotations

import json
import os
import shutil
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
import torch
from bounded import bounded
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file
from untrained_run import untrained_run

from dragoman.base.errors import DragomanError, RunError, TrainingError
from dragoman.data.store import TokenStore
from dragoman.data.store_writer import WeightedPairs, build_store
from dragoman.forms.form import Pair
from dragoman.forms.lexicon import Lexicon
from dragoman.models.shortlist import Shortlist
from dragoman.native.measured import NAME, microseconds
from dragoman.runs.model import build_model
from dragoman.runs.run import load_shortlist
from dragoman.search.settings import SearchSettings
from dragoman.tasks.catalogue import Run
from dragoman.tasks.report import summarise
from dragoman.tasks.translation.translator import Translator, TranslatorSettings
from dragoman.training.checkpoint import Checkpoints, TrainingState
from dragoman.training.gradients import Splits
from dragoman.training.weights import average_weights, save_weights

SENTENCE = "The dog doesn't eat the apple because it is too old."


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder that holds every file that one may."""
    folder = untrained_run(
        tmp_path_factory.mktemp("whole"),
        "text.vocabulary=400", "model.model_dim=16", "model.ffn_dim=16", "model.encoder_layers=1",
        "model.decoder_layers=1", "model.attention.num_heads=2",
    )  # fmt: skip
    run = Run.open(folder)
    size = run.source_text.size
    every = np.arange(size + 1, dtype=np.int32)
    Shortlist(np.array([0, 2, 5], np.int32), every, every[:-1]).save(
        folder / "shortlist.safetensors", run.weights_hash
    )
    weights = run.model().state_dict()
    checkpoints = Checkpoints(folder / "training")
    checkpoints.save(TrainingState(update=3), weights, {"first": weights, "second": weights})
    checkpoints.snapshot(3, weights, 5)
    (folder / "training" / "splits.jsonl").write_text('{"update": 1, "micro_batch": 0}\n' * 3)
    score = {"value": 12.5, "signature": "nrefs:1"}
    sample = {"source": SENTENCE, "reference": "Der Hund.", "translation": "Der"}
    said = {
        "scores.json": {
            "test": "test", "sentences": 2, "scores": {"BLEU": score}, "prepared_bleu": score,
            "samples": [sample, sample],
        },
        "data.json": {
            "pairs": {"train": 9, "dev": 1}, "overlap": "none",
            "lengths": {"ratio": 1.1, "least": -2.0, "greatest": 2.0},
            "corpora": [{"name": "a", "sha256": "0" * 64, "weight": 1.0}],
            "cleaning": {
                "read": 9, "kept": 8,
                "filters": {"empty": {"count": 1, "first": [
                    {"corpus": "a", "line": 3, "source": "", "target": "b"}
                ]}},
            },
        },
    }  # fmt: skip
    Lexicon.count([SENTENCE] * 9).save(folder / "lexicon.txt")
    for name, content in said.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    update = {
        "kind": "update", "update": 1, "loss": 2.0, "nll": 1.5, "perplexity": 4.4, "tokens": 9,
        "seconds": 0.1, "tokens_per_second": 90.0, "learning_rate": 0.1, "gradient_norm": 1.0,
        "elapsed": 0.1, "skipped": False,
    }  # fmt: skip
    validation = {
        "kind": "validation", "update": 1, "weights": "current", "best": True, "seconds": 0.1,
        "elapsed": 0.2, "scores": {"loss": 2.0, "bleu": 1.0}, "samples": [sample],
    }  # fmt: skip
    lines = [update, validation, update | {"update": 2}]
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (folder / "metrics.jsonl").write_text(text, encoding="utf-8")
    pairs = [Pair(n, "The dog sleeps.", "Der Hund schläft.") for n in range(20)]
    forms = {"source": run.source, "target": run.target}
    build_store([WeightedPairs(pairs)], forms, folder, "store")
    microseconds(folder, {"a": lambda: lambda: None})
    return folder


def translate(folder: Path) -> None:
    for precision in ("auto", "fp32"):
        how = TranslatorSettings(precision=precision)  # type: ignore[arg-type]
        Translator(Run.open(folder), how)(SENTENCE, prefix="Das")


def translate_short(folder: Path) -> None:
    run = Run.open(folder)
    load_shortlist(run)
    Translator(run, TranslatorSettings(precision="int8", shortlist=True))(SENTENCE)


def report(folder: Path) -> None:
    summarise(Run.open(folder))


def proofread(folder: Path) -> None:
    translator = Translator(Run.open(folder), TranslatorSettings(precision="fp32"))
    translator.warnings(translator(SENTENCE, settings=SearchSettings(max_length=9)))


def go_on(folder: Path) -> None:
    Checkpoints(folder / "training").latest()


def average(folder: Path) -> None:
    average_weights([path for _, path in Checkpoints(folder / "training").snapshots()])


def read_text(folder: Path) -> None:
    run = Run.open(folder)
    for text in (SENTENCE, "ﬁne ① ｱ ½ é", "", "x" * 300):
        ids = run.source_text.encode_lists([text])[0]
        run.target_text.decode(ids)
        run.target_text.sample(text, 3)
    run.target_text.decode_batch([[0, 1, 2], list(range(run.target_text.size))])
    run.model()


def read_store(folder: Path) -> None:
    store = TokenStore(folder / "store", {"source": 400, "target": 400})
    for example in range(min(len(store), 30)):
        for ids in (store.tokens("source", example), store.tokens("target", example)):
            assert len(ids) == 0 or 0 <= ids.min() <= ids.max() < 400
        for side in store.lengths:
            store.text(side, example)
    assert store.lengths["source"].min() >= 0


CHECKPOINT = "training/checkpoint-00000003-0"
READERS: dict[str, Callable[[Path], object]] = {
    "recipe.toml": translate,
    "model.safetensors": translate,
    "shared.model": read_text,
    "shortlist.safetensors": translate_short,
    "scores.json": report,
    "data.json": lambda folder: (report(folder), proofread(folder)),
    "lexicon.txt": proofread,
    "metrics.jsonl": report,
    f"{CHECKPOINT}/state.json": go_on,
    f"{CHECKPOINT}/weights.safetensors": go_on,
    f"{CHECKPOINT}/second.safetensors": go_on,
    "training/snapshots/00000003.safetensors": average,
    "training/splits.jsonl": lambda folder: Splits(folder / "training"),
    "store/store.json": read_store,
    "store/source.lengths": read_store,
    "store/00000.target.tokens": read_store,
    "store/00000.target.offsets": read_store,
    "store/00000.source.text-offsets": read_store,
    NAME: lambda folder: microseconds(folder, {"a": lambda: lambda: None}),
}


# ---- how a file is damaged

NASTY: tuple[Any, ...] = (
    None, True, [], {}, "", "x", -1, 0, 1, 2**31, 2**63, 2**64, 10**400, -0.5, 1e308, [1], [[]],
    {"a": 1}, ["x"] * 50, "é" * 500, "\x00", 1e-300, 4_000_000, -(2**31),
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where every value within plain values stands."""
    yield path
    if isinstance(value, dict | list):
        for key, below in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(below, (*path, key))


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


@dataclass(frozen=True)
class Damage:
    """Bytes in, other bytes out."""

    draw: Callable[[Any], Any]

    def __call__(self, name: str, content: bytes) -> bytes:
        way = self.draw(st.sampled_from(["structure", "structure", "bytes", "bytes", "length"]))
        if way == "structure" and (found := self._other_values(name, content)) is not None:
            return found
        if way == "length":
            size = self.draw(st.integers(0, len(content)))
            return content[:size] + self.draw(st.sampled_from([b"", b"\0" * 100, content, b"["]))
        damaged = bytearray(content)
        for _ in range(self.draw(st.integers(1, 4))):
            # What stands first says the most.
            last = self.draw(st.sampled_from([16, 256, len(content)]))
            at = self.draw(st.integers(0, max(0, min(last, len(damaged)) - 1)))
            damaged[at : at + 1] = self.draw(
                st.sampled_from(
                    [b"\xff", b"\0", b"\x80", b"9", b"[", b'"', b"\xff" * 12, b"-", b""]
                )
                | st.binary(min_size=1, max_size=2)
            )
        return bytes(damaged)

    def _other_values(self, name: str, content: bytes) -> bytes | None:
        if name.endswith(".json"):
            return json.dumps(self._change(json.loads(content))).encode()
        if name.endswith(".jsonl"):
            lines = content.splitlines()
            at = self.draw(st.integers(0, len(lines) - 1))
            lines[at] = json.dumps(self._change(json.loads(lines[at]))).encode()
            return b"\n".join(lines) + b"\n"
        if name.endswith(".toml"):
            changed = self._change(tomllib.loads(content.decode()))
            try:
                return tomli_w.dumps(changed).encode()
            except (TypeError, AttributeError, ValueError):  # TOML cannot say it
                return None
        if name.endswith(".safetensors"):
            length = int.from_bytes(content[:8], "little")
            header = json.dumps(self._change(json.loads(content[8 : 8 + length]))).encode()
            return len(header).to_bytes(8, "little") + header + content[8 + length :]
        if name.startswith("store/"):
            size = self.draw(st.sampled_from([2, 4, 8]))
            values = np.frombuffer(content[: len(content) // size * size], f"<i{size}").copy()
            if len(values):
                most = 2 ** (8 * size - 1)
                new = self.draw(st.sampled_from([-1, 0, 1, most - 1, -most, 999]))
                values[self.draw(st.integers(0, len(values) - 1))] = new
            return values.tobytes()
        return None

    def _change(self, value: Any) -> Any:
        path = self.draw(st.sampled_from(list(places(value))))
        return replaced(value, path, self.draw(st.sampled_from(NASTY)))


# ---- what is held to


def hold(whole: Path, name: str, damage: Callable[[Any], Any]) -> None:
    path = whole / name
    content = path.read_bytes()
    damaged = Damage(damage)(name, content)
    path.unlink()  # other inode: what is mapped of the whole one stays as it is
    path.write_bytes(damaged)
    try:
        with bounded(len(damaged)), suppress(DragomanError):
            READERS[name](whole)
    finally:
        path.unlink(missing_ok=True)
        path.write_bytes(content)


@pytest.mark.parametrize(
    ("name", "examples"),
    [
        *((name, 25) for name in READERS),
        # Thousands of damages to each file: minutes.
        *(pytest.param(name, 1500, marks=pytest.mark.slow) for name in READERS),
    ],
)
def test_any_damage_is_an_error_of_ours(whole: Path, name: str, examples: int) -> None:
    READERS[name](whole)

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck), database=None)
    @given(st.data())
    def many(data: st.DataObject) -> None:
        hold(whole, name, data.draw)

    many()


@pytest.mark.parametrize("name", READERS)
def test_a_pipe_in_the_place_of_a_file_keeps_nobody_waiting(whole: Path, name: str) -> None:
    with instead(whole / name, os.mkfifo), bounded(0), suppress(DragomanError):
        READERS[name](whole)


@contextmanager
def instead(path: Path, write: Callable[[Path], object]) -> Iterator[None]:
    """Another file in the place of one, for a while."""
    content = path.read_bytes()
    path.unlink()
    try:
        write(path)
        yield
    finally:
        path.unlink(missing_ok=True)
        path.write_bytes(content)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("always", lambda a: a + 10_000, "unknown tokens"),
        ("always", lambda a: -a, "unknown tokens"),
        ("always", lambda a: a[:0], "end symbol"),
        ("always", lambda a: a[a != 2], "end symbol"),
        ("always", lambda a: a.astype(np.int64), "I64"),
        ("always", lambda a: a[None], "not a list"),
        ("candidates", lambda a: a + 1, "unknown tokens"),
        ("candidates", lambda a: a[:-1], "offsets"),
        ("offsets", lambda a: a[:-1], "source tokens"),
        ("offsets", lambda a: np.maximum(a, 1), "outside of"),
        ("offsets", lambda a: np.minimum(a, a[-1] - 1), "outside of"),
        ("offsets", lambda a: a[::-1].copy(), "offsets"),
        ("offsets", lambda a: a + 1, "offsets"),
        ("offsets", lambda a: np.where(np.arange(len(a)) == 5, 2**30, a).astype(np.int32), "offse"),
        ("offsets", lambda a: np.where(np.arange(len(a)) == 5, -(2**30), a).astype("i4"), "offse"),
        ("offsets", lambda a: a.astype(np.float32), "F32"),
    ],
)
def test_a_shortlist_leads_nowhere_else(
    whole: Path, name: str, change: Callable[[Any], Any], words: str
) -> None:
    run, path = Run.open(whole), whole / "shortlist.safetensors"
    found = load_shortlist(run)
    arrays = {n: getattr(found, n) for n in ("always", "offsets", "candidates")}
    arrays[name] = change(arrays[name])
    written = instead(path, lambda path: save_file(arrays, path, {"key": run.weights_hash}))
    with written, pytest.raises(RunError, match=words):
        load_shortlist(run)


def test_no_file_of_a_run_stays_mapped_and_overwriting_them_harms_nobody(
    whole: Path, tmp_path: Path
) -> None:
    """A mapped file that is cut short in place kills the process with SIGBUS."""
    folder = shutil.copytree(whole, tmp_path / "run")
    how = TranslatorSettings(precision="int8", shortlist=True)
    settings = [None, TranslatorSettings(precision="fp32"), how]
    translators = [Translator(Run.open(folder), one) for one in settings]
    before = [translator(SENTENCE, attention=True).text for translator in translators]
    kept = [Checkpoints(folder / "training").latest(), load_shortlist(Run.open(folder))]
    assert str(folder) not in Path("/proc/self/maps").read_text(encoding="utf-8")
    for path in folder.rglob("*.safetensors"):
        os.truncate(path, 0)
    assert [translator(SENTENCE, attention=True).text for translator in translators] == before
    assert len(kept) == 2


def test_sizes_are_compared_with_the_weights_before_memory_is_taken(whole: Path) -> None:
    path = whole / "recipe.toml"
    values = tomllib.loads(path.read_text(encoding="utf-8"))
    values["model"] |= {"model_dim": 65_536, "ffn_dim": 1_000_000}
    with instead(path, lambda path: path.write_text(tomli_w.dumps(values), encoding="utf-8")):
        with bounded(0), pytest.raises(RunError, match="does not hold the model"):
            Run.open(whole).model()
        run = Run.open(whole)
        with bounded(0), pytest.raises(TrainingError, match="smaller sizes"):
            build_model(run.recipe, run.source_text, run.target_text)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda w: w.fill_(torch.nan), "not finite"),
        (lambda w: w[3, 3].fill_(torch.inf), "not finite"),
        (lambda w: w.fill_(3e38), None),
        (lambda w: w.half(), "F16"),
        (lambda w: w.double(), "F64"),
    ],
)
def test_weights_are_finite_numbers_of_one_type(
    whole: Path, spoil: Callable[[Any], Any], words: str | None
) -> None:
    weights = {
        name: weight.clone() for name, weight in Run.open(whole).model().state_dict().items()
    }
    name = "source_embedding.weight"
    found = spoil(weights[name])
    if found.shape == weights[name].shape:
        weights[name] = found
    with instead(whole / "model.safetensors", lambda path: save_weights(path, weights, {})):
        if words is None:  # finite, but what is computed from them is not: no error, no crash
            translate(whole)
            return
        with pytest.raises(RunError, match=words):
            Run.open(whole).model()
