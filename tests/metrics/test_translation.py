"""BLEU, chrF, TER and the Moses protocol: against sacreBLEU's own front door and the formulas."""

from __future__ import annotations

import importlib.util
import json
import math
import random
import sys
import unicodedata
from collections import Counter

import pytest
import sacrebleu

from dragoman.base.errors import DataError
from dragoman.forms.text_form import MosesText
from dragoman.metrics.translation import (
    bleu_tokenizer,
    evaluate_translation,
    tokenised_bleu,
)

WORDS = [
    "der",
    "die",
    "das",
    "Hund",
    "Katze",
    "läuft",
    "schläft",
    "im",
    "Garten",
    "nicht",
    ",",
    ".",
    "und",
    "müde",
]


def corrupted(seed: int, lines: int, errors: float) -> tuple[list[str], list[str]]:
    """References of random words, and hypotheses with some words exchanged."""
    draw = random.Random(seed)
    references = [" ".join(draw.choices(WORDS, k=draw.randint(1, 14))) for _ in range(lines)]
    hypotheses = [
        " ".join(draw.choice(WORDS) if draw.random() < errors else word for word in line.split())
        for line in references
    ]
    return hypotheses, references


def test_scores_and_signatures_are_sacrebleus() -> None:
    hypotheses, references = corrupted(1, 60, 0.3)
    scores = evaluate_translation(hypotheses, [references], "de")
    assert scores["BLEU"] == pytest.approx(sacrebleu.corpus_bleu(hypotheses, [references]).score)
    assert scores["chrF"] == pytest.approx(
        sacrebleu.CHRF().corpus_score(hypotheses, [references]).score
    )
    assert scores["chrF++"] == pytest.approx(
        sacrebleu.CHRF(word_order=2).corpus_score(hypotheses, [references]).score
    )
    assert scores["TER"] == pytest.approx(
        sacrebleu.corpus_ter(hypotheses, [references], case_sensitive=True).score
    )
    signatures = [score.signature for score in scores.scores]
    assert all("case:mixed" in s for s in signatures)
    assert "tok:13a" in signatures[0]
    assert "nw:2" in signatures[2]
    assert f"version:{sacrebleu.__version__}" in signatures[3]


def test_several_references_are_compared_with_at_once() -> None:
    hypotheses, first = corrupted(5, 40, 0.3)
    _, second = corrupted(6, 40, 0.0)
    both = [first, second]
    scores = evaluate_translation(hypotheses, both, "de")
    assert scores["BLEU"] == pytest.approx(sacrebleu.corpus_bleu(hypotheses, both).score)
    assert scores["chrF"] == pytest.approx(sacrebleu.CHRF().corpus_score(hypotheses, both).score)
    assert scores["TER"] == pytest.approx(sacrebleu.corpus_ter(hypotheses, both).score)
    assert all("nrefs:2" in score.signature for score in scores.scores)
    # One of two that is right is enough; a second that is wrong costs nothing in BLEU.
    assert evaluate_translation(first, [second, first], "de")["BLEU"] == pytest.approx(100)
    with pytest.raises(DataError, match="40 translations but 39 references"):
        evaluate_translation(hypotheses, [first, second[1:]], "de")


@pytest.mark.parametrize("language", ["de", "ko"])
@pytest.mark.parametrize("decomposed", ["hypotheses", "references", "both"])
def test_decomposed_text_scores_as_composed_text(language: str, decomposed: str) -> None:
    hypotheses, references = corrupted(4, 40, 0.2)
    if language == "ko":
        hypotheses, references = (
            [f"{line} 그 책은 재미있었습니다 ." for line in lines]
            for lines in (hypotheses, references)
        )
    metrics = evaluate_translation(hypotheses, [references], language)
    tokens = tokenised_bleu(hypotheses, [references])
    assert not any("NFC" in score.signature for score in (*metrics.scores, tokens))
    if decomposed != "references":
        hypotheses = [unicodedata.normalize("NFD", line) for line in hypotheses]
    if decomposed != "hypotheses":
        references = [unicodedata.normalize("NFD", line) for line in references]
    found = evaluate_translation(hypotheses, [references], language)
    for one, other in zip(
        (*found.scores, tokenised_bleu(hypotheses, [references])), (*metrics.scores, tokens),
        strict=True,
    ):  # fmt: skip
        assert one.value == other.value and one.signature == f"{other.signature}|unicode:NFC"


@pytest.mark.parametrize(("language", "cut"), [("ja", True), ("zh-TW", True), ("ko", False)])
def test_ter_cuts_what_has_no_spaces(language: str, cut: bool) -> None:
    hypotheses, references = ["小さい猫が本を買う。"], ["小さな猫が本を買う。"]
    found = evaluate_translation(hypotheses, [references], language, metrics=["TER"])
    expected = sacrebleu.corpus_ter(
        hypotheses, [references], asian_support=cut, normalized=cut, case_sensitive=True
    )
    assert found["TER"] == pytest.approx(expected.score)
    assert (found["TER"] < 20) is cut


def test_table_and_json_hold_every_figure() -> None:
    hypotheses, references = corrupted(2, 20, 0.3)
    scores = evaluate_translation(hypotheses, [references], "de")
    table = scores.table()
    for score in scores.scores:
        assert f"{score.value:.2f}  {score.signature}" in table
    read = json.loads(json.dumps(scores.to_dict()))
    assert read["sentences"] == 20
    assert read["scores"]["chrF++"]["value"] == scores["chrF++"]
    assert "BP" in read["scores"]["BLEU"]["detail"]
    with pytest.raises(KeyError):
        evaluate_translation(hypotheses, [references], "de", metrics=("BLEU",))["TER"]


def test_lengths_must_pair_up() -> None:
    with pytest.raises(DataError, match="2 translations but 1 reference:"):
        evaluate_translation(["a", "b"], [["a"]], "de")
    with pytest.raises(DataError, match="nothing to score"):
        tokenised_bleu([], [[]])


@pytest.mark.skipif(importlib.util.find_spec("mecab_ko") is None, reason="needs the extra ko")
def test_korean_counts_morphemes() -> None:
    lines = ["개가 길을 건너지 않았다.", "고양이가 정원에서 잔다."]
    scores = evaluate_translation(lines, [lines], "ko-KR")
    assert scores["BLEU"] == pytest.approx(100)
    assert "tok:ko-mecab" in scores.scores[0].signature
    assert not scores.notes


def test_without_mecab_korean_counts_characters_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    name, notes = bleu_tokenizer("ko")
    assert name == "char"
    assert "sacrebleu[ko]" in notes[0]
    scores = evaluate_translation(["개가 길을 건너지"], [["개가 길을 건너지"]], "ko")
    assert "sacrebleu[ko]" in scores.table()


def test_tokeniser_may_be_chosen() -> None:
    assert bleu_tokenizer("ko", "char") == ("char", ())
    assert bleu_tokenizer("zh-Hans")[0] == "zh"


def papineni(hypotheses: list[str], references: list[str]) -> float:
    """BLEU of Papineni et al. (2002), section 2.3, without smoothing, over given tokens."""
    matched, possible = [0] * 4, [0] * 4
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        for order in range(1, 5):
            ours, theirs = (
                Counter(
                    tuple(line.split()[i : i + order]) for i in range(len(line.split()) - order + 1)
                )
                for line in (hypothesis, reference)
            )
            matched[order - 1] += sum((ours & theirs).values())
            possible[order - 1] += sum(ours.values())
    if 0 in matched:
        return 0.0
    ours_long = sum(len(line.split()) for line in hypotheses)
    theirs_long = sum(len(line.split()) for line in references)
    penalty = min(1.0, math.exp(1 - theirs_long / ours_long))
    precisions = [m / p for m, p in zip(matched, possible, strict=True)]
    return 100 * penalty * math.exp(sum(map(math.log, precisions)) / 4)


@pytest.mark.parametrize("errors", [0.0, 0.1, 0.4, 1.0])
def test_tokenised_bleu_is_the_plain_formula(errors: float) -> None:
    hypotheses, references = corrupted(3, 40, errors)
    hypotheses = [line.rsplit(" ", 1)[0] for line in hypotheses]  # shorter: a brevity penalty
    score = tokenised_bleu(hypotheses, [references])
    assert score.value == pytest.approx(papineni(hypotheses, references))
    assert "tok:none" in score.signature and "smooth:none" in score.signature


def test_who_asks_for_tokens_is_not_told_to_detokenise(caplog: pytest.LogCaptureFixture) -> None:
    lines = ["a cat sleeps ."] * 120
    with caplog.at_level("WARNING", logger="sacrebleu"):
        asked = evaluate_translation(lines, [lines], "en", tokenizer="none", metrics=("BLEU",))
        assert not asked.notes
        (note,) = evaluate_translation(lines, [lines], "en", metrics=("BLEU",)).notes
        assert note.startswith("120 translations of 120 end in a full stop with a space before it")
        plain = [line.replace(" .", ".") for line in lines]
        assert not evaluate_translation(plain, [lines], "en", metrics=("BLEU",)).notes
        assert not caplog.records


def test_tokenised_bleu_neither_cuts_nor_smooths() -> None:
    assert tokenised_bleu(["a b c d"], [["a b x d"]]).value == 0  # no 3-gram matches
    assert tokenised_bleu(["es regnet heute nicht."], [["es regnet heute nicht ."]]).value == 0


# Lines of the form in which prepared corpora are shared: lower-cased, normalised, tokenised.
PREPARED = [
    (
        "en",
        "One man holds another man's head down, and prepares to punch him.",
        "one man holds another man &apos;s head down , and prepares to punch him .",
    ),
    (
        "en",
        "A woman on a boat named “El Corazon” drops black weights.",
        "a woman on a boat named &quot; el corazon &quot; drops black weights .",
    ),
    (
        "de",
        "Ein Boston Terrier läuft über saftig-grünes Gras vor einem weißen Zaun.",
        "ein boston terrier läuft über saftig-grünes gras vor einem weißen zaun .",
    ),
    ("de", "Das ist z.B. Nr. 5, oder?", "das ist z.b. nr . 5 , oder ?"),
]


@pytest.mark.parametrize(("language", "plain", "prepared"), PREPARED)
def test_moses_prepares_text_as_papers_do(language: str, plain: str, prepared: str) -> None:
    pytest.importorskip("sacremoses")
    assert MosesText(language).prepare(plain) == prepared


def test_moses_leaves_an_accent_with_its_letter() -> None:
    pytest.importorskip("sacremoses")
    text = "Ein müder Hund schläft."
    assert MosesText("de").prepare(unicodedata.normalize("NFD", text)) == "ein müder hund schläft ."


def test_moses_restores_plain_text() -> None:
    pytest.importorskip("sacremoses")
    moses = MosesText("en")
    line = "the animal didn't cross the street, because it was too tired."
    assert moses.prepare(line) == (
        "the animal didn &apos;t cross the street , because it was too tired ."
    )
    assert moses.restore(moses.prepare(line)) == line


def test_tokenised_bleu_knows_no_case() -> None:
    pytest.importorskip("sacremoses")
    references = ["Ein Hund läuft im Garten, nicht wahr?", "Die Katze schläft heute im Haus."]
    written, prepare = [line.lower() for line in references], MosesText("de").prepare
    assert tokenised_bleu(
        [prepare(line) for line in written], [[prepare(line) for line in references]]
    ).value == pytest.approx(100)
    assert evaluate_translation(written, [references], "de").scores[0].value < 80


def test_without_sacremoses_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    with pytest.raises(DataError, match=r"pip install .*sacremoses"):
        MosesText("de")
