"""Figures of a run: their CSV against the paper's formulas over the weights file, in NumPy."""

from __future__ import annotations

import csv
import io
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from plain_transformer import Array, PlainTransformer, Reading, Sublayer, softmax
from safetensors.numpy import load_file, save_file
from tiny_recipe import TINY
from untrained_run import untrained_run

from dragoman.demo.corpus import PronounProbe, pronoun_probes
from dragoman.insight.figures import run as figures_of_run
from dragoman.insight.figures.catalogue import make_figure
from dragoman.insight.subject import Subject
from dragoman.pictures.figure import csv_files
from dragoman.tasks.catalogue import Run

Rows = list[dict[str, str]]
Read = Callable[[str], dict[str, Rows]]
SENTENCE = "The small man eats the dinosaur."
HEADS = 4


def read(name: str, subject: Subject) -> dict[str, Rows]:
    """The CSV files of a figure as they would be read again, by the table's name."""
    return {
        file.removeprefix(name).removesuffix(".csv").removeprefix("-"): list(
            csv.DictReader(io.StringIO(content))
        )
        for file, content in csv_files(make_figure(name, subject)).items()
    }


@pytest.fixture(scope="module", params=["post", "pre"])
def folder(
    request: pytest.FixtureRequest, tiny_run: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A run whose norms stand after each sub-layer, and one of random weights where they stand
    before it."""
    if request.param == "post":
        return tiny_run
    made = untrained_run(tmp_path_factory.mktemp("pre"), *TINY, "model.norm=pre")
    draw, weights = np.random.default_rng(1), load_file(made / "model.safetensors")
    for name, array in weights.items():
        if "norm." in name:
            weights[name] = array + 0.3 * draw.standard_normal(array.shape, np.float32)
    save_file(weights, made / "model.safetensors")
    return made


@pytest.fixture(scope="module")
def subject(folder: Path) -> Subject:
    return Subject.open(Run.open(folder), SENTENCE)


@pytest.fixture(scope="module")
def plain(folder: Path) -> PlainTransformer:
    return PlainTransformer(folder, HEADS)


def words_of(pieces: Sequence[str]) -> list[int]:
    """The word of each piece: one begins with ▁, and a symbol is one."""
    word, found = -1, []
    for place, piece in enumerate(pieces):
        word += place == 0 or piece.startswith("▁") or piece == "</s>"
        found.append(word)
    return found


def by_words(weights: Array, rows: Sequence[int], columns: Sequence[int]) -> Array:
    """Weights of pieces -> of words: what a word's pieces get is added up, what they give is the
    mean."""
    added = np.zeros((len(weights), max(columns) + 1))
    np.add.at(added.T, list(columns), weights.T)
    return np.stack([added[[r == word for r in rows]].mean(0) for word in range(max(rows) + 1)])


def both(plain: PlainTransformer, subject: Subject) -> tuple[Reading, Reading, list[int]]:
    """The subject's translation, read again: source, target, and the target's tokens."""
    given = [subject.run.target_text.bos, *subject.output.ids]
    memory = plain.encode(subject.predictor.source_ids(subject.sentence))
    return memory, plain.decode(given, memory.rows), given


def test_every_weight_of_every_layer_and_head(plain: PlainTransformer, subject: Subject) -> None:
    memory, target, given = both(plain, subject)
    source_ids = subject.predictor.source_ids(SENTENCE)
    source = words_of(subject.run.source_text.pieces(source_ids))
    written = words_of([*subject.run.target_text.pieces(given[1:]), "</s>"])
    # The step at the start symbol has read that alone; a word cut off keeps its end apart.
    had_read = [0, *(word + 1 for word in written[:-1])]
    for kind, reading, name, rows, columns in (
        ("encoder", memory, "encoder.{}.attention", source, source),
        ("decoder", target, "decoder.{}.self_attention", written, had_read),
        ("cross", target, "decoder.{}.cross_attention", written, source),
    ):
        wanted = [
            by_words(head, rows, columns)
            for layer in range(2)
            for head in reading.attention[name.format(layer)]
        ]
        found = np.array([float(row["weight"]) for row in read(f"attention-{kind}", subject)[""]])
        np.testing.assert_allclose(found, np.stack(wanted).ravel(), atol=1e-5)


def test_order(folder: Path, plain: PlainTransformer) -> None:
    subject = Subject.open(Run.open(folder), "the dog sees the cat")
    tables = read("order", subject)
    rows = tables[""]
    sentences = [row["source"] for row in tables["translations"] if row["positions"] == "on"]
    assert sentences[0] != sentences[1]
    first, second = map(subject.predictor.source_ids, sentences)
    for column, positions in (("difference on", True), ("difference off", False)):
        one, other = (plain.encode(ids, positions=positions).rows for ids in (first, second))
        for row in rows:
            here, there = int(row["place"]), int(row["place in the other"])
            assert first[here] == second[there]
            wanted = np.linalg.norm(one[here] - other[there]) / np.linalg.norm(one[here])
            assert float(row[column]) == pytest.approx(wanted, abs=1e-5)
    assert sorted(int(row["place in the other"]) for row in rows) == list(range(len(second)))


def test_temperature(plain: PlainTransformer, subject: Subject) -> None:
    tables = read("temperature", subject)
    _, target, _ = both(plain, subject)
    logits = plain.logits(target.rows)
    top = np.array([float(row["logit"]) for row in tables[""]])
    largest = -np.sort(-logits, axis=1)[:, : len(top)]
    step = int(np.abs(largest - top).max(axis=1).argmin())
    np.testing.assert_allclose(top, largest[step], atol=1e-4)
    ordered = -np.sort(-logits[step])
    for column in ("T = 0.5", "T = 1", "T = 2"):
        wanted = softmax(ordered / float(column.removeprefix("T = ")))[: len(top)]
        found = [float(row[column]) for row in tables[""]]
        np.testing.assert_allclose(found, wanted, atol=1e-4)
    for row in tables["curve"]:
        share = softmax(ordered / float(row["T"]))
        entropy = -(share * np.log(np.maximum(share, 1e-300))).sum()
        assert float(row["entropy"]) == pytest.approx(entropy, abs=1e-3)
        assert float(row["likeliest"]) == pytest.approx(share[0], abs=1e-3)


def test_length_penalty(plain: PlainTransformer, subject: Subject) -> None:
    tables = read("length-penalty", subject)
    memory = plain.encode(subject.predictor.source_ids(SENTENCE))
    text = subject.run.target_text
    numbers = {piece: i for i, piece in enumerate(text.pieces(range(text.size)))}
    for row in tables[""]:
        for scores in tables["scores"]:
            divisor = ((5 + int(row["tokens"])) / 6) ** float(scores["alpha"])
            assert float(scores[row["number"]]) == pytest.approx(float(row["log P"]) / divisor)
        ids = [numbers[piece] for piece in row["pieces"].split(" ") if piece]
        count = int(row["tokens"])
        assert count - len(ids) in (0, 1), "the end symbol counts, unless it was cut off"
        logits = plain.logits(plain.decode([text.bos, *ids], memory.rows).rows)
        chosen = np.log(softmax(logits))[range(count), [*ids, text.eos][:count]]
        assert float(row["log P"]) == pytest.approx(chosen.sum(), abs=1e-3)
    by_score = [float(row["score"]) for row in tables[""]]
    assert by_score == sorted(by_score, reverse=True)
    assert len({row["tokens"] for row in tables[""]}) == len(tables[""]), "one of each length"


def root_mean_square(rows: Array) -> float:
    return float(np.sqrt(np.square(rows).mean(-1)).mean())


def test_sizes_along_the_stream(plain: PlainTransformer, subject: Subject) -> None:
    pairs = subject.pairs or [(subject.sentence, subject.output.text)]
    passed: dict[str, list[Sublayer]] = defaultdict(list)
    for source, target in pairs:
        text = subject.run.target_text
        memory = plain.encode(subject.predictor.source_ids(source))
        reading = plain.decode([text.bos, *text.encode([target])[0].tolist()], memory.rows)
        for one in (*memory.sublayers, *reading.sublayers):
            passed[one.name].append(one)
    rows = read("layers", subject)[""]
    assert [row["module"] for row in rows] == list(passed)
    for row in rows:
        parts = passed[row["module"]]
        x, y, after = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("stream", "added", "after")
        )
        cosine = (x * y).sum(-1) / np.linalg.norm(x, axis=-1) / np.linalg.norm(y, axis=-1)
        norm = f"{row['module']}_norm"
        gain, bias = (plain.weights[f"{norm}.{part}"] for part in ("weight", "bias"))
        wanted = {
            "comes in": root_mean_square(x),
            "added": root_mean_square(y),
            "cosine": cosine.mean(),
            "sum": root_mean_square(x + y),
            "goes on": root_mean_square(after),
            "γ": gain.mean(),
            "β": np.sqrt(np.square(bias).mean()),
        }
        for column, value in wanted.items():
            assert float(row[column]) == pytest.approx(value, abs=1e-4), (row, column)


def test_error_rates_of_an_alignment(tiny_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against links made up here: AER = 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|)."""
    subject = Subject.open(Run.open(tiny_run), SENTENCE)
    # Its own translation has few words; this one has as many as the source.
    (given,) = subject.predictor.score([(SENTENCE, "Der kleine Mann isst den Dinosaurier.")])
    vars(subject)["output"] = given
    weights: dict[tuple[int, int], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in read("attention-cross", subject)[""]:
        place = int(row["layer"]), int(row["head"])
        weights[place][int(row["row"])].append(float(row["weight"]))

    # A step behind, of pieces: those of one word are in the mean that of the word.
    pieces = subject.attention
    of_source = np.cumsum([piece.startswith("▁") for piece in pieces.source[:-1]]) - 1
    of_target = np.cumsum([piece.startswith("▁") for piece in pieces.target[:-1]]) - 1

    def links(layer: int, head: int, step: str) -> set[tuple[int, int]]:
        heads = [head] if head else range(1, HEADS + 1)
        if step == "choosing":
            tables = [np.array(list(weights[layer, one].values())) for one in heads]
            steps = np.mean(tables, axis=0)[:-1, :-1]  # nothing is linked to the end symbol
        else:
            read_by = np.mean([pieces.cross[layer - 1, one - 1] for one in heads], axis=0)[1:, :-1]
            steps = np.array(
                [
                    [
                        read_by[of_target == target][:, of_source == source].sum(axis=1).mean()
                        for source in range(of_source[-1] + 1)
                    ]
                    for target in range(of_target[-1] + 1)
                ]
            )
        return {(int(row.argmax()), target) for target, row in enumerate(steps)}

    # What one head finds at even places is sure; what others find there may be.
    sure = {link for link in links(1, 1, "choosing") if link[1] % 2 == 0}
    odd = {(source, target + 1) for source, target in sure}
    possible = (links(2, 2, "choosing") | links(1, 1, "choosing") | odd) - sure
    gold = " ".join([*(f"{s}-{t}" for s, t in sure), *(f"{s}?{t}" for s, t in possible)])
    known = {(subject.sentence, subject.output.text): gold}
    monkeypatch.setattr(figures_of_run, "_GOLD", known)
    rows = read("alignment", subject)["aer"]
    assert len(rows) == 2 * 2 * (HEADS + 1)
    for row in rows:
        found = links(int(row["layer"]), int(row["head"]), row["step"])
        right = len(found & sure) + len(found & (sure | possible))
        assert float(row["AER"]) == pytest.approx(1 - right / (len(found) + len(sure)))
    drawn = next(row for row in rows if (row["layer"], row["head"]) == ("1", "1"))
    assert float(drawn["AER"]) == 0, "all that it found is sure or possible"


@pytest.fixture(scope="module")
def untrained(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A run of the embedded corpus whose weights are random; changes to the recipe."""

    def make(*changes: str) -> Path:
        return untrained_run(tmp_path_factory.mktemp("untrained"), *TINY, *changes)

    return make


def test_learned_positions_are_those_of_the_run(untrained: Callable[..., Path]) -> None:
    folder = untrained("model.positions.kind=learned", "model.positions.maximum=64")
    subject = Subject.open(Run.open(folder), SENTENCE)
    tables = read("position-learned", subject)
    table = PlainTransformer(folder, HEADS).weights["source_positions.table"][:32]
    found = np.array([[float(v) for v in list(row.values())[1:]] for row in tables[""]])
    np.testing.assert_allclose(found, table, atol=1e-7)
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    cosines = [float(row["value"]) for row in tables["similarity"]]
    np.testing.assert_allclose(cosines, (unit @ unit.T).ravel(), atol=1e-6)


@pytest.mark.parametrize("coinciding", [False, True])
def test_both_hops(
    untrained: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, coinciding: bool
) -> None:
    """The heads with the most weight where it should be, over all sentences but those shown."""
    if coinciding:  # noun and adjective are one word, so one head looks most at both
        given = [[replace(p, decider=p.antecedent) for p in pair] for pair in pronoun_probes()]
        monkeypatch.setattr("dragoman.insight.figures.run.pronoun_probes", lambda: given)
    folder = untrained()
    subject = Subject.open(Run.open(folder))
    plain = PlainTransformer(folder, HEADS)
    text = subject.run.source_text

    def look(probe: PronounProbe) -> tuple[Array, Array]:
        """From the pronoun (L, H, words), from "it" (L, H, words)."""
        ids = subject.predictor.source_ids(probe.source)
        given = text.encode([probe.reference])[0].tolist()
        source = words_of(text.pieces(ids))
        written = words_of([*text.pieces(given), "</s>"])
        memory = plain.encode(ids)
        target = plain.decode([text.bos, *given], memory.rows)

        def stacked(reading: Reading, name: str, rows: list[int], word: int) -> Array:
            return np.stack([
                [by_words(head, rows, source)[word] for head in reading.attention[one]]
                for one in reading.attention if name in one
            ])  # fmt: skip

        return (
            stacked(target, "cross", written, probe.pronoun_word),
            stacked(memory, "encoder", source, probe.it),
        )

    pairs = given if coinciding else pronoun_probes()
    mass = [np.zeros((2, HEADS)) for _ in range(3)]
    for probe in (probe for pair in pairs[1:] for probe in pair):
        from_pronoun, from_it = look(probe)
        mass[0] += from_pronoun[:, :, probe.it]
        mass[1] += from_it[:, :, probe.antecedent]
        mass[2] += from_it[:, :, probe.decider]
    cross, *both = [np.unravel_index(one.argmax(), one.shape) for one in mass]
    if coinciding:
        assert both.pop() == both[0]
    made = make_figure("pronoun", subject)
    said = [[int(n) - 1 for n in re.findall(r"\d+", panel.to_dict()[key])]
            for panel in made.panels for key in ("first_from", "second_from")]  # fmt: skip
    assert said == [[*map(int, cross)], [int(n) for one in both for n in one]] * 2
    note = made.notes[-1]
    assert (
        ("mean of two heads" in note.english)
        == ("두 헤드의 평균" in note.korean)
        == (not coinciding)
    )
    assert all(("mean of" in panel.to_dict()["second_from"]) != coinciding for panel in made.panels)
    rows = iter(read("pronoun", subject)[""])
    for probe in pairs[0]:
        from_pronoun, from_it = look(probe)
        second = np.mean([from_it[one] for one in both], axis=0)
        for place, word in enumerate([*probe.source.split(), "</s>"]):
            row = next(rows)
            assert (row["pronoun"], row["source word"]) == (probe.pronoun, word)
            assert float(row["from the pronoun"]) == pytest.approx(
                from_pronoun[cross][place], abs=1e-5
            )
            assert float(row["from it"]) == pytest.approx(second[place], abs=1e-5)
