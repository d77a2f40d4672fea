"""Verbs in parts write what they write as one process: the same bytes, and the same digits of a
probability but the last, because lines are computed beside others."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from asked_parts import joined
from command_line import Dragoman
from tiny_treebank import treebank
from untrained_run import untrained_run

from dragoman.forms.tree import Tree
from dragoman.tasks.catalogue import Run

SMALL = ("model.model_dim=32", "model.ffn_dim=32", "search.max_length=12")
pytestmark = [pytest.mark.usefixtures("inline"), pytest.mark.system]

ODD = [
    b"The dog sees the cat.", b"", b"  \t ", b"The cat sleeps. The dog sees it.\r", b"a\xffb \xc3",
    "x\u2028y\x85z".encode(), b"\x00", "Ä \U0001f600".encode(), b" . ", b"the " * 90,
]  # fmt: skip
"""Lines that a file may hold."""


@pytest.fixture(scope="module")
def runs(
    run_of: Callable[..., Run], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """A run for each verb, made when it is asked for."""
    made: dict[str, Path] = {}
    recipes = {
        "translate": "demo", "classify": "demo-labels", "fill": "demo-masked",
        "parse": "demo-trees", "write": "demo-letters",
    }  # fmt: skip

    def run(verb: str) -> Path:
        if verb == "tag":
            return run_of("tagging", "text", "encoder").folder
        if verb not in made:
            folder = tmp_path_factory.mktemp(verb)
            changes = SMALL[: 3 if verb in ("translate", "parse") else 2]
            untrained_run(folder, *changes, recipe_name=recipes[verb])
            made[verb] = folder
        return made[verb]

    return run


def sentences() -> list[bytes]:
    trees: list[Tree] = treebank(12)
    return [" ".join(tree.words).encode() for tree in trees]


def assert_same(found: bytes, expected: bytes) -> None:
    """Numbers with four decimals or more may differ by one in the last."""
    number = re.compile(rb"\d+\.(\d{4,})")
    assert number.sub(b"0", found) == number.sub(b"0", expected)
    for one, other in zip(number.finditer(found), number.finditer(expected), strict=True):
        last = 10.0 ** -min(len(one[1]), len(other[1]), 6)
        assert float(one[0]) == pytest.approx(float(other[0]), abs=1.5 * last, rel=0)


@pytest.mark.parametrize(
    ("verb", "options"),
    [
        ("translate", []),
        ("translate", ["--n-best", "2"]),
        ("translate", ["--scores", "--prefix", "Der"]),
        ("classify", []),
        ("classify", ["--all"]),
        ("tag", []),
        ("tag", ["--json", "--all"]),
        ("tag", ["--format", "tsv"]),
        ("fill", ["--text"]),
        ("fill", ["--json", "--best", "2"]),
        ("parse", []),
        ("parse", ["--draw"]),
        ("parse", ["--n-best", "2", "--scores"]),
    ],
    ids=str,
)
def test_parts_hold_what_one_process_writes(
    verb: str, options: list[str], runs: Callable[[str], Path], dragoman: Dragoman, tmp_path: Path
) -> None:
    lines = {"parse": sentences(), "fill": [b"The ___ sleeps.", b"", b"A ___ sees ___ ."]}.get(verb)
    source, to = tmp_path / "in.txt", tmp_path / "out"
    source.write_bytes(b"".join(line + b"\n" for line in lines or ODD))
    whole = tmp_path / "whole"
    said = dragoman(verb, runs(verb), source, "--to", whole, *options)
    assert said.code == 0, said.err
    said = dragoman(verb, runs(verb), source, "--to", to, *options, "--on", "local", "--lines", "3")
    assert said.code == 0, said.err
    assert len(list(to.glob("part-*"))) > (0 if verb == "fill" else 1)
    assert_same(joined(to), whole.read_bytes())


@pytest.mark.parametrize("options", [[], ["--n-best", "2"], ["--scores"]], ids=str)
def test_what_is_lost_in_all_parts_is_told_as_by_one_process(
    options: list[str], runs: Callable[[str], Path], dragoman: Dragoman, tmp_path: Path
) -> None:
    lines = [f"The dog {{a{n}}} sleeps." if n % 3 else "개가 잠을 잔다." for n in range(10)]
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    ask = ("translate", runs("translate"), tmp_path / "in.txt", *options)
    parts = ("--on", "local", "--lines", "3", "--to", tmp_path / "out")
    alone, together = dragoman(*ask).err, dragoman(*ask, *parts).err
    told = [line for line in alone.splitlines() if " of 10 texts" in line]
    assert len(told) == 2 and "{a1}" in told[0] and "Korean" in told[1], alone
    assert together.splitlines()[-2:] == told, together


@pytest.mark.parametrize("options", [[], ["--tokens"]], ids=str)
def test_scores_of_pairs_are_those_of_one_process(
    options: list[str], runs: Callable[[str], Path], dragoman: Dragoman, tmp_path: Path
) -> None:
    for side in ("en", "de"):
        (tmp_path / side).write_text("".join(f"The dog {k} {side}.\n" for k in range(8)))
    pair = tmp_path / "en", tmp_path / "de"
    whole, to = tmp_path / "whole", tmp_path / "out"
    assert dragoman("score", runs("translate"), *pair, "--to", whole, *options).code == 0
    said = dragoman("score", runs("translate"), *pair, "--to", to, *options, "--on", "local",
                    "--lines", "3")  # fmt: skip
    assert said.code == 0, said.err
    assert joined(to) == whole.read_bytes()


def test_scores_of_texts_are_those_of_one_process_with_a_line_for_each_empty_one(
    runs: Callable[[str], Path], dragoman: Dragoman, tmp_path: Path
) -> None:
    source = tmp_path / "in.txt"
    source.write_text("".join(f"{line}\n" for line in ("Der Hund.", "", "Die Katze sieht ihn.")))
    whole, to = tmp_path / "whole", tmp_path / "out"
    assert dragoman("score", runs("write"), source, "--to", whole).code == 0
    said = dragoman("score", runs("write"), source, "--to", to, "--on", "local", "--lines", "2")
    assert said.code == 0, said.err
    assert joined(to).splitlines()[1] == b""
    assert [line for line in joined(to).splitlines() if line] == whole.read_bytes().splitlines()


def test_json_lines_are_scored_by_two_of_their_fields(
    runs: Callable[[str], Path], dragoman: Dragoman, tmp_path: Path
) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"source": "The dog.", "target": "Der Hund.", "id": 7}\n')
    said = dragoman("score", runs("translate"), source, "--to", tmp_path / "out", "--part", "1/1")
    assert said.code == 0, said.err
    found = json.loads(joined(tmp_path / "out"))
    assert found["id"] == 7 and len(found["score"].split("\t")) == 3


def test_real_processes_write_what_one_process_writes(
    runs: Callable[[str], Path], dragoman: Dragoman, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    for name in ("a", "b"):
        (tmp_path / "in" / name).write_bytes(b"".join(line + b"\n" for line in ODD))
    whole, to = tmp_path / "whole", tmp_path / "out"
    assert dragoman("translate", runs("translate"), tmp_path / "in" / "a", "--to", whole).code == 0
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", "translate", str(runs("translate")),
         str(tmp_path / "in" / "*"), "--to", str(to), "--on", "local:2", "--lines", "5"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "20 lines in 4 parts" in done.stderr and "lines/s" in done.stderr
    assert joined(to) == whole.read_bytes() * 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--on", "local"], "--to FOLDER"),
        (["--on", "mars", "--to", "out"], "--on mars: use local"),
        (["--part", "9/3", "--to", "out"], "--part 9/3"),
        (["--on", "local", "--to", "out", "--lines", "0"], "--lines 0"),
        (["--on", "local", "--to", "out", "--warn"], "--warn does not work with --on"),
        (["--on", "local", "--to", "out", "--field", "a,b"], "--field a,b: give one name"),
        (["--on", "local", "--to", "out", "--into", ""], "give one name"),
        (["--on", "local", "--to", "out", "--set", "beam_size=0"], "beam_size"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_asked_for_wrongly_is_told_and_nothing_is_written(
    arguments: list[str], told: str, runs: Callable[[str], Path], dragoman: Dragoman
) -> None:
    Path("in.txt").write_text("The dog.\n")
    said = dragoman("translate", runs("translate"), "in.txt", *arguments)
    assert said.code != 0 and told in said.err, said.err
    assert "Traceback" not in said.err
    assert not list(Path().glob("out/**/*.json"))


def test_standard_input_has_no_parts(runs: Callable[[str], Path], dragoman: Dragoman) -> None:
    said = dragoman("translate", runs("translate"), "--on", "local", "--to", "out", stdin=b"a\n")
    assert said.code == 1 and "cannot read standard input" in said.err


@pytest.mark.parametrize("verb", ["classify", "tag", "fill", "parse"])
def test_a_run_of_another_task_is_told_before_anything_is_planned(
    verb: str, runs: Callable[[str], Path], dragoman: Dragoman
) -> None:
    Path("in.txt").write_text("The dog.\n")
    options = ["--text"] if verb == "fill" else []
    said = dragoman(
        verb, runs("translate"), "in.txt", *options, "--on", "local", "--to", "out"
    )  # fmt: skip
    assert said.code == 1 and "dragoman translate" in said.err, said.err
    assert not Path("out").exists()


def test_another_run_is_refused(
    runs: Callable[[str], Path], dragoman: Dragoman, tmp_path: Path
) -> None:
    Path("in.txt").write_text("The dog.\n")
    arguments = "in.txt", "--on", "local", "--to", "out"
    assert dragoman("translate", runs("translate"), *arguments).code == 0
    other = untrained_run(tmp_path, *SMALL, "model.dropout=0.2")
    said = dragoman("translate", other, *arguments)
    assert said.code == 1 and "whose results would be different" in said.err
