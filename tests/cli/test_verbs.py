"""The verbs as a user calls them: what they print, what they leave behind, what mistakes get."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from command_line import Dragoman
from native_levels import kernels_of
from tiny_recipe import TINY

from dragoman.cli import app
from dragoman.engine import ways
from dragoman.models.catalogue import fastest
from dragoman.tasks.catalogue import Recipe, Run
from dragoman.tasks.report import summarise
from dragoman.tasks.translation.translator import Translator
from dragoman.training.fastest_way import Timing

VERBS = (
    "demo", "data", "train", "resume", "translate", "evaluate", "score", "compare", "average",
    "shortlist", "doctor", "serve", "look", "figure", "lesson", "write", "align", "sweep", "ablate",
    "classify", "fill", "parse", "tag", "transcribe", "detect", "paint", "prepare", "import",
    "export", "distil",
)  # fmt: skip
SET = [argument for change in TINY for argument in ("--set", change)]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(dragoman: Dragoman, verb: str) -> None:
    said = dragoman(verb, "--help")
    assert said.code == 0
    assert "Usage: dragoman" in said.out
    assert len(said.out) > 200


def test_no_verb_and_a_wrong_one(dragoman: Dragoman) -> None:
    assert "train" in dragoman().out
    for wrong, right in (("trian", "train"), ("evalute", "evaluate"), ("serv", "serve")):
        said = dragoman(wrong)
        assert said.code == 2
        assert f"'{wrong}'" in said.err and f"'{right}'" in said.err


def test_help_shows_each_verb_once_in_the_panel_of_its_use(dragoman: Dragoman) -> None:
    panels: dict[str, list[str]] = {}
    for line in dragoman("--help").out.splitlines():
        if re.fullmatch(r"[A-Z][\w ]+:", line):
            panel = panels.setdefault(line, [])
        elif found := re.match(r"  ([a-z]+) +[A-Z]", line):
            panel.append(found[1])
    panels.pop("Options:")
    assert "Commands:" not in panels and len(panels) >= 4
    assert sorted(verb for verbs in panels.values() for verb in verbs) == sorted(VERBS)
    assert panels["Look inside:"] == ["look", "figure", "lesson"]


@pytest.mark.system
def test_two_files_become_a_translator(
    dragoman: Dragoman, parallel_text: tuple[Path, Path], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    said = dragoman("train", *parallel_text, "--to", run, *SET)
    assert said.code == 0, said.err
    assert "546 pairs to train on, 21 dev, 33 test\n" in said.out
    assert "target tokens/s" in said.out
    assert "memory about" in said.out
    assert "BLEU" in said.out
    assert "report.html" in said.out
    for name in (
        "recipe.toml", "model.safetensors", "shared.model", "metrics.jsonl", "report.html",
        "card.md", "scores.json", "data.json", "lexicon.txt",
    ):  # fmt: skip
        assert (run / name).stat().st_size > 0, name
    assert "Where it looked" in (run / "report.html").read_text(encoding="utf-8")
    recipe = (run / "recipe.toml").read_text(encoding="utf-8")
    assert 'source = "en"' in recipe
    assert 'target = "de"' in recipe
    assert "updates = 30" in recipe
    updates = [
        json.loads(line)
        for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert [r["update"] for r in updates if r["kind"] == "update"] == list(range(1, 31))
    assert [r["update"] for r in updates if r["kind"] == "validation"][:3] == [10, 20, 30]

    again = dragoman("train", *parallel_text, "--to", run, *SET)
    assert again.code == 1
    assert f"dragoman resume {run}" in again.err


@pytest.mark.slow  # it trains for the shortest time that may be asked for
def test_minutes_become_updates_in_the_recipe(
    dragoman: Dragoman, parallel_text: tuple[Path, Path], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    never = ("--set", "training.updates=999999")
    said = dragoman("train", *parallel_text, "--to", run, "--minutes", "0.05", *SET, *never)
    assert said.code == 0, said.err
    training = Recipe.load(run / "recipe.toml").training
    assert training.minutes == 0.05 and 1 <= training.updates < 100_000


def test_fine_tuning_keeps_vocabulary_and_begins_where_the_other_ended(
    dragoman: Dragoman, parallel_text: tuple[Path, Path], tiny_run: Path, tmp_path: Path
) -> None:
    run = tmp_path / "tuned"
    said = dragoman(
        "train", *parallel_text, "--from", tiny_run, "--to", run, "--set", "training.updates=2",
        "--set", "training.validate_every=1", "--set", "training.schedule.peak=1e-12",
        "--set", "training.schedule.warmup=0", "--set", "training.average_last=0",
    )  # fmt: skip
    assert said.code == 0, said.err
    assert (run / "shared.model").read_bytes() == (tiny_run / "shared.model").read_bytes()
    from safetensors.torch import load_file

    before = load_file(tiny_run / "model.safetensors")
    after = load_file(run / "model.safetensors")
    assert before.keys() == after.keys()
    assert all((before[n] - after[n]).abs().max() < 1e-6 for n in before)


def test_translate_gives_a_line_for_a_line(dragoman: Dragoman, tiny_run: Path) -> None:
    lines = [
        b"The dog sleeps.", b"", b"Windows line\r", b"\xff\xfe broken", b"nul\x00", "🦄".encode(),
        b"two\x0bkinds\x0cof\xe2\x80\xa8breaks", b"no newline at the end",
    ]  # fmt: skip
    said = dragoman(
        "translate", tiny_run, "--beam", "1", "--set", "max_length=10", stdin=b"\n".join(lines)
    )
    assert said.code == 0
    assert said.out.count("\n") == len(lines)
    assert said.out.split("\n")[1] == ""


def test_how_this_machine_computes_is_told_once_and_to_who_asks(
    dragoman: Dragoman, tiny_run: Path
) -> None:
    way = Translator(Run.open(tiny_run)).description
    for verbose in ((), ("-v",)):
        fastest._tell.cache_clear()
        several = [tiny_run] * 3
        said = [
            dragoman("translate", tiny_run, "The dog.", *verbose),
            dragoman("compare", *several, *verbose),
        ]
        assert [one.code for one in said] == [0, 0]
        assert sum(one.err.splitlines().count(way) for one in said) == len(verbose)


def test_what_was_asked_for_and_cannot_be_had_is_told_unasked(
    dragoman: Dragoman, tiny_run: Path
) -> None:
    fastest._tell.cache_clear()
    with kernels_of("off"):
        said = dragoman("translate", tiny_run, "The dog.", "--precision", "int8")
    assert said.code == 0 and "no int8, because" in said.err


def test_translate_options(dragoman: Dragoman, tiny_run: Path) -> None:
    n_best = dragoman("translate", tiny_run, "--n-best", "3", "-q", "The dog sleeps.").out
    assert [line.split("\t")[0] for line in n_best.splitlines()] == ["1", "2", "3"]
    scores = dragoman("translate", tiny_run, "--scores", "-q", "The dog sleeps.").out
    assert float(scores.split("\t")[0]) < 0
    begun = dragoman("translate", tiny_run, "--prefix", "Der Hund", "-q", "The dog.").out
    assert begun.startswith("Der Hund")
    drawn = dragoman("translate", tiny_run, "--temperature", "1", "-q", "The dog sleeps.")
    assert drawn.code == 0, drawn.err
    whole = dragoman("translate", tiny_run, "--paragraphs", "-q", stdin=b"The dog.\n\nThe man.\n")
    assert "\n\n" in whole.out


def test_translate_takes_files_and_text_and_tells_them_apart(
    dragoman: Dragoman, tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written = "The dog sleeps.\r\n\nWho sees the queen?\n"
    Path("in.txt").write_bytes(written.encode())
    Path("in.gz").write_bytes(gzip.compress(written.encode()))
    Path("none.txt").touch()
    ask = ("translate", tiny_run, "--set", "max_length=6", "--beam", "1", "-q")
    expected = dragoman(*ask, stdin=written.encode()).out
    assert expected.count("\n") == 3
    assert dragoman(*ask, "in.txt").out == dragoman(*ask, "in.gz").out == expected
    said = dragoman(*ask, "in.txt", "none.txt", "in.gz", "--to", "out.txt")
    assert (said.code, said.out, said.err) == (0, "", "")
    assert Path("out.txt").read_text(encoding="utf-8") == expected * 2
    assert dragoman(*ask, "in.txt", "--paragraphs").out.count("\n") == 3

    word = dragoman(*ask, "in.txt", "--text").out
    assert word.count("\n") == 1 and word != expected
    said = dragoman(*ask[:-1], "im.txt")
    assert said.code == 1 and "no file im.txt. Did you mean in.txt?" in said.err and not said.out
    assert "no file" not in dragoman(*ask[:-1], "Who sees it?").err

    for wrong, told in (
        (("in.txt", "out.de"), "--to FILE"),
        ((str(tiny_run),), "is a run folder"),
        (("in.txt", "--paragraphs", "--n-best", "2"), "--paragraphs"),
        (("in.txt", "--to", "no/folder/out.txt"), "no/folder/out.txt"),
    ):
        said = dragoman(*ask, *wrong)
        assert said.code == 1 and told in said.err, wrong
    assert not Path("out.de").exists()


def test_translate_loses_no_second_sentence(dragoman: Dragoman, tiny_run: Path) -> None:
    """The run has learned from single sentences: each is translated by itself."""
    ask = ("translate", tiny_run, "--set", "max_length=6", "-q")
    first, second = (dragoman(*ask, text).out.strip() for text in ("The dog.", "The cat."))
    assert dragoman(*ask, "The dog. The cat.").out == f"{first} {second}\n"
    assert dragoman(*ask, "The dog. The cat.", "--whole").out != f"{first} {second}\n"
    begun = dragoman(*ask, "The dog. The cat.", "--paragraphs", "--prefix", "Die Katze").out
    assert begun.startswith("Die Katze") and begun.count("Die Katze") == 1


def test_a_shortlist_is_learned_and_used(
    dragoman: Dragoman, tiny_run: Path, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(tiny_run, tmp_path / "run"))
    refused = dragoman("translate", run, "--shortlist", "The dog sleeps.")
    assert refused.code == 1 and "dragoman shortlist" in refused.err
    said = dragoman("shortlist", run, "--always", "20", "--per-token", "4")
    assert said.code == 0 and "target tokens" in said.out, said.err
    for verb in (("translate", run, "The dog sleeps."), ("evaluate", run, "--beam", "1")):
        fastest._tell.cache_clear()
        said = dragoman(*verb, "--shortlist", "-v")
        assert said.code == 0 and said.out, said.err
        assert "shortlist" in said.err


def test_evaluate_score_and_compare(dragoman: Dragoman, tiny_run: Path, tmp_path: Path) -> None:
    # A copy: evaluating writes scores.json, and other tests share the run.
    tiny_run = Path(shutil.copytree(tiny_run, tmp_path / "run"))
    out = tmp_path / "out.de"
    table = dragoman("evaluate", tiny_run, "--beam", "1", "--output", out)
    assert table.code == 0, table.err
    for name in ("BLEU", "chrF", "chrF++", "TER", "nrefs:1|case:mixed"):
        assert name in table.out
    assert "BLEU over" not in table.out and "Moses" not in table.out
    recipe = Recipe.load(tiny_run / "recipe.toml", ["evaluation.tokenised=true"])
    recipe.save(tiny_run / "recipe.toml")
    figures = json.loads(dragoman("evaluate", tiny_run, "--beam", "1", "--json").out)
    assert figures["sentences"] == len(out.read_text(encoding="utf-8").splitlines())
    assert figures["prepared_bleu"]["signature"].startswith("nrefs:1|case:mixed|eff:no|tok:none")
    assert dragoman("evaluate", tiny_run).code == 0  # by the settings of the run, which is kept
    shown = {score.name for score in summarise(Run.open(tiny_run)).scores}
    assert shown == {"BLEU", "chrF", "chrF++", "TER", "BLEU, lower-cased Moses tokens"}

    (tmp_path / "a.en").write_text("The dog sleeps.\nThe man eats.\n", encoding="utf-8")
    (tmp_path / "a.de").write_text("Der Hund schläft.\nDer Mann isst.\n", encoding="utf-8")
    scored = dragoman("score", tiny_run, tmp_path / "a.en", tmp_path / "a.de", "--tokens")
    assert scored.code == 0, scored.err
    assert len(scored.out.splitlines()) == 2
    assert float(scored.out.split("\t")[0]) < 0
    assert "perplexity" in scored.err

    for test in ("bootstrap", "randomisation"):
        said = dragoman(
            "compare", tiny_run, tmp_path / "a.de", "--source", tmp_path / "a.en", "--reference",
            tmp_path / "a.de", "--test", test, "--samples", "50",
        )  # fmt: skip
        assert said.code == 0, said.err
        assert "100.00" in said.out
    for options, why in (
        ((), "two systems or more: run"),
        (("--test", "luck"), "use bootstrap or"),
    ):
        said = dragoman("compare", tiny_run, *options)
        assert said.code == 1 and why in said.err


def test_average_and_resume(dragoman: Dragoman, tiny_run: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(tiny_run, run)
    said = dragoman("average", run, "--last", "2")
    assert said.code == 0, said.err
    assert "20, 30" in said.out
    said = dragoman("resume", run)
    assert said.code == 0, said.err
    shutil.rmtree(run / "training")
    said = dragoman("average", run)
    assert said.code == 1
    assert "no snapshots" in said.err


def test_data_shows_what_is_there_and_what_is_dropped(
    dragoman: Dragoman, parallel_text: tuple[Path, Path], tmp_path: Path
) -> None:
    source, target = (path.read_text(encoding="utf-8") for path in parallel_text)
    (tmp_path / "my.en").write_text(source + "\nsame\n", encoding="utf-8")
    (tmp_path / "my.de").write_text(target + "nichts\nsame\n", encoding="utf-8")
    said = dragoman("data", "show", tmp_path / "my.en", tmp_path / "my.de")
    assert said.code == 0, said.err
    assert "line 601: '' | 'nichts'" in said.out
    assert "identical" in said.out
    assert "█" in said.out
    figures = json.loads(
        dragoman("data", "show", tmp_path / "my.en", tmp_path / "my.de", "--json").out
    )
    assert figures["cleaning"]["filters"]["empty"]["count"] == 1
    assert figures["source"]["words"] == len(source.split())


@pytest.mark.system
def test_what_ruins_a_corpus_is_said_before_it_is_trained_on(
    dragoman: Dragoman, parallel_text: tuple[Path, Path], tmp_path: Path
) -> None:
    lines = parallel_text[1].read_text("utf-8").splitlines(keepends=True)
    late = tmp_path / "late.de"
    late.write_text("".join([lines[-1], *lines[:-1]]), encoding="utf-8")
    shown = dragoman("data", "show", parallel_text[0], late)
    assert shown.code == 0 and "my.en + late.de: the sides are shifted" in shown.out
    (found,) = json.loads(dragoman("data", "show", parallel_text[0], late, "--json").out)["doubts"]
    assert (found["kind"], found["corpus"]) == ("shifted", "my.en + late.de")

    mixed = [line.encode("utf-8" if n % 3 else "latin-1") for n, line in enumerate(lines)]
    (tmp_path / "my.de").write_bytes(b"".join(mixed))
    run = tmp_path / "run"
    dev = ("--dev", *map(str, parallel_text))
    brief = ("--set", "training.updates=1", "--set", "evaluation.samples=1")
    said = dragoman("train", parallel_text[0], tmp_path / "my.de", *dev, "--to", run, *SET, *brief)
    assert said.code == 0, said.err
    warning = said.out.index("warning: my.en + my.de: the target side is not UTF-8")
    assert "read well as ISO-8859-1; the other lines are UTF-8" in said.out
    assert warning < said.out.index("invalid_utf8") < said.out.index("pairs to train on")
    assert said.out.count("warning: my.en + my.de: the") == 1  # the dev text is sound
    notes = json.loads((run / "data.json").read_text(encoding="utf-8"))
    assert [doubt["kind"] for doubt in notes["doubts"]] == ["encoding"]
    assert "What looks wrong" in (run / "report.html").read_text(encoding="utf-8")


def test_examples_that_are_too_few_are_told_before_the_training(
    dragoman: Dragoman, tmp_path: Path
) -> None:
    (tmp_path / "my.en").write_text("The dog sleeps.\n", encoding="utf-8")
    (tmp_path / "my.de").write_text("Der Hund schläft.\n", encoding="utf-8")
    ask = ("train", tmp_path / "my.en", tmp_path / "my.de", "--set", "training.updates=1")
    said = dragoman(*ask, "--to", tmp_path / "run", *SET, "--set", "text.vocabulary=300")
    told = "warning: 1 pair to train on: with this few, a model learns to repeat them"
    assert said.code == 0 and said.out.count(told) == 1, said.err
    tuned = dragoman(*ask, "--from", tmp_path / "run", "--to", tmp_path / "tuned")
    assert tuned.code == 0 and "this few" not in tuned.out, tuned.err


def test_a_file_in_another_encoding_is_refused_with_the_command_that_converts_it(
    dragoman: Dragoman, parallel_text: tuple[Path, Path], tmp_path: Path
) -> None:
    """Cleaning would drop every line with an umlaut, and keep those without."""
    german = tmp_path / "my.de"
    german.write_bytes(parallel_text[1].read_text("utf-8").encode("latin-1"))
    run = tmp_path / "run"
    for verb in (("data", "show"), ("train", "--to", run, *SET)):
        said = dragoman(*verb, parallel_text[0], german)
        assert said.code == 1
        assert f"{german} is not UTF-8; it reads well as ISO-8859-1 (Latin-1)" in said.err
        assert "iconv -f ISO-8859-1 -t UTF-8 < my.de > utf8-my.de" in said.err
    assert not run.exists()


def test_scripts_without_spaces_are_counted_in_characters(
    dragoman: Dragoman, tmp_path: Path
) -> None:
    texts = {"en": "Where do you live?", "zh": "你住在哪里？", "ko": "어디에 사세요?"}
    for code, text in texts.items():
        (tmp_path / f"my.{code}").write_text(f"{text}\n{text}!\n", encoding="utf-8")
    for code, unit, longest in (("zh", "characters", 7), ("ko", "words", 2)):
        said = dragoman("data", "show", tmp_path / "my.en", tmp_path / f"my.{code}", "--json")
        target = json.loads(said.out)["target"]
        assert (target["unit"], target["length_quantiles"]["1.0"]) == (unit, longest)
        assert target["characters"] == 2 * len(texts[code]) + 1
    assert (
        "half have at most 6"
        in dragoman("data", "show", tmp_path / "my.en", tmp_path / "my.zh").out
    )


def test_data_get_refuses_what_is_not_pinned(dragoman: Dragoman, tmp_path: Path) -> None:
    said = dragoman("data", "get", "multi31k")
    assert said.code == 1
    assert "multi30k" in said.err
    said = dragoman("data", "get", "multi30k", "--from", tmp_path, "--to", tmp_path / "here")
    assert said.code == 1
    assert "multi30k" in dragoman("data", "list").out


@pytest.mark.parametrize("ending", ["xls", "ods", "xlsx"])
def test_forms_that_are_not_read_are_told_how_to_become_one(
    dragoman: Dragoman, tmp_path: Path, ending: str
) -> None:
    file = tmp_path / f"my.{ending}"
    file.write_text('"The dog","Der Hund"\n', encoding="utf-8")
    for verb in (("train",), ("data", "show")):
        said = dragoman(*verb, file)
        assert said.code == 1
        assert said.err.startswith(f"error: {file}: .{ending} files cannot be read here")
        assert ".tsv" in said.err and "TOML" not in said.err


def test_unknown_languages_are_asked_for(dragoman: Dragoman, tmp_path: Path) -> None:
    (tmp_path / "my.tsv").write_text("a\ta\n" * 9, encoding="utf-8")
    said = dragoman("train", tmp_path / "my.tsv", "--to", tmp_path / "run")
    assert said.code == 1 and "Set them with --languages SOURCE-TARGET" in said.out
    said = dragoman("train", tmp_path / "my.tsv", "--to", tmp_path / "run", "--languages", "en-de")
    assert "--languages" not in said.out


def test_unknown_languages_are_named_where_the_text_tells(
    dragoman: Dragoman, parallel_text: tuple[Path, Path], tmp_path: Path
) -> None:
    lines = zip(*(path.read_text("utf-8").splitlines() for path in parallel_text), strict=True)
    (tmp_path / "my.tsv").write_text("".join(f"{t}\t{s}\n" for s, t in lines), encoding="utf-8")
    # Nothing is so short, so that it ends before it trains.
    said = dragoman("train", tmp_path / "my.tsv", "--to", tmp_path / "r", "--set=plan.max_source=1")
    assert said.code == 1 and "--languages de-en" in said.out


def test_one_file_of_text_is_not_taken_for_a_recipe(
    dragoman: Dragoman, parallel_text: tuple[Path, Path]
) -> None:
    for verb in (("train",), ("data", "show")):
        said = dragoman(*verb, parallel_text[0])
        assert said.code == 1 and "Give the file of its translations too" in said.err


@pytest.mark.system
@pytest.mark.parametrize("columns", [80, 120])
def test_what_is_said_fits_a_terminal(
    dragoman: Dragoman,
    parallel_text: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    columns: int,
) -> None:
    text = parallel_text[1].read_text("utf-8").splitlines(keepends=True)
    (tmp_path / "late.de").write_text("".join([*text[1:], text[0]]), encoding="utf-8")
    plain = dragoman("data", "show", parallel_text[0], tmp_path / "late.de").out
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("rich.console.Console.is_terminal", True)
    shown = dragoman("data", "show", parallel_text[0], tmp_path / "late.de").out
    assert max(map(len, plain.splitlines())) > columns >= max(map(len, shown.splitlines()))
    assert shown.split() == plain.split()


def test_doctor_names_the_machine(dragoman: Dragoman) -> None:
    out = dragoman("doctor").out
    for word in ("cores", "precision", "native kernels", "torch", "GPU"):
        assert word in out


def test_doctor_measures_every_way(dragoman: Dragoman, monkeypatch: pytest.MonkeyPatch) -> None:
    small = ways.SHAPES[0].model.model_copy(update={"model_dim": 16, "ffn_dim": 16})
    tiny = ways.WayShape("tiny", small, 40, 300)
    monkeypatch.setattr(ways, "SHAPES", (tiny,))
    monkeypatch.setattr("dragoman.training.fastest_way.Timing", partial(Timing, most=0.0))
    monkeypatch.setattr(ways, "_PRODUCT_SECONDS", 0.0)
    training, translating = dragoman("doctor", "--measure").out.split("\n\n")[2:5:2]
    head, *rows = training.splitlines()
    assert head.split()[:5] == ["way", "precision", "threads", "GOP/s", "tokens/s"]
    assert any(row.startswith("plain") for row in rows)
    assert [row for row in rows if "taken: " in row] and len(rows) >= 1
    assert all(int(row.split()[3]) > 0 for row in rows)
    assert "fp32 on plain torch" in translating and translating.count("taken") == 1


# ---- mistakes


def _texts(folder: Path, source: str, target: str) -> list[Path]:
    (folder / "x.en").write_text(source, encoding="utf-8")
    (folder / "x.de").write_text(target, encoding="utf-8")
    return [folder / "x.en", folder / "x.de"]


@pytest.mark.parametrize(
    ("source", "target", "words"),
    [
        ("a\nb\nc\n", "a\nb\n", ["3", "2", "x.en", "x.de"]),
        ("", "", ["x.en", "empty"]),
        ("same\nsame too\n" * 30, "same\nsame too\n" * 30, ["cleaning left no pair", "identical"]),
    ],
    ids=["different line counts", "empty file", "cleaning empties the corpus"],
)
def test_text_that_cannot_be_used(
    dragoman: Dragoman, tmp_path: Path, source: str, target: str, words: list[str]
) -> None:
    run = tmp_path / "run"
    said = dragoman("train", *_texts(tmp_path, source, target), "--to", run)
    assert said.code == 1
    assert said.err.startswith("error: ")
    assert len(said.err.splitlines()) < 40
    for word in words:
        assert word in said.err
    assert not run.exists()


def test_a_missing_file_and_a_vocabulary_that_is_too_large(
    dragoman: Dragoman, parallel_text: tuple[Path, Path], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    said = dragoman("train", tmp_path / "no.en", parallel_text[1], "--to", run)
    assert said.code == 1
    assert "no.en" in said.err
    said = dragoman("train", *parallel_text, "--to", run, "--set", "text.vocabulary=90000")
    assert said.code == 1
    assert "90,000" in said.err
    assert "largest possible" in said.err
    assert not run.exists()


def test_recipes_and_runs_that_are_wrong(
    dragoman: Dragoman, parallel_text: tuple[Path, Path], tmp_path: Path
) -> None:
    said = dragoman("train", *parallel_text, "--set", "model.dropuot=0.1")
    assert said.code == 1
    assert "did you mean 'dropout'" in said.err
    said = dragoman("translate", tmp_path)
    assert said.code == 1
    assert "not a run folder" in said.err
    said = dragoman("train", "transformer-base", "--to", tmp_path / "run")
    assert said.code == 1
    assert "--recipe transformer-base" in said.err
    assert not (tmp_path / "run").exists()


def test_a_reader_that_goes_away_is_no_error(tiny_run: Path) -> None:
    command = f"yes 'The dog.' | head -3 | '{sys.executable}' -m dragoman translate -q '{tiny_run}'"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command} | head -1"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.stdout.count("\n") == 1
    assert "Traceback" not in done.stderr


def test_of_many_processes_the_first_speaks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from dragoman.console.output import say

    for rank in ("0", "1"):
        monkeypatch.setenv("RANK", rank)
        say(f"process {rank}")
    assert capsys.readouterr().out == "process 0\n"


def test_a_run_that_is_there_is_said_before_anything_is_measured(
    dragoman: Dragoman, parallel_text: tuple[Path, Path], tiny_run: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def measure(*_: object) -> None:
        raise AssertionError("seconds of measuring, for nothing")

    monkeypatch.setattr("dragoman.sizing.budget.size_in", measure)
    said = dragoman("train", *parallel_text, "--to", tiny_run, "--minutes", 1)
    assert said.code == 1 and "is already a run" in said.err


@pytest.mark.parametrize("task", ["translation", "language-model"])
def test_a_run_of_the_same_name_is_said_before_anything_is_read(
    dragoman: Dragoman, parallel_text: tuple[Path, Path], tiny_run: Path,
    monkeypatch: pytest.MonkeyPatch, task: str,
) -> None:  # fmt: skip
    """Without --to the folder is named by the files."""
    files = parallel_text if task == "translation" else parallel_text[:1]
    ask = ("train", *files, "--task", task, "--minutes", 1)
    name = "en-de" if task == "translation" else "my"
    shutil.copytree(tiny_run, Path("runs") / name)

    def read(*_: object) -> None:
        raise AssertionError("text is read, for nothing")

    monkeypatch.setattr("dragoman.data.files.corpora._open", read)
    said = dragoman(*ask)
    assert said.code == 1 and f"runs/{name} is already a run" in said.err


def test_ctrl_c_is_the_reason_whatever_fails_while_things_are_tidied_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Python may close a file twice where Ctrl-C comes amid the removal of a folder."""

    def tidied(**_: object) -> None:
        try:
            raise KeyboardInterrupt
        finally:
            os.close(os.dup(0) + 1000)

    monkeypatch.setattr(app, "app", tidied)
    with pytest.raises(SystemExit) as ended:
        app.main()
    assert ended.value.code == 130
