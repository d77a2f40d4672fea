"""What is far longer than a model reads is refused, or its end left out, before it is cut into
tokens, which would take seventy times its memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from command_line import Dragoman
from untrained_run import untrained_run

from dragoman.base.errors import DataError, DragomanError
from dragoman.forms.subwords.text import Text
from dragoman.tasks.catalogue import Run
from dragoman.tasks.classification.labeller import Labeller
from dragoman.tasks.classification.reasons import reasons
from dragoman.tasks.language_model.runtime import NoSource
from dragoman.tasks.masked.filler import Filler
from dragoman.tasks.parsing.parser import Parser
from dragoman.tasks.translation.aligner import Aligner, TextAligner
from dragoman.tasks.translation.result import score_pairs
from dragoman.tasks.translation.translator import Translator

SMALL = ("model.model_dim=16", "model.ffn_dim=16", "model.attention.num_heads=2")
FAR = 2_000_000


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The length of every text that was made tokens."""
    lengths = list[int]()
    encode_lists = Text.encode_lists

    def watched(self: Text, texts: Sequence[str]) -> list[list[int]]:
        lengths.extend(map(len, texts))
        return encode_lists(self, texts)

    monkeypatch.setattr(Text, "encode_lists", watched)
    return lengths


def test_a_text_is_far_too_long_only_where_its_beginning_is_less() -> None:
    form = NoSource(2)
    for text in ("a" * 1999, "a" * 2000, "a" * 2001):
        assert form.far_too_long(text, 2) == (form.beginning(text, 2) != text) == (len(text) > 2000)


def test_a_masked_model_refuses_it(tmp_path: Path, cut: list[int]) -> None:
    filler = Filler(Run.open(untrained_run(tmp_path, *SMALL, recipe_name="demo-masked")))
    reads = "1,023 tokens at most are read. Give a part of it"
    cut.clear()
    with pytest.raises(DragomanError) as far:
        filler("The ___ sleeps. " * (FAR // 16))
    assert str(far.value) == f"the text has 2,000,000 characters, and {reads}" and not cut
    with pytest.raises(DragomanError, match=r"the text has [\d,]+ tokens, and " + reads):
        filler("The ___ sleeps. " * 400)


def test_a_parser_refuses_it_and_says_where_it_is(tmp_path: Path, cut: list[int]) -> None:
    run = Run.open(untrained_run(tmp_path, *SMALL, recipe_name="demo-trees"))
    parser, line = Parser(run), "a b " * (FAR // 4)
    cut.clear()
    parses = parser.stream(["the cat sleeps .", "", line, "the dog sleeps ."])
    assert next(parses)[0].tree.words == ["the", "cat", "sleeps", "."] and next(parses) == []
    with pytest.raises(DragomanError) as far:
        next(parses)
    assert str(far.value) == (
        "line 3 has 2,000,000 characters, and 1,000 tokens are read at once. Give one sentence "
        "on each line, with spaces between words"
    )
    assert max(cut) < 100


def test_a_pair_that_is_scored_is_refused_when_those_before_it_were_scored(
    tmp_path: Path, cut: list[int]
) -> None:
    (tmp_path / "run").mkdir()
    translator = Translator(Run.open(untrained_run(tmp_path / "run", *SMALL)))
    for far in (("a " * FAR, "Ein Hund."), ("A dog.", "b " * FAR)):
        cut.clear()
        scored = score_pairs(translator.engine, [("A dog.", "Ein Hund."), far, ("A cat.", "")])
        assert next(scored).text == "Ein Hund."
        side = "source" if len(far[0]) > FAR else "translation"
        with pytest.raises(DataError) as refused:
            next(scored)
        assert str(refused.value).startswith(
            f"line 2: the {side} has 4,000,000 characters, and 2,000 tokens at most are scored"
        )
        assert max(cut) < 100
    with pytest.raises(DataError, match=r"line 1: the source has [\d,]+ tokens, and 2,000 tokens"):
        translator.score([("x " * 5000, "Ein Hund.")])


def test_a_pair_has_no_more_tokens_than_the_model_has_positions(tmp_path: Path) -> None:
    learned = "model.positions.kind=learned", "model.positions.maximum=20"
    translator = Translator(Run.open(untrained_run(tmp_path, *SMALL, *learned)))
    most = 19
    for length in range(5, 40):
        text = "x" * length  # a token, or several, for each letter
        (values,) = translator.engine.source.values([text])
        if len(values) > most:
            with pytest.raises(
                DataError, match=f"has {len(values)} tokens, and 19 tokens at most are"
            ):
                translator.score([(text, "A")])
            break
        (found,) = translator.score([(text, text)])
        assert len(found.token_log_probabilities) == len(values)
    else:
        raise AssertionError("some text must have been too long")


def test_the_command_scores_what_stands_before_it(dragoman: Dragoman, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    run = untrained_run(tmp_path / "run", *SMALL)
    (tmp_path / "a.en").write_text(f"A dog.\n{'a ' * (FAR // 2)}\nA cat.\n")
    (tmp_path / "a.de").write_text("Ein Hund.\nHund\nEine Katze.\n")
    said = dragoman("score", run, tmp_path / "a.en", tmp_path / "a.de")
    assert said.code == 1 and len(said.out.splitlines()) == 1 and float(said.out.split()[0]) < 0
    assert "line 2: the source has" in said.err and "Traceback" not in said.err


@pytest.mark.parametrize("statistical", [False, True])
def test_a_pair_that_is_aligned_is_passed_over(
    tmp_path: Path,
    cut: list[int],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    statistical: bool,
) -> None:
    run = Run.open(untrained_run(tmp_path, *SMALL))
    learned = [(np.array([5, 6]), np.array([7, 8]))]
    monkeypatch.setattr("dragoman.tasks.translation.aligner.token_pairs", lambda *_: learned)
    # What is learned from a replaced text must not be found under the name of the real one.
    monkeypatch.setenv("DRAGOMAN_CACHE", str(tmp_path / "cache"))
    aligner = TextAligner(run) if statistical else Aligner.open(run)
    cut.clear()
    far, long = "a " * FAR, "a " * 5000
    with caplog.at_level("WARNING", "dragoman"):
        pairs = [("A dog.", far), (far, "Ein Hund."), (long, "Ein Hund."), ("A dog.", "Ein Hund.")]
        *none, links = aligner(pairs)
    assert not any(none) and links and len(cut) < 6000  # a text for each word
    assert caplog.text.count("4,000,000 characters, more than 1,000 tokens, gets no links") == 2
    assert " tokens, more than 1,000, gets no links" in caplog.text


def test_a_run_that_labels_looks_at_the_beginning_alone(tmp_path: Path, cut: list[int]) -> None:
    labeller = Labeller(Run.open(untrained_run(tmp_path, *SMALL, recipe_name="demo-labels")))
    long = "The dog sleeps. " * 50_000
    cut.clear()
    (found,), short = labeller([long]), long[:5000]
    assert found.text == long and found.cut
    assert found.log_probabilities == pytest.approx(labeller([short])[0].log_probabilities)
    assert reasons(labeller, long) == reasons(labeller, short)
    assert labeller.source_ids(long) == labeller.source_ids(short)
    assert 0 < max(cut) < len(long) / 4
