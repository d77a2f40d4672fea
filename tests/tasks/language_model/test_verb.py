"""The verbs of a language model, as they are typed; and what is said of text that is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Dragoman
from untrained_run import untrained_run

from dragoman.demo.corpus import demo_corpus
from dragoman.forms.subwords.vocabulary_learning import learn_vocabulary
from dragoman.forms.text_form import TextForm
from dragoman.runs.corpora import plain_pairs
from dragoman.tasks.catalogue import Run
from dragoman.tasks.shared.surprisal import Scorer, SurprisalWord, colour_words, words_of

SMALL = ("model.model_dim=16", "model.ffn_dim=16", "model.layers=1", "plan.context=32")


@pytest.fixture(scope="module")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A language model of random weights."""
    return untrained_run(tmp_path_factory.mktemp("lm"), *SMALL, recipe_name="demo-letters")


def test_texts_are_scored_token_by_token(letters: Path, dragoman: Dragoman, tmp_path: Path) -> None:
    texts = ["Der Hund schläft.", "Die Katze sieht den alten Hund, und der Hund sieht sie."]
    path = tmp_path / "texts.txt"
    path.write_text("\n\n".join(texts) + "\n", encoding="utf-8")  # a text a line; one is empty
    said = dragoman("score", letters, path, "--tokens")
    assert said.code == 0 and len(said.out.splitlines()) == 2, said.err
    total, count = 0.0, 0
    for line in said.out.splitlines():
        nats, tokens, _, every = line.split("\t")
        costs = [float(one.rpartition(":")[2]) for one in every.split(" ")]
        assert len(costs) == int(tokens) and sum(costs) == pytest.approx(float(nats), abs=0.05)
        total, count = total + float(nats), count + int(tokens)
    assert f"over {count} tokens" in said.err
    evaluated = dragoman("evaluate", letters, path, "--json", "--set", "stride=16")
    perplexity = json.loads(evaluated.out)["scores"]["perplexity"]["value"]
    assert f"perplexity {perplexity:.3f}" in said.err
    words = dragoman("score", letters, path, "--words")
    assert words.out.count("[") == len(" ".join(texts).split()) + 2  # and two ends
    assert words.out.startswith("Der[")
    for wrong, message in (
        ((path, path), "it scores one file"),
        ((tmp_path / "none.txt",), "does not exist"),
    ):
        refused = dragoman("score", letters, *wrong)
        assert refused.code == 1 and message in refused.err


def test_words_hold_the_whole_text_and_all_its_bits(letters: Path) -> None:
    run = Run.open(letters)
    scorer = Scorer(run, 32, 16)
    text = "Der Hund  schläft. Ein €-Zeichen."
    (found,) = scorer([text])
    end = found.words[-1]
    known = run.target_text.text_as_read(text)
    assert "".join(w.before + w.text for w in found.words[:-1]).replace("<unk>", "€-") == known
    bits = sum(word.bits for word in found.words)
    assert bits == pytest.approx(-found.log_probability / 0.6931471805599453)
    assert end.text == "</s>" and [w.text for w in found.words[:2]] == ["Der", "Hund"]


def test_line_ends_part_words(letters: Path) -> None:
    run = Run.open(letters)
    changes = {"lossless": True, "byte_fallback": True, "vocabulary": 300}
    settings = run.target_text.settings.model_copy(update=changes)
    form = TextForm(learn_vocabulary(["ab cd ab"], settings), "de")
    (tokens,) = form.tokens([" ab\n\ncd  ü"])
    found = words_of(form, tokens, [-1.0] * len(tokens))
    assert [(w.before, w.text) for w in found] == [(" ", "ab"), ("\n\n", "cd"), ("  ", "ü")]


def test_colours_add_nothing_to_the_text() -> None:
    words = [
        SurprisalWord("", "The", -0.0),
        SurprisalWord(" ", "cat", 7.0),
        SurprisalWord("\n", "flies", 15.0),
    ]
    assert colour_words(words, plain=False).plain == "The cat\nflies"
    assert colour_words(words, plain=True).plain == "The[0.0] cat[7.0]\nflies[15.0]"
    assert len({str(span.style) for span in colour_words(words, plain=False).spans}) == 2


def test_writing_from_the_command_line(letters: Path, dragoman: Dragoman) -> None:
    how = ("write", letters, "Der", "--longest", "50", "--seed", "4")
    one, again = dragoman(*how), dragoman(*how)
    assert one.code == 0 and one.out == again.out and one.out.startswith("Der")
    both = dragoman(*how[:-1], "3", "-n", "2")
    assert both.out.endswith(one.out) and len(both.out) > len(one.out)  # the next seed
    stop = one.out[5:7]
    stopped = dragoman(*how, "--stop", stop)
    assert stopped.out == one.out[: one.out.index(stop)] + "\n"
    long = dragoman("write", letters, "Der Hund sieht " * 5, "--longest", "3")
    assert long.code == 0 and "but the model reads 32 at once" in long.err
    for wrong, message in (
        (("--scores", "--stop", "a"), "Leave out --stop"),
        (("--likeliest", "--number", "2", "--stop", "a"), "--stop, --likeliest and -n cannot"),
        (("--likeliest",), "--likeliest does not sample"),  # a seed is among them
    ):
        refused = dragoman(*(how[:-2] if len(wrong) > 1 else how), *wrong)
        assert refused.code == 1 and message in refused.err and not refused.out, wrong


def test_a_folder_of_texts_becomes_a_run(
    parallel_text: tuple[Path, Path], dragoman: Dragoman, tmp_path: Path
) -> None:
    """Trained, measured on what was held out, reported, and begun from again."""
    lines = parallel_text[1].read_text(encoding="utf-8").splitlines()
    (tmp_path / "books").mkdir()
    for number in range(3):
        book = "\n".join(lines[number * 200 : number * 200 + 200])
        (tmp_path / "books" / f"{number}.txt").write_text(book, encoding="utf-8")
    sizes = ("model.model_dim=16", "model.ffn_dim=16", "model.layers=1", "plan.context=32",
             "plan.tokens_per_update=256", "training.updates=4", "training.validate_every=2",
             "training.precision=fp32")  # fmt: skip
    changes = [word for size in sizes for word in ("--set", size)]
    run = tmp_path / "run"
    said = dragoman("train", tmp_path / "books", "--task", "language-model", "--to", run, *changes)
    assert said.code == 0, said.err
    assert "bits per byte" in said.out and f"write {run} 'How it begins'" in said.out
    opened = Run.open(run)
    assert opened.recipe.languages.target == "de" and opened.recipe.data.train[0].format == "file"
    assert (run / "report.html").is_file() and "bits_per_byte" in opened.scores()["scores"]
    tuned = dragoman(
        "train", tmp_path / "books" / "1.txt", "--from", run, "--to", tmp_path / "tuned", *changes
    )
    assert tuned.code == 0, tuned.err
    assert Run.open(tmp_path / "tuned").target_text.fingerprint == opened.target_text.fingerprint


def test_text_that_cannot_be_used_is_said_in_one_line(dragoman: Dragoman, tmp_path: Path) -> None:
    empty, spaces, short = (tmp_path / name for name in ("empty.txt", "spaces.txt", "short.txt"))
    empty.write_text("")
    spaces.write_text("  \n \n")
    short.write_text("One.\n")
    for wrong, words in (
        ((empty,), "empty.txt is empty"),
        ((spaces,), "spaces.txt contains no text, only spaces"),
        ((tmp_path / "none.txt",), "does not exist"),
        ((short, short), "give one file, or a folder of files"),
        ((short, "--texts", "pages"), "--texts pages: use text, documents or file"),
    ):
        said = dragoman("train", *wrong, "--task", "language-model", "--to", tmp_path / "run")
        assert said.code == 1 and words in said.err and "Traceback" not in said.err
        assert len(said.err.strip().splitlines()) == 1, said.err
        assert not (tmp_path / "run").exists()


def test_of_a_folder_of_documents_whole_ones_are_held_out(
    dragoman: Dragoman, tmp_path: Path
) -> None:
    """Each is read in many sections, of which training must not have the neighbours."""
    folder = tmp_path / "stories"
    folder.mkdir()
    pairs = demo_corpus(train_pairs=600, dev_pairs=1, test_pairs=1).train
    for number in range(30):
        text = " ".join(p.source for p in pairs[number * 20 : number * 20 + 20])
        (folder / f"{number}.txt").write_text(f"{text} " * 3, encoding="utf-8")
    sizes = (*SMALL, "training.updates=1", "training.validate_every=1")
    changes = [word for size in sizes for word in ("--set", size)]
    ask = ("train", folder, "--task", "language-model", *changes)
    said = dragoman(*ask, "--to", tmp_path / "run")
    assert said.code == 0, said.err
    recipe = Run.open(tmp_path / "run").recipe
    assert recipe.data.split.whole_texts
    held = {side: {p.whole for p in plain_pairs(recipe, side)} for side in ("train", "dev", "test")}
    assert held["dev"] and held["test"] and not held["train"] & (held["dev"] | held["test"])
    assert "training has other parts" not in said.out
    whole = "".join(path.read_text(encoding="utf-8") for path in sorted(folder.iterdir()))
    for number in range(30):
        (folder / f"{number}.txt").unlink()
    for number, place in enumerate(range(0, len(whole), len(whole) // 3 + 1)):
        part = whole[place : place + len(whole) // 3 + 1]
        (folder / f"{number}.txt").write_text(part, encoding="utf-8")
    said = dragoman(*ask, "--to", tmp_path / "few")
    assert said.code == 0, said.err
    assert not Run.open(tmp_path / "few").recipe.data.split.whole_texts
    assert "warning: of " in said.out and "of which training has other parts" in said.out
