"""Alignments by attention: which head, which step, whose words; and the verb."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from command_line import Dragoman
from known_links import known_links
from untrained_run import untrained_run

import dragoman
from dragoman.base.errors import DataError, DragomanError
from dragoman.engine.alignment_head import MOMENTS, AligningHead, AlignmentScores, HeadLinks
from dragoman.metrics.alignment import AlignmentQuality, Gold, Links
from dragoman.pictures.records import AttentionRecord
from dragoman.runs.corpora import plain_pairs
from dragoman.tasks.catalogue import Run
from dragoman.tasks.translation.aligner import Aligner, TextAligner, agreement, better_aligner
from dragoman.training.weights import load_weights, save_weights

PAIRS = [
    ("The small dog sleeps .", "Der kleine Hund schläft ."),
    ("Unbelievable zebras !", "Unglaubliche Zebras !"),
    ("", "Nichts ."),
    ("Who ?", ""),
    ("\x00 dog", "\x00 Hund"),
]


@pytest.fixture(scope="module")
def run(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny run, but that every head looks at something of its own: a few updates leave all of
    them looking alike."""
    folder = Path(shutil.copytree(tiny_run, tmp_path_factory.mktemp("runs") / "sharp"))
    weights = load_weights(folder / "model.safetensors").tensors
    for name, values in weights.items():
        if "cross_attention.query.weight" in name or "cross_attention.key.weight" in name:
            values *= 6
    save_weights(folder / "model.safetensors", weights, {})
    return folder


def looked(source: int, target: int, *heads: dict[int, int]) -> HeadLinks:
    """Words of one token; each head of one layer looks from target to source as it is told."""
    cross = np.zeros((1, len(heads), target + 1, source + 1))
    for head, links in enumerate(heads):
        cross[0, head, np.arange(target + 1), source] = 0.5
        for row, column in links.items():
            cross[0, head, row, column] = 1
    return HeadLinks.of(cross, range(source), range(target), (source, target))


@pytest.mark.system
@pytest.mark.parametrize("short", [True, False])
def test_learning_an_hmm_is_announced_by_how_long_it_takes(
    short: bool, tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_CACHE", str(tmp_path))
    said: list[str] = []
    TextAligner(Run.open(tiny_run), said.append, short=short)
    assert ("a short HMM" in said[0]) is short
    assert ("may take minutes" in said[0]) is not short


def test_links_of_both_moments_and_the_best_head() -> None:
    source, target = ("▁a", "▁b", "▁c", "</s>"), ("▁x", "▁y", "</s>")
    cross = np.zeros((1, 2, 3, 4))
    # Head 1 looks at b, a when it chooses x, y; head 2 a step late.
    cross[0, 0, [0, 1, 2], [1, 0, 3]] = 1
    cross[0, 1, [0, 1, 2], [3, 1, 0]] = 1
    encoder, decoder = np.zeros((1, 2, 4, 4)), np.zeros((1, 2, 3, 3))
    one = HeadLinks.of_record(AttentionRecord(source, target, encoder, decoder, cross))
    swapped = frozenset({(1, 0), (0, 1)})
    assert one.by(AligningHead("choosing", 0, 0)) == swapped
    assert one.by(AligningHead("having read", 0, 1)) == swapped
    assert one.by(AligningHead("choosing", 0, 1)) != swapped
    scores = AlignmentScores.of([one], [Gold(swapped, swapped)])
    assert scores.best == AligningHead("choosing", 0, 0)
    assert scores.quality(scores.best).error_rate == 0
    assert scores.heads["having read"][0, 1] == 0


def test_a_word_is_looked_at_by_its_pieces_together_and_looks_as_they_do_on_average() -> None:
    """Word 0 has the pieces 0 and 1: each is looked at less than word 1, both together more."""
    cross = np.zeros((1, 1, 3, 4))
    cross[0, 0, 0] = [0.3, 0.3, 0.4, 0]  # alone it would be word 1
    cross[0, 0, 1] = [0.0, 0.1, 0.5, 0.4]
    one = HeadLinks.of(cross, [0, 0, 1], [0, 0], (2, 1))
    assert one.by(AligningHead("choosing", 0, 0)) == {(1, 0)}  # 0.35 and 0.45
    cross[0, 0, 1] = [0.0, 0.1, 0.2, 0.7]
    one = HeadLinks.of(cross, [0, 0, 1], [0, 0], (2, 1))
    assert one.by(AligningHead("choosing", 0, 0)) == {(0, 0)}  # 0.35 and 0.3
    # Words without tokens are linked to nothing, and keep their numbers.
    skipped = HeadLinks.of(cross, [1, 1, 3], [2, 2], (4, 3))
    assert skipped.by(AligningHead("choosing", 0, None)) == {(1, 2)}
    nothing = HeadLinks.of(np.zeros((1, 1, 3, 1)), [], [0, 0], (0, 1))
    assert nothing.by(AligningHead("choosing", 0, 0)) == frozenset()


def test_the_head_is_chosen_by_other_pairs_than_it_is_measured_on() -> None:
    """Head 1 is right about the first two pairs, head 2 about the last three."""
    straight, crossed = {0: 0, 1: 1}, {0: 1, 1: 0}
    many = [looked(2, 2, straight, crossed)] * 5
    links = [frozenset((s, t) for t, s in one.items()) for one in (straight, crossed)]
    gold = [Gold(links[n], links[n]) for n in (0, 0, 1, 1, 1)]
    scores = AlignmentScores.of(many, gold)
    assert scores.best.head == 1 and scores.quality(scores.best).error_rate == pytest.approx(0.4)
    chosen = scores.part(0, 2).best
    assert (chosen.when, chosen.layer, chosen.head) == ("choosing", 0, 0)
    assert scores.part(2).quality(chosen).error_rate == 1.0 and scores.part(2).sentences == 3
    assert scores.part(0, 3).best.head == 0, "two of three"
    # Against the definition, all sentences together.
    found = [one.by(AligningHead("choosing", 0, 1)) for one in many]
    right = sum(len(a & g.sure) + len(a & g.possible) for a, g in zip(found, gold, strict=True))
    all_links = sum(len(a) + len(g.sure) for a, g in zip(found, gold, strict=True))
    assert scores.heads["choosing"][0, 1] == pytest.approx(1 - right / all_links)
    with pytest.raises(DataError, match=r"pair 5.*is outside"):
        AlignmentScores.of(many, [*gold[:4], Gold(frozenset(), frozenset({(0, 2)}))])


def test_counts_of_all_heads_at_once_are_those_of_each_ones_links() -> None:
    draw, means = np.random.default_rng(5), 0
    for _ in range(30):
        some = [
            HeadLinks.of(draw.random((2, 2, 5, 4)), range(3), range(4), (3, 4)) for _ in range(3)
        ]
        linked = [draw.random((3, 4)) for _ in some]
        gold = [
            Gold(*(frozenset(zip(*np.nonzero(one > least), strict=True)) for least in (0.8, 0.6)))
            for one in linked
        ]
        scores = AlignmentScores.of(some, gold)
        heads = [
            AligningHead(when, layer, head)
            for when in MOMENTS for layer in (0, 1) for head in (0, 1, None)
        ]  # fmt: skip
        for head in heads:
            links = [one.by(head) for one in some]
            assert scores.quality(head) == AlignmentQuality.of(links, gold)
        assert scores.best in heads
        rates = [scores.quality(head).error_rate for head in heads]
        assert scores.quality(scores.best).error_rate == min(rates)
        means += scores.best.head is None
    assert 0 < means < 30


def test_a_head_is_named_as_people_count() -> None:
    assert AligningHead.parse("2.1", "reading") == AligningHead("having read", 1, 0)
    assert AligningHead.parse("cross.1.*", "choosing") == AligningHead("choosing", 0, None)
    assert AligningHead.parse("3", "reading").head is None
    for head in (AligningHead("choosing", 1, 2), AligningHead("having read", 0, None)):
        words = head.option.replace("'", "").split()
        named, step = words[1], "choosing" if "--step" in words else "reading"
        assert AligningHead.parse(named, step) == head
    for wrong in ("0.1", "1.0", "x", "1.2.3", "-1"):
        with pytest.raises(DragomanError, match=r"LAYER\.HEAD"):
            AligningHead.parse(wrong, "reading")
    with pytest.raises(DragomanError, match="choosing, reading"):
        AligningHead.parse("1.1", "before")


def by_hand(run: Path, head: AligningHead, source: str, target: str) -> Links:
    """From the record of every weight, piece by piece."""
    translator = dragoman.load(run)
    forms = translator.run
    cut = [
        [vocabulary.encode_lists([word])[0] for word in text.split()]
        for vocabulary, text in ((forms.source_text, source), (forms.target_text, target))
    ]
    ids = [[token for word in side for token in word] for side in cut]
    record = translator.engine.attention.record([*ids[0], forms.target.eos], ids[1])
    layer = record.cross[head.layer]
    weights = layer.mean(axis=0) if head.head is None else layer[head.head]
    found, place = set(), 0
    for number, word in enumerate(cut[1]):
        rows = range(place, place + len(word))
        place += len(word)
        shift = head.when == "having read"
        sums, at = [], 0
        for other in cut[0]:
            columns = slice(at, at + len(other))
            at += len(other)
            sums.append(
                np.mean([weights[row + shift, columns].sum() for row in rows]) if word else 0
            )
        if word and any(cut[0]):
            found.add((int(np.argmax(sums)), number))
    return frozenset(found)


@pytest.mark.parametrize("head", ["1.2", "2.*", "2.4"])
@pytest.mark.parametrize("step", ["choosing", "reading"])
def test_links_are_those_of_the_weights_that_look_shows(run: Path, head: str, step: str) -> None:
    named = AligningHead.parse(head, step)
    found = dragoman.load(run).align(PAIRS, head=head, step=step)
    assert found == [by_hand(run, named, *pair) for pair in PAIRS]
    assert found[2:4] == [frozenset(), frozenset()] and found[0]


def test_gold_chooses_measures_and_is_an_oracle_only_when_asked(run: Path) -> None:
    aligner = Aligner.open(Run.open(run))
    gold_of = list(Aligner.open(Run.open(run), AligningHead.parse("2.3", "reading"))(PAIRS[:2]))
    pairs, gold = PAIRS[:2] * 3, [Gold(links, links) for links in gold_of] * 3
    measured = aligner.measure(pairs, gold, 2)
    assert measured.quality.error_rate == 0
    assert "chosen on the first 2 pairs, measured on the other 4" in str(measured)
    assert "oracle" in str(aligner.measure(pairs, gold, 0))
    named = Aligner.open(Run.open(run), AligningHead.parse("1.1", "choosing"))
    of_one = named.measure(pairs, gold, 2)
    assert of_one.links == list(named(pairs)) and "on 6 pairs" in str(of_one)
    assert "oracle" not in str(of_one) and of_one.quality.error_rate > 0


def test_both_directions_of_a_head_agree_where_each_looks_at_the_other() -> None:
    straight = looked(2, 2, {0: 0, 1: 1})
    head = AligningHead("choosing", 0, 0)
    assert straight.by(head) == straight.back_by(head) == {(0, 0), (1, 1)}
    # Both target words look at source word 0 most; source word 1 is looked at most by word 0.
    cross = np.zeros((1, 1, 3, 3))
    cross[0, 0, 0], cross[0, 0, 1] = [0.5, 0.3, 0.2], [0.9, 0.1, 0.0]
    one = HeadLinks.of(cross, range(2), range(2), (2, 2))
    assert one.by(head) == {(0, 0), (0, 1)} and one.back_by(head) == {(0, 1), (1, 0)}
    assert agreement([(one.by(head), one.back_by(head))]) == pytest.approx(0.5)
    assert agreement([]) == 0
    nothing = HeadLinks.of(np.zeros((1, 1, 1, 3)), range(2), [], (2, 0))
    assert nothing.by(head) == nothing.back_by(head) == frozenset()


@pytest.mark.system
def test_what_agrees_with_itself_better_aligns(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    opened = Run.open(run)
    assert isinstance(better_aligner(opened, said.append), TextAligner)
    assert any("the HMM aligns" in text for text in said)

    def at_odds(self: TextAligner, pairs: Sequence[tuple[str, str]]) -> list[tuple[Links, Links]]:
        return [(frozenset({(0, 0)}), frozenset({(0, 1)}))] * len(pairs)

    monkeypatch.setattr(TextAligner, "directions", at_odds)
    chosen = better_aligner(opened, said.append)
    assert isinstance(chosen, Aligner) and chosen.head is not None
    assert f"attention ({chosen.head}), so attention aligns" in said[-1]
    # Of the heads that which agrees best with the statistics.
    pairs = [(pair.source, pair.target) for pair in plain_pairs(opened.recipe, "dev")]
    silver = [Gold(links, links) for links in TextAligner(opened, short=True)(pairs)]
    scores = AlignmentScores.of(list(chosen.look(pairs)), silver)
    assert scores.best == chosen.head


@pytest.mark.slow  # it learns from the demo
def test_an_hmm_is_learned_once_and_only_where_it_is_used(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_CACHE", str(tmp_path / "cache"))
    opened = Run.open(run)
    asked: list[str] = []
    first = better_aligner(opened, asked.append)
    assert [text.split(" HMM")[0] for text in asked if text.startswith("learning")] == [
        "learning a short", "learning the whole"
    ]  # fmt: skip
    again: list[str] = []
    second = better_aligner(opened, again.append)
    assert len(again) == 1 and again[0] == next(text for text in asked if "aligned" in text)
    assert list(second(PAIRS)) == list(first(PAIRS))
    # A damaged file is told of, and made anew.
    for kept in (tmp_path / "cache" / "aligners").iterdir():
        kept.write_bytes(kept.read_bytes()[:-8])
    told: list[str] = []
    assert list(TextAligner(opened, told.append)(PAIRS)) == list(first(PAIRS))
    assert "damaged" in told[0] and "learning the whole" in told[1]
    # Where attention aligns, the whole one is not learned.
    shutil.rmtree(tmp_path / "cache")
    monkeypatch.setattr(TextAligner, "directions", lambda self, pairs: [])
    less: list[str] = []
    assert isinstance(better_aligner(opened, less.append), Aligner)
    assert not any("the whole" in text for text in less)


@pytest.mark.slow  # it learns from the demo
def test_the_demo_aligns_sentences_whose_links_are_known(demo: tuple[Path, str]) -> None:
    """Rates: docs/experiments.md."""
    known = known_links(60, seed=5)
    gold = [links for *_, links in known]
    pairs = [(source, target) for source, target, _ in known]
    opened = Run.open(demo[0])
    chosen = list(better_aligner(opened)(pairs))
    assert AlignmentQuality.of(chosen, gold).error_rate < 0.1
    # One layer looks where it takes the word from in the step that chooses it, not a step later.
    rates = AlignmentScores.of(list(Aligner.open(opened).look(pairs)), gold).heads
    assert rates["choosing"].min() < 0.2 and rates["having read"].min() > 0.5


def write(path: Path, lines: Sequence[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_the_verb(dragoman: Dragoman, run: Path, tmp_path: Path) -> None:
    sources, targets = (write(tmp_path / n, [p[k] for p in PAIRS]) for k, n in enumerate("ab"))
    said = dragoman("align", run, sources, targets, "--head", "2.1")
    assert said.code == 0 and len(said.out.splitlines()) == len(PAIRS), said.err
    assert all(re.fullmatch(r"(\d+-\d+( |$))*", line) for line in said.out.splitlines())
    assert "layer 2, head 1" in said.err
    tabbed = write(tmp_path / "both.tsv", [f"{a}\t{b}" for a, b in PAIRS])
    assert dragoman("align", run, tabbed, "--head", "2.1").out == said.out
    barred = "".join(f"{a} ||| {b}\n" for a, b in PAIRS).encode()
    assert dragoman("align", run, "--head", "2.1", stdin=barred).out == said.out
    to = tmp_path / "links"
    assert dragoman("align", run, tabbed, "--head", "2.1", "--to", to).out == ""
    assert to.read_text(encoding="utf-8") == said.out
    chosen = dragoman("align", run, tabbed)
    assert re.search(
        r"aligned \d+ dev pairs .* agree on \d+ % of links by the HMM, .* aligns\n", chosen.err
    )
    by_text = dragoman("align", run, tabbed, "--statistical")
    assert chosen.out == by_text.out and "the HMM aligns" in chosen.err
    # Its own links as gold: the head that made them is found on one half and right on the other.
    gold = write(tmp_path / "gold", said.out.splitlines())
    found = dragoman("align", run, tabbed, "--gold", gold, "--gold-base", 0)
    assert found.code == 0 and "AER 0.000" in found.err and found.out == said.out, found.err
    assert "--head '2.1'" in found.err
    oracle = dragoman("align", run, tabbed, "--gold", gold, "--oracle", "--gold-base", 0)
    assert "an oracle" in oracle.err
    named = dragoman("align", run, tabbed, "--gold", gold, "--head", "1.1", "--gold-base", 0)
    assert named.code == 0 and "oracle" not in named.err and "on 5 pairs" in named.err


def test_statistics_align_without_the_model(dragoman: Dragoman, run: Path, tmp_path: Path) -> None:
    tabbed = write(tmp_path / "a.tsv", ["The dog sleeps.\tDer Hund schläft.", "\tNichts."])
    gold = write(tmp_path / "gold", ["0-0 1-1 2-2", ""])
    said = dragoman("align", run, tabbed, "--statistical", "--gold", gold, "--gold-base", 0)
    assert said.code == 0, said.err
    assert said.out == "0-0 1-1 2-2\n\n" and "AER 0.000" in said.err and "HMM" in said.err
    moved = shutil.copytree(run, tmp_path / "deep" / "run")
    (moved / "recipe.toml").write_text(
        (moved / "recipe.toml").read_text().replace("my.en", "gone.en"), encoding="utf-8"
    )
    said = dragoman("align", moved, tabbed)
    assert said.code == 0 and "cannot be used" in said.err and "guess" in said.err
    said = dragoman("align", moved, tabbed, "--statistical")
    assert said.code == 1 and "does not exist" in said.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--head", "9.1"), "there is no layer 9"),
        (("--head", "1.9"), "there is no head 9"),
        (("--head", "one"), "LAYER.HEAD"),
        (("--head", "1.1", "--step", "later"), "--step later"),
        (("--step", "choosing"), "--head"),
        (("--head", "1.1", "--statistical"), "Leave one out"),
        (("--gold-dev", "2"), "Set --gold"),
        (("--oracle",), "Set --gold"),
        (("--gold", "no"), "cannot read no"),
        (("more", "and more"), "3 files"),
    ],
)
def test_mistakes_get_one_message(
    dragoman: Dragoman, run: Path, tmp_path: Path, arguments: tuple[str, ...], told: str
) -> None:
    tabbed = write(tmp_path / "a.tsv", ["The dog .\tDer Hund ."])
    said = dragoman("align", run, tabbed, *arguments)
    assert said.code == 1 and told in said.err, said.err
    assert not said.out


def test_lines_and_gold_that_do_not_fit(dragoman: Dragoman, run: Path, tmp_path: Path) -> None:
    tabbed = write(tmp_path / "a.tsv", ["The dog .\tDer Hund ."] * 24)
    said = dragoman("align", run, stdin=b"The dog .\tDer Hund .\nno tab\n")
    assert said.code == 1 and "standard input, line 2" in said.err
    gold = write(tmp_path / "gold", ["1-1 2-2"] * 24)
    ask = ("align", run, tabbed, "--gold", gold)
    said = dragoman(*ask)
    assert said.code == 1 and "--gold-base 1" in said.err
    assert dragoman(*ask, "--gold-base", 1, "--gold-dev", 24).code == 1
    write(gold, ["3-3"] * 24)
    said = dragoman(*ask, "--gold-base", 0)
    assert said.code == 1 and "pair 1" in said.err and "3 and 3 words" in said.err
    write(gold, ["0-0"] * 23)
    said = dragoman(*ask)
    assert said.code == 1 and "23 lines of links for 24 pairs" in said.err
    # NAACL's files name pairs by their numbers, and need not reach the last.
    write(gold, ["1 1 1 S", "24 2 2 P"])
    assert dragoman(*ask, "--gold-dev", 3).code == 0


def test_recurrent_models_align_by_the_one_attention_that_they_have(tmp_path: Path) -> None:
    recurrent = untrained_run(tmp_path, recipe_name="demo-recurrent")
    assert dragoman.load(recurrent).align(PAIRS[:1], head="1.1")[0]
    with pytest.raises(DragomanError, match="there is no layer 2"):
        dragoman.load(recurrent).align(PAIRS[:1], head="2.1")


def test_a_pair_that_is_too_long_gets_no_links_and_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = untrained_run(tmp_path, "model.positions.kind='learned'", "model.positions.maximum=32")
    words = "hund " * 40
    with caplog.at_level("WARNING", "dragoman"):
        found = dragoman.load(run).align([("The dog .", words), PAIRS[0]], head="1.1")
    assert not found[0] and found[1] and "more than 31, gets no links" in caplog.text


@pytest.mark.parametrize("arguments", [(), ("--statistical",)])
def test_a_language_model_aligns_nothing(
    dragoman: Dragoman, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    letters = untrained_run(tmp_path, recipe_name="demo-letters")
    said = dragoman("align", letters, *arguments, stdin=b"The dog .\tDer Hund .\n")
    assert said.code == 1 and "is a language model, which cannot align words" in said.err
    assert len(said.err.splitlines()) == 1 and not said.out, said.err


def test_words_of_text_prepared_by_moses_are_those_of_the_text_that_is_given(
    run: Path, tmp_path: Path
) -> None:
    pytest.importorskip("sacremoses")
    moses = Path(shutil.copytree(run, tmp_path / "moses"))
    recipe = (moses / "recipe.toml").read_text(encoding="utf-8")
    (moses / "recipe.toml").write_text(
        recipe.replace("moses = false", "moses = true"), encoding="utf-8"
    )
    assert Run.open(moses).recipe.data.moses
    ((first, second),) = [Run.open(moses).source.tokens_of_words(["Don't stop."])[0]]
    assert second[-1] == 1 and len(first) == len(second)
    (links,) = dragoman.load(moses).align([("Don't stop.", "Halt nicht an!")])
    assert {target for _, target in links} == {0, 1, 2} and {s for s, _ in links} <= {0, 1}
