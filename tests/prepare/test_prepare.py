"""Prepared text: the same bytes as a training makes, however many workers there are."""

from __future__ import annotations

import gzip
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from faulty_s3 import BUCKET, s3
from inline_workers import InlineWorkers
from recipe_of_files import recipe_of
from tiny_recipe import TINY
from tiny_tasks import tiny_recipe_of

from dragoman.base.errors import DragomanError
from dragoman.cluster.driver import Command, ProgressConsole
from dragoman.data import store_writer
from dragoman.forms.form import Pair
from dragoman.prepare import command as prepare_command
from dragoman.prepare.data_plan import make_plan
from dragoman.runs import prepare as one_process
from dragoman.runs.corpora import (
    corpora_of,
    learn_vocabularies,
    plain_corpora,
    plain_pairs,
    sides_of_vocabularies,
    training_lines,
)
from dragoman.runs.prepared import recipe_of_prepared
from dragoman.stores import FolderStore, open_store
from dragoman.tasks.catalogue import Recipe, Run

pytestmark = pytest.mark.system

SETTINGS = """
name = "small"
[languages]
source = "en"
target = "de"
[data.split]
dev = 0.05
test = 0.05
[text]
vocabulary = 60
kind = "bpe"
byte_fallback = false
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    """Of three corpora: two files, one packed; one file; with duplicates in and between them, empty
    lines, bytes that are not UTF-8, and a line end of Windows."""
    draw = random.Random(1)
    words = [(a + b, b + a) for a in ("lam", "tor", "sip", "neu") for b in ("ak", "el", "on", "ir")]
    drawn = [draw.choices(words, k=draw.randint(2, 9)) for _ in range(300)]
    pairs = [
        Pair(0, " ".join(a for a, _ in some), " ".join(b for _, b in reversed(some)))
        for some in drawn
    ]
    one, two = pairs[:200], pairs[150:]
    sources = [pair.source for pair in one] + ["", "the same", one[0].source, "bad \udcff"]
    targets = [pair.target for pair in one] + ["leer", "the same", one[0].target, "schlecht"]
    (tmp_path / "a.en").write_bytes(
        b"\xef\xbb\xbf" + "\r\n".join(sources).encode("utf-8", "surrogateescape")
    )
    (tmp_path / "a.de.gz").write_bytes(gzip.compress("\n".join([*targets, ""]).encode()))
    rows = [json.dumps({"source": pair.source, "target": pair.target}) for pair in two]
    (tmp_path / "b.jsonl").write_text("".join(f"{row}\n" for row in rows))
    tabbed = [f"{pair.source}\t{pair.target}" for pair in (*two[:5], *pairs[::7])]
    (tmp_path / "c.tsv").write_text("".join(f"{row}\n" for row in [*tabbed, "Neu und gut\tNew"]))
    files = [("a.en", "a.de.gz", 1.0), ("b.jsonl", None, 2.0), ("c.tsv", None, 0.5)]
    text = SETTINGS
    for source, target, weight in files:
        text += f'[[data.train]]\nsource = "{source}"\nweight = {weight}\n'
        text += f'target = "{target}"\n' if target else ""
    (tmp_path / "small.toml").write_text(text)
    return Recipe.load(tmp_path / "small.toml")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Shards and ranges of hashes so small that there are several; other tests have larger shards
    of the same text in the cache."""
    monkeypatch.setenv("DRAGOMAN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(store_writer, "SHARD_EXAMPLES", 100)
    monkeypatch.setattr("dragoman.prepare.data_plan._OF_PARTITION", 200)


def run(recipe: Recipe, to: Path | str, lines: int = 60, **options: Any) -> str:
    told: list[str] = []
    on, part = options.get("on"), options.get("part")
    given = Command(str(to), on, part, ProgressConsole(told.append, False))
    prepare_command.run(given, recipe, lines)
    return "".join(told)


Made = tuple[dict[str, bytes], one_process.Prepared, Path]


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.fixture
def expected(recipe: Recipe, tmp_path: Path) -> Made:
    return made_by_training(recipe, tmp_path)


def made_by_training(recipe: Recipe, tmp_path: Path) -> Made:
    """What a training makes before its first update."""
    folder = tmp_path / "run"
    folder.mkdir()
    learn_vocabularies(recipe, folder, lambda line: None)
    prepared = one_process.prepare(recipe, folder, lambda line: None)
    return files_in(prepared.train.folder), prepared, folder


def check(to: Path, expected: Made, recipe: Recipe | None = None) -> None:
    """``recipe``: one whose dev and test, as they are read, are not what is learned from."""
    files, prepared, folder = expected
    assert files_in(to / "tokens") == files
    for name in ("source.model", "target.model", "shared.model"):
        if (folder / name).exists():
            assert (to / name).read_bytes() == (folder / name).read_bytes()
    for side in ("dev", "test"):
        rows = [json.loads(line) for line in (to / f"{side}.jsonl").read_text().splitlines()]
        held = getattr(prepared, side) if recipe is None else plain_pairs(recipe, side)
        assert rows == [list(pair) for pair in held]
    assert json.loads((to / "prepared.json").read_text())["key"] == prepared.train.folder.name


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_it_is_what_a_training_makes(
    recipe: Recipe, tmp_path: Path, workers: int, expected: Any,
    inline: Callable[..., InlineWorkers],
) -> None:  # fmt: skip
    inline(workers)
    told = run(recipe, tmp_path / "out")
    check(tmp_path / "out", expected)
    assert len(expected[0]) > 20  # several shards
    assert "prepared already" in run(recipe, tmp_path / "out")
    assert "duplicates" in told


@pytest.mark.parametrize("workers", [1, 3])
def test_text_that_moses_prepares(
    recipe: Recipe, tmp_path: Path, workers: int, inline: Callable[..., InlineWorkers]
) -> None:
    """The store has what Moses makes of it, and the text that was read stands beside it."""
    inline(workers)
    (tmp_path / "b.jsonl").write_text(
        "".join(f'{{"source": "It\'s No. {n}, isn\'t it?", "target": "\u201eNr. {n}\u201c!"}}\n'
                for n in range(90))
    )  # fmt: skip
    moses = recipe.change(["data.moses=true", "text.vocabulary=120"])
    expected = made_by_training(moses, tmp_path)
    run(moses, tmp_path / "out")
    check(tmp_path / "out", expected, moses)
    chosen, _ = recipe_of([str(tmp_path / "out")])
    for read in (corpora_of, plain_corpora):
        for side in ("train", "dev"):
            both = [
                sorted(tuple(pair[1:]) for corpus in read(one, side) for pair in corpus.pairs)
                for one in (moses, chosen)
            ]
            assert both[0] == both[1] and both[0]
    assert any("&apos;" in pair.source for pair in corpora_of(chosen, "train")[0].pairs)


def test_it_is_the_same_where_workers_die(
    recipe: Recipe, tmp_path: Path, expected: Any, inline: Callable[..., InlineWorkers]
) -> None:
    calls = iter(range(10_000))
    workers = inline(2, lambda part: next(calls) % 4 == 3)
    told = run(recipe, tmp_path / "out")
    check(tmp_path / "out", expected)
    assert told.count("a worker was lost") > 5 and len(workers.given) > 25


def test_shares_do_all_together(
    recipe: Recipe, tmp_path: Path, expected: Any, inline: Callable[..., InlineWorkers]
) -> None:
    """Each begins elsewhere; the first one does not wait for another that never comes."""
    run(recipe, tmp_path / "out", part="0/2")
    assert not (tmp_path / "out" / "tokens").exists()
    workers = inline(1)
    run(recipe, tmp_path / "out", part="2/2")
    of_reading = workers.given[3:]
    assert of_reading[:3] == [1, 3, 5]
    check(tmp_path / "out", expected)


@pytest.mark.slow  # it starts many processes
def test_processes_and_a_store_that_is_no_folder(
    recipe: Recipe, tmp_path: Path, expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Processes that are really started."""
    told = run(recipe, tmp_path / "out", on="local:2")
    check(tmp_path / "out", expected)
    assert "to train on" in told


@pytest.mark.slow  # over a store that answers slowly; `make test-cluster` runs it
def test_a_bucket(
    recipe: Recipe, tmp_path: Path, expected: Any, inline: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with s3(monkeypatch):
        run(recipe, f"s3://{BUCKET}/prepared")
        store = open_store(f"s3://{BUCKET}/prepared")
        for name, stat in store.names(""):
            if not name.startswith("_"):
                path = tmp_path / "out" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(store.read(name, 0, stat.size))
        check(tmp_path / "out", expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    "task", ["language-model", "masked", "classification", "tagging", "parsing"]
)
def test_other_tasks(
    task: str, tmp_path: Path, inline: Any, request: pytest.FixtureRequest
) -> None:
    """With texts that stand alone, labels, tags and trees."""
    (tmp_path / "text").mkdir()
    recipe = tiny_recipe_of(task, tmp_path / "text")
    files, prepared, folder = made_by_training(recipe, tmp_path)
    run(recipe, tmp_path / "out", lines=20)
    check(tmp_path / "out", (files, prepared, folder))
    learned = json.loads((tmp_path / "out" / "prepared.json").read_text())["learned"]
    assert learned and all(
        (folder / name).read_bytes() == (tmp_path / "out" / name).read_bytes() for name in learned
    )


def test_vocabularies_are_learned_from_the_lines_of_a_training_whatever_ends_them(
    recipe: Recipe, inline: Callable[..., InlineWorkers], tmp_path: Path
) -> None:
    odd = ["lam\rtor", "sip\u2028neu ak", "el\x85on", "two\nlines", "tor\x0bir\x1c el", "neu\r\nak"]
    with (tmp_path / "b.jsonl").open("a") as file:
        for text in odd:
            file.write(json.dumps({"source": text, "target": text[::-1]}) + "\n")
    run(recipe, tmp_path / "to")
    store, plan = FolderStore(tmp_path / "to"), make_plan(recipe, 60)
    for name, sides in sides_of_vocabularies(recipe).items():
        found = list(prepare_command.training_lines(store, plan, name))
        assert found == list(training_lines(recipe, sides))
        assert "sip\u2028neu ak" in found


@pytest.mark.slow  # it starts many processes
def test_killed_and_begun_again(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: Any
) -> None:
    """The command really run, a worker and then the command killed."""
    monkeypatch.undo()
    expected = request.getfixturevalue("expected")
    to = tmp_path / "out"
    command = [sys.executable, "-m", "dragoman", "prepare", str(tmp_path / "small.toml")]
    command += ["--to", str(to), "--on", "local:2", "--lines", "20"]
    driver = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    read = to / "_dragoman" / "read"
    wait_until(lambda: read.exists() and len(list(read.glob("*.hashes"))) > 1)
    os.kill(children_of(driver.pid)[0], signal.SIGKILL)
    wait_until(lambda: len(list(read.glob("*.hashes"))) > 5)
    driver.kill()
    driver.wait()
    assert not (to / "prepared.json").exists()
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    check(to, expected)


def test_a_training_takes_it_and_learns_the_same(
    recipe: Recipe, tmp_path: Path, expected: Any, inline: Callable[..., InlineWorkers]
) -> None:
    from dragoman.tasks.training import resume, train

    made = [one for one in TINY if not one.startswith("text.")]
    changes = [*made, "training.updates=3", "training.validate_every=2", "training.precision=fp32"]
    run(recipe, tmp_path / "out")
    quiet: dict[str, Any] = {"say": lambda line: None, "display": False, "measure": False}
    train(recipe.change(changes), tmp_path / "plain", **quiet)
    for name in ("a.en", "a.de.gz", "b.jsonl", "c.tsv"):
        (tmp_path / name).unlink()
    chosen, _ = recipe_of([str(tmp_path / "out")], changes=changes)
    train(chosen, tmp_path / "taken", **quiet)
    first, second = (Run.open(tmp_path / name) for name in ("plain", "taken"))
    assert first.weights_hash == second.weights_hash
    for name in ("cleaning", "corpora", "pairs", "overlap"):
        assert first.notes().get(name) == second.notes().get(name)
    longer = (tmp_path / "taken" / "recipe.toml").read_text().replace("updates = 3", "updates = 4")
    (tmp_path / "taken" / "recipe.toml").write_text(longer)
    assert resume(tmp_path / "taken", say=lambda line: None, display=False).update == 4


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("data.cleaning.max_length=50", "section data"),
        ("text.vocabulary=99", "section text"),
        ("languages.source=fr", "section languages"),
    ],
)
def test_settings_of_which_the_tokens_depend_are_refused(
    recipe: Recipe, tmp_path: Path, change: str, said: str, inline: Any
) -> None:
    run(recipe, tmp_path / "out")
    with pytest.raises(DragomanError, match=said):
        recipe_of([str(tmp_path / "out")], changes=[change])
    with pytest.raises(DragomanError, match="--dev"):
        recipe_of([str(tmp_path / "out")], dev=["a", "b"])


def test_a_training_from_what_is_not_whole_tells_what_to_do(
    recipe: Recipe, tmp_path: Path, inline: Any
) -> None:
    """The text is not at hand, from which tokens that were deleted could be made again."""
    from dragoman.tasks.training import train

    out = tmp_path / "out"
    run(recipe, out)
    chosen, _ = recipe_of([str(out)])
    told = (out / "prepared.json").read_bytes()
    (out / "prepared.json").unlink()
    with pytest.raises(DragomanError, match=r"has no prepared text.*or continue"):
        recipe_of([str(out)])
    (out / "prepared.json").write_bytes(told)
    os.truncate(out / "tokens" / "00000.source.tokens", 4)
    again = "prepare the text again, in another folder"
    quiet: dict[str, Any] = {"say": lambda line: None, "display": False, "measure": False}
    with pytest.raises(DragomanError, match=f"damaged; {again}"):
        train(chosen, tmp_path / "taken", **quiet)
    (out / "tokens" / "store.json").unlink()
    with pytest.raises(DragomanError, match=f"is not a store of tokens; {again}"):
        train(chosen, tmp_path / "taken", **quiet)
    assert not (tmp_path / "taken").exists()


def test_what_cannot_be_prepared_is_told(recipe: Recipe, tmp_path: Path, inline: Any) -> None:
    run(recipe, tmp_path / "out", part="0/1")
    with pytest.raises(DragomanError, match="another recipe"):
        run(recipe.change(["seed=7"]), tmp_path / "out")
    with pytest.raises(DragomanError, match="--lines 60"):
        run(recipe, tmp_path / "out", lines=31)
    with pytest.raises(DragomanError, match="no prepared text"):
        recipe_of_prepared(tmp_path / "out", (), Recipe)
    data = recipe.data
    made = data.train[0].model_copy(update={"synthetic": True})
    with pytest.raises(DragomanError, match="monolingual or synthetic text"):
        run(recipe.override(data={"train": (*data.train, made)}), tmp_path / "made")
    (tmp_path / "c.tsv").write_text("changed\tchanged\n")
    with pytest.raises(DragomanError, match=r"c\.tsv has changed"):
        run(recipe, tmp_path / "out")


def test_a_corpus_of_which_cleaning_leaves_nothing_ends_it(
    recipe: Recipe, tmp_path: Path, inline: Any
) -> None:
    (tmp_path / "c.tsv").write_text("same\tsame\n" * 3)
    with pytest.raises(DragomanError, match=r"c\.tsv: cleaning left no pair at all .*identical 4"):
        run(recipe, tmp_path / "out")


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < until, "nothing came"
        time.sleep(0.002)


def children_of(process: int) -> list[int]:
    return [
        int(child)
        for thread in Path(f"/proc/{process}/task").iterdir()
        for child in (thread / "children").read_text().split()
    ]
