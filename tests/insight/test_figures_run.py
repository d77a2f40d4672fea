"""Figures that look into a run: every CSV against the weights file and plain arithmetic."""

from __future__ import annotations

import csv
import io
import itertools
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from dragoman.base.errors import DragomanError
from dragoman.insight.figures.catalogue import FIGURES, make_figure
from dragoman.insight.subject import Subject
from dragoman.pictures.figure import Figure, csv_files
from dragoman.tasks.catalogue import Run
from dragoman.tasks.training import small_model

Rows = list[dict[str, str]]
Read = Callable[[str], dict[str, Rows]]
Array = NDArray[np.float64]
SENTENCE = "The small man eats the dinosaur."


@pytest.fixture(scope="module")
def subject(tiny_run: Path) -> Subject:
    return Subject.open(Run.open(tiny_run), SENTENCE, train=small_model)


@pytest.fixture(scope="module")
def figures(subject: Subject) -> Callable[[str], Figure]:
    made: dict[str, Figure] = {}

    def make(name: str) -> Figure:
        if name not in made:
            made[name] = make_figure(name, subject)
        return made[name]

    return make


@pytest.fixture(scope="module")
def tables(figures: Callable[[str], Figure]) -> Read:
    def read(name: str) -> dict[str, Rows]:
        return {
            file.removeprefix(name).removesuffix(".csv").removeprefix("-"): list(
                csv.DictReader(io.StringIO(content))
            )
            for file, content in csv_files(figures(name)).items()
        }

    return read


def matrix(rows: Rows) -> Array:
    """A table of one word a row, its dimensions in columns."""
    return np.array([[float(v) for v in list(row.values())[1:]] for row in rows])


def square(rows: Rows, column: str) -> Array:
    values = [float(row[column]) for row in rows]
    side = round(len(values) ** 0.5)
    return np.array(values).reshape(side, side)


def softmax(scores: Array) -> Array:
    grown = np.exp(scores - scores.max(-1, keepdims=True))
    share: Array = grown / grown.sum(-1, keepdims=True)
    return share


def weights_of(subject: Subject, name: str) -> tuple[Array, Array]:
    state = subject.run.model().state_dict()
    return state[f"{name}.weight"].double().numpy(), state[f"{name}.bias"].double().numpy()


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_attention_rows_sum_to_one_and_the_future_is_dark(tables: Read, kind: str) -> None:
    rows = tables(f"attention-{kind}")[""]
    sums: dict[tuple[str, ...], float] = defaultdict(float)
    for row in rows:
        sums[row["layer"], row["head"], row["row"]] += float(row["weight"])
        # A word's later pieces have read its earlier ones, which stand one column on.
        if kind == "decoder" and int(row["column"]) > int(row["row"]) + 1:
            assert float(row["weight"]) == 0
    assert {key[:2] for key in sums} == {(a, b) for a in "12" for b in "1234"}
    assert all(total == pytest.approx(1, abs=1e-5) for total in sums.values())


def test_the_record_is_the_plain_formula_over_the_weights_file(
    subject: Subject, tables: Read
) -> None:
    """Softmax of (x W^Q)(x W^K) / √d_k, from x and the parameters alone."""
    inputs = matrix(tables("heads")["input"])
    (query, query_bias), (key, key_bias) = (
        weights_of(subject, f"encoder.0.attention.{part}") for part in ("query", "key")
    )
    queries, keys = inputs @ query.T + query_bias, inputs @ key.T + key_bias
    heads, width = 4, queries.shape[1] // 4
    record = subject.predictor.look(SENTENCE, subject.output.ids)
    for head in range(heads):
        mine = slice(head * width, (head + 1) * width)
        wanted = softmax(queries[:, mine] @ keys[:, mine].T / width**0.5)
        np.testing.assert_allclose(record.encoder[0, head], wanted, atol=1e-5)
        of_head = matrix(tables("heads")[f"query-{head + 1}"])
        np.testing.assert_allclose(of_head, queries[:, mine], atol=1e-5)


def test_the_input_is_embeddings_and_positions(subject: Subject, tables: Read) -> None:
    ids = subject.predictor.source_ids(SENTENCE)
    table = subject.run.model().state_dict()["source_embedding.weight"].double().numpy()
    width = table.shape[1]
    places = np.arange(len(ids))[:, None] / 10000 ** (np.arange(0, width, 2) / width)
    wanted = table[ids] * width**0.5
    wanted[:, 0::2] += np.sin(places)
    wanted[:, 1::2] += np.cos(places)
    np.testing.assert_allclose(matrix(tables("heads")["input"]), wanted, atol=1e-5)


def test_heads_are_joined_in_their_order(subject: Subject, tables: Read) -> None:
    read = tables("heads")
    inputs, joined = matrix(read["input"]), matrix(read["joined"])
    value, bias = weights_of(subject, "encoder.0.attention.value")
    values = inputs @ value.T + bias
    record = subject.predictor.look(SENTENCE, subject.output.ids)
    width = joined.shape[1] // 4
    for head in range(4):
        mine = slice(head * width, (head + 1) * width)
        np.testing.assert_allclose(
            joined[:, mine], record.encoder[0, head] @ values[:, mine], atol=1e-5
        )
    query, _ = weights_of(subject, "encoder.0.attention.query")
    for row in read[""]:
        head, part = int(row["head"]) - 1, int(row["slice of the input"]) - 1
        of_head = query[head * 8 : head * 8 + 8]
        share = (of_head[:, part * 8 : part * 8 + 8] ** 2).sum() / (of_head**2).sum()
        assert float(row["share of |W^Q|^2"]) == pytest.approx(share, rel=1e-5)


def test_four_steps_by_loop_by_matrix_and_by_numpy(tables: Read) -> None:
    read = tables("four-steps")
    queries, keys, values, output = (
        matrix(read[part]) for part in ("queries", "keys", "values", "output")
    )
    scores = queries @ keys.T
    rows = read[""]
    np.testing.assert_allclose(square(rows, "1 score"), scores, atol=1e-5)
    np.testing.assert_allclose(
        square(rows, "2 scaled"), scores / queries.shape[1] ** 0.5, atol=1e-5
    )
    weights = softmax(scores / queries.shape[1] ** 0.5)
    np.testing.assert_allclose(square(rows, "3 weight"), weights, atol=1e-6)
    np.testing.assert_allclose(square(rows, "loop"), weights, atol=1e-6)
    np.testing.assert_allclose(output, weights @ values, atol=1e-5)


def test_masked_weights(tables: Read) -> None:
    rows = tables("mask")[""]
    scores, allowed = square(rows, "scaled score"), square(rows, "allowed")
    assert (allowed == np.tri(len(allowed))).all()
    weights = square(rows, "weight")
    for place in range(len(scores)):
        wanted = softmax(scores[place, : place + 1])
        np.testing.assert_allclose(weights[place, : place + 1], wanted, atol=1e-6)
        assert (weights[place, place + 1 :] == 0).all()
    np.testing.assert_allclose(weights, square(rows, "model's"), atol=1e-5)


def test_look_up_beside_a_hash_table(tables: Read) -> None:
    read = tables("lookup")
    query, keys, values = (matrix(read[part]) for part in ("query", "keys", "values"))
    scores = keys @ query[0] / query.shape[1] ** 0.5
    weights = softmax(scores)
    found = np.array([float(row["weight"]) for row in read[""]])
    np.testing.assert_allclose(found, weights, atol=1e-5)
    chosen = [int(float(row["hash table"])) for row in read[""]]
    assert chosen == [int(i == scores.argmax()) for i in range(len(chosen))]
    np.testing.assert_allclose(matrix(read["output"])[0], weights @ values, atol=1e-5)


def test_what_one_sublayer_hands_on_the_next_takes_in(subject: Subject, tables: Read) -> None:
    rows = tables("layers")[""]
    for side in ("encoder", "decoder"):
        mine = [row for row in rows if row["module"].startswith(side)]
        for one, following in itertools.pairwise(mine):
            assert float(one["goes on"]) == pytest.approx(float(following["comes in"]), rel=1e-6)
    # |a + b|² = |a|² + |b|² + 2 a·b holds for each row, so nearly for the means.
    for row in rows:
        a, b, cosine, total = (float(row[k]) for k in ("comes in", "added", "cosine", "sum"))
        assert total**2 == pytest.approx(a * a + b * b + 2 * a * b * cosine, rel=0.1)
    state = subject.run.model().state_dict()
    for row in rows:
        gain = state[f"{row['module']}_norm.weight"].double()
        assert float(row["γ"]) == pytest.approx(float(gain.mean()), rel=1e-6)


def test_without_a_head_is_without_its_columns(subject: Subject, tables: Read) -> None:
    """Zeros in W^O where a head's output enters: another way to switch it off."""
    import torch

    from dragoman.nn.layout import Sequences

    (target,) = (ids.tolist() for ids in subject.run.target_text.encode([subject.output.text]))
    rows = tables("head-importance")[""]
    assert len(rows) == 3 * 2 * 4
    text = subject.run.target_text
    for kind, name in (("encoder", "encoder.1.attention"), ("cross", "decoder.0.cross_attention")):
        model = subject.run.model()
        with torch.inference_mode():
            model.get_submodule(name).get_parameter("output.weight")[:, 8:16] = 0
            source = torch.tensor(subject.predictor.source_ids(SENTENCE))
            memory = model.encode(Sequences.of([source]))
            hidden = model.decode(Sequences.of([torch.tensor([text.bos, *target])]), memory)
            logits = model.project(hidden)
        loss = torch.nn.functional.cross_entropy(logits, torch.tensor([*target, text.eos]))
        layer = str(int(name.split(".")[1]) + 1)
        (found,) = (
            row
            for row in rows
            if (row["attention"], row["layer"], row["head"]) == (kind, layer, "2")
        )
        assert float(found["loss without it"]) == pytest.approx(float(loss), rel=1e-4)
        growth = float(found["loss without it"]) - float(found["growth"])
        assert growth == pytest.approx(float(rows[0]["loss without it"]) - float(rows[0]["growth"]))


def test_without_positions_order_is_nothing(tiny_run: Path) -> None:
    subject = Subject.open(Run.open(tiny_run), "the dog sees the cat")
    (name,) = (one for one in FIGURES if one == "order")
    made = make_figure(name, subject)
    rows = list(csv.DictReader(io.StringIO(csv_files(made)["order.csv"])))
    assert len(rows) >= 5
    assert max(float(row["difference off"]) for row in rows) < 1e-5
    assert max(float(row["difference on"]) for row in rows) > 1e-2
    written = list(csv.DictReader(io.StringIO(csv_files(made)["order-translations.csv"])))
    off = [row["translation"] for row in written if row["positions"] == "off"]
    assert off[0] == off[1]


def test_links_are_the_strongest_looks(tables: Read) -> None:
    weights = tables("attention-cross")[""]
    links = tables("alignment")[""]
    found = []
    for layer in "12":
        strongest = []
        for link in links:
            mean: dict[str, float] = defaultdict(float)
            for row in weights:
                if row["layer"] == layer and row["row"] == link["target word"]:
                    mean[row["column"]] += float(row["weight"]) / 4
            mean.pop(max(mean, key=int))
            strongest.append(max(mean, key=lambda place: mean[place]))
        found.append(strongest)
    assert [link["source word"] for link in links] in found


def test_the_pronoun_needs_the_demo(subject: Subject) -> None:
    with pytest.raises(DragomanError, match="dragoman demo"):
        make_figure("pronoun", subject)


def test_no_run_no_figure_of_a_run() -> None:
    with pytest.raises(DragomanError, match="--run RUN"):
        make_figure("lookup", None)


@pytest.mark.slow
def test_learned_positions_are_trained_where_a_run_has_none(tables: Read) -> None:
    read = tables("position-learned")
    table = matrix(read[""])
    sizes = np.linalg.norm(table, axis=1)
    cosines = table @ table.T / sizes[:, None] / sizes
    found = np.array([float(row["value"]) for row in read["similarity"]]).reshape(cosines.shape)
    np.testing.assert_allclose(found, cosines, atol=1e-6)


@pytest.mark.parametrize("name", ["four-steps", "mask", "heads", "lookup"])
def test_a_sentence_that_was_asked_for_is_the_one_that_is_shown(tiny_run: Path, name: str) -> None:
    """Up to 24 tokens whole; of a longer one the beginning, and a note says so."""
    fits = "The animal didn't cross the street because it was too tired."
    subject = Subject.open(Run.open(tiny_run), fits)
    assert 14 < len(subject.predictor.source_ids(fits)) <= 24
    shown = [note.english for note in make_figure(name, subject).notes]
    assert any(fits in note for note in shown) and not any("tokens; this" in note for note in shown)

    too_long = f"{fits[:-1]} and {fits[0].lower()}{fits[1:]}"
    notes = make_figure(name, Subject.open(Run.open(tiny_run), too_long)).notes
    assert "this figure shows 24" in notes[0].english and "24개까지" in notes[0].korean
    beginning = notes[0].english.partition("“")[2].rstrip("”")
    assert beginning and too_long.startswith(beginning)
    assert any(beginning in note.english for note in notes[1:])
