"""Translating without torch: the same to the last bit, and torch is not imported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from untrained_run import untrained_run

import dragoman
from dragoman.base.errors import RunError
from dragoman.engine.settings import TranslatorSettings
from dragoman.models.catalogue.fastest import fastest
from dragoman.models.on_torch import OnTorch
from dragoman.models.shortlist import Shortlist
from dragoman.models.transformer.int8_search import Int8Search
from dragoman.native import library, loader, measured
from dragoman.runs.run import SHORTLIST, WEIGHTS
from dragoman.runs.user_cache import cache_folder
from dragoman.search.settings import SamplingSettings, SearchSettings
from dragoman.tasks.catalogue import Run
from dragoman.tasks.translation.result import Translation
from dragoman.tasks.translation.translator import Translator
from dragoman.training.weights import load_weights, save_weights

pytestmark = pytest.mark.skipif(not library.available(), reason="no native library here")

LINES = ["The dog sleeps.", "", "A small man eats the old dinosaur.", "Who sees? I see.", "x" * 90]
WAYS: dict[str, dict[str, Any]] = {
    "greedy": {"beam": 1},
    "beam": {"beam": 4},
    "n-best": {"beam": 4, "n_best": 3},
    "alternatives": {"beam": 2, "n_best": 3, "alternatives": True},
    "constrained": {"beam": 3, "min_length": 5, "no_repeat_ngram": 2},
    "wide": {"beam": 70, "max_length": 5},
}
"""How it is searched: in native code whole, step by step, and with all logits sorted."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = untrained_run(tmp_path_factory.mktemp("run"))
    opened = Run.open(folder)
    size = opened.target_text.size
    few, every = np.arange(150, dtype=np.int32), np.arange(size, dtype=np.int32)
    offsets = np.arange(size + 1, dtype=np.int32)
    Shortlist(few, offsets, every).save(folder / SHORTLIST, opened.weights_hash)
    fastest(opened.model(), remembered=cache_folder())  # the machine is known from here on
    return opened


def by_torch(run: Run, settings: TranslatorSettings | None = None) -> Translator:
    """A translator whose weights torch has read and holds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dragoman.engine.engine.without_torch", lambda *_: None)
        translator = Translator(run, settings)
    assert translator.engine.path.model is not None
    return translator


def said(translation: Translation) -> list[Any]:
    return [
        translation.text,
        translation.ids,
        float(translation.score).hex(),
        [value.hex() for value in translation.token_log_probabilities],
        [said(other) for other in translation.alternatives],
    ]


PROGRAM = """
import sys

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise AssertionError("torch is imported")

sys.meta_path.insert(0, NoTorch())
import json
import dragoman
from dragoman.search.settings import SearchSettings
from dragoman.tasks.translation.translator import TranslatorSettings

folder, lines, ways = json.loads(sys.argv[1])
translator = dragoman.load(folder)

def said(t):
    values = [value.hex() for value in t.token_log_probabilities]
    return [t.text, t.ids, float(t.score).hex(), values, [said(other) for other in t.alternatives]]

found = {}
for name, settings in ways.items():
    found[name] = [said(t) for t in translator.batch(lines, settings=SearchSettings(**settings))]
found["prefix"] = [said(t) for t in translator.batch(lines, prefixes=["Der"] * len(lines))]
short = dragoman.load(folder, TranslatorSettings(shortlist=True))
found["shortlist"] = [said(t) for t in short.batch(lines)]
found["both"] = [said(t) for t in short.batch(lines, prefixes=["Der"] * len(lines))]
print(json.dumps([translator.description, found]))
"""


NOT_READ = """
from dragoman.models.catalogue.packed_models import HeldWeights

def read(*_):
    raise AssertionError("the weights are read")

HeldWeights.read = read
"""


@pytest.mark.parametrize("before", ["", NOT_READ], ids=["packed", "packed before"])
def test_the_same_to_the_last_bit(before: str, run: Run) -> None:
    dragoman.load(run.folder)  # by now they are packed
    given = json.dumps([str(run.folder), LINES, WAYS])
    done = subprocess.run(
        [sys.executable, "-c", before + PROGRAM, given], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    description, found = json.loads(done.stdout)
    plain, short = by_torch(run), by_torch(run, TranslatorSettings(shortlist=True))
    assert description == plain.description

    def expected(translator: Translator, **named: Any) -> Any:
        return json.loads(json.dumps([said(t) for t in translator.batch(LINES, **named)]))

    for name, settings in WAYS.items():
        wanted = expected(plain, settings=SearchSettings(**settings))
        assert found.pop(name) == wanted, name
    prefixes = ["Der"] * len(LINES)
    assert found.pop("prefix") == expected(plain, prefixes=prefixes)
    assert found.pop("shortlist") == expected(short)
    assert found.pop("both") == expected(short, prefixes=prefixes)
    assert not found


VERB = PROGRAM.partition("import json")[0] + "from dragoman.cli.app import main; main()"


def test_the_verb_does_not_wait_for_torch(run: Run) -> None:
    line, folder = LINES[0], str(run.folder)
    done = subprocess.run(
        [sys.executable, "-c", VERB, "translate", folder, line, "-q"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip("\n") == by_torch(run)(line).text


def test_sampling_is_the_same_too(run: Run) -> None:
    """It imports torch, to draw."""
    settings = SearchSettings(n_best=3, sampling=SamplingSettings(seed=3, top_k=9, top_p=0.9))
    one, other = Translator(run), by_torch(run)
    assert one.engine.path.model is None
    found = [said(t) for t in one.batch(LINES, settings=settings)]
    assert found == [said(t) for t in other.batch(LINES, settings=settings)]


def test_the_network_is_opened_when_it_is_asked_for(run: Run) -> None:
    translator = dragoman.load(run.folder)
    assert isinstance(translator.engine.path.searched, Int8Search)
    assert translator.engine.path.model is None
    found = translator("The dog sleeps.", attention=True)
    assert found.attention is not None and found.attention.encoder.size
    assert translator.plain is translator.plain
    (scored,) = translator.score_ids(["The dog sleeps."], [found.ids])
    count = len(found.ids)
    assert scored.token_log_probabilities[:count] == pytest.approx(
        found.token_log_probabilities[:count], abs=0.2
    )


def test_the_network_has_the_weights_that_translate(tmp_path: Path) -> None:
    """A training that goes on puts other weights into the run meanwhile."""
    folder = untrained_run(tmp_path)
    translator = dragoman.load(folder)
    assert translator.engine.path.model is None
    before = load_weights(folder / WEIGHTS).tensors
    save_weights(folder / WEIGHTS, {name: value + 1 for name, value in before.items()}, {})
    for name, value in translator.plain.state_dict().items():
        assert torch.equal(value, before[name])


def test_a_search_through_torch_finds_the_same(run: Run) -> None:
    """``Int8Transformer`` keeps the contract of models; a search goes around its tensors."""
    path = fastest(run.model())
    assert isinstance(path.searched, Int8Search) and path.model is not None
    through, direct = OnTorch(path.model), path.searched
    sources = [np.array([5, 9, 2]), np.array([3, 4, 5, 6, 2])]
    one, other = through.begin(sources), direct.begin(sources)
    tokens = np.ones((2, 1), np.int64)
    for k in (1, 4, 100):
        for mine, theirs in zip(one.best(tokens, k), other.best(tokens, k), strict=True):
            assert np.array_equal(mine, theirs)
        for searching in (one, other):
            searching.select(np.array([1, 0]))
        tokens = np.array([[7], [8]])


# ---- when it needs torch


def is_light(folder: Path, **settings: Any) -> bool:
    translator = dragoman.load(folder, TranslatorSettings.check(**settings))
    return translator.engine.path.model is None


def test_what_is_asked_for_decides(run: Run) -> None:
    assert is_light(run.folder) and is_light(run.folder, precision="int8")
    assert not is_light(run.folder, precision="fp32")
    assert not is_light(run.folder, precision="bf16")


def test_a_machine_that_is_not_known_is_measured_first(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_CACHE", str(tmp_path / "new"))
    assert not is_light(run.folder)
    assert is_light(run.folder)
    # Another library, another processor, kernels that were slower: another machine.
    monkeypatch.setattr(measured, "library_hash", lambda _: "another")
    assert not is_light(run.folder)
    assert is_light(run.folder)
    kept = json.loads((tmp_path / "new" / measured.NAME).read_text(encoding="utf-8"))
    for times in kept.values():
        times |= {name: 10**9 for name in times if name.startswith("int8")}
    (tmp_path / "new" / measured.NAME).write_text(json.dumps(kept), encoding="utf-8")
    assert not is_light(run.folder)


def test_kernels_that_were_refused_are_not_known(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who has refused them has measured plain torch alone, so that no later process trusts them."""
    monkeypatch.setenv("DRAGOMAN_CACHE", str(tmp_path))
    monkeypatch.setattr("dragoman.native.check.first_difference", lambda: "a kernel")
    library.reset()
    try:
        assert not is_light(run.folder)
        assert loader.load()[1].level is None  # refused
        assert not is_light(run.folder)
    finally:
        monkeypatch.undo()
        library.reset()


def test_a_kernel_of_the_decoder_that_differs_is_not_known(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_CACHE", str(tmp_path))
    monkeypatch.setattr("dragoman.models.transformer.int8._agrees", lambda _: False)
    for _ in range(2):
        translator = dragoman.load(run.folder)
        assert not isinstance(translator.engine.path.searched, Int8Search)
    # Another process, which is told to take them, does not take that for a reason to trust them.
    # Where no other way is left, none was measured.
    file = tmp_path / measured.NAME
    kept = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    assert not any(name.startswith("int8") for times in kept.values() for name in times)
    program = PROGRAM.replace("load(folder)", 'load(folder, TranslatorSettings(precision="int8"))')
    given = json.dumps([str(run.folder), LINES, WAYS])
    done = subprocess.run(
        [sys.executable, "-c", program, given], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0 and "torch is imported" in done.stderr


@pytest.mark.parametrize("change", ["shape", "number", "name", "cut"])
def test_weights_that_do_not_fit_are_told_as_ever(change: str, run: Run, tmp_path: Path) -> None:
    folder = untrained_run(tmp_path)
    weights = dict(load_weights(folder / WEIGHTS).tensors)
    name = "encoder.0.feed_forward.inner.weight"
    if change == "shape":
        weights[name] = weights[name][1:]
    elif change == "number":
        weights[name][0, 0] = float("nan")
    elif change == "name":
        weights["other"] = weights.pop(name)
    save_weights(folder / WEIGHTS, weights, {})
    if change == "cut":
        whole = (folder / WEIGHTS).read_bytes()
        (folder / WEIGHTS).write_bytes(whole[:-1])
    with pytest.raises(RunError, match=r"does not hold the model|not finite|cut short"):
        dragoman.load(folder)


HEAVY = (
    "torch", "sacrebleu", "urllib.request", "dragoman.demo.corpus", "dragoman.formats.catalogue",
    "dragoman.pictures.records", "dragoman.tasks.shared.evaluation", "dragoman.cli.train",
)  # fmt: skip
"""Modules that take long to load and that one sentence does not need."""


def test_one_sentence_from_the_shell_loads_only_what_it_needs(run: Run) -> None:
    dragoman.load(run.folder)
    command = ["-X", "importtime", "-m", "dragoman", "translate", str(run.folder)]
    done = subprocess.run(
        [sys.executable, *command], input="The dog sleeps.\n", capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "numpy" in loaded and not loaded.intersection(HEAVY)
