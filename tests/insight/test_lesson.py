"""The numbers of a lesson, each computed from the tensors of the model in another way."""

from __future__ import annotations

import asyncio
import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from command_line import Dragoman
from serving_echo import client_of, open_run
from short_run import short_run

from dragoman.base.errors import DragomanError
from dragoman.engine.attention import open_cell
from dragoman.engine.settings import EngineSettings
from dragoman.forms.text_form import TextForm
from dragoman.insight.lesson.answer import Lesson, OpenedHeads
from dragoman.insight.lesson.lesson import PAPER, make_lesson, subject_of
from dragoman.insight.lesson.reader import Reader
from dragoman.insight.lesson.steps import pieces_step
from dragoman.models.interface import Part
from dragoman.models.transformer.model import Transformer
from dragoman.nn.layout import Sequences
from dragoman.nn.probes import Probe
from dragoman.search.hypothesis import Hypothesis, hypothesis_of, length_penalty
from dragoman.serving.operate.settings import ServeSettings
from dragoman.tasks.catalogue import Run

CLOSE = 1e-4
"""Fp32 sums in another order, beside six digits."""


@pytest.fixture(scope="module")
def run(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run.open(short_run(tiny_run, tmp_path_factory.mktemp("lesson") / "tiny"))


@pytest.fixture(scope="module")
def lesson(run: Run) -> Lesson:
    return make_lesson(subject_of(run, "", "fp32"))


@pytest.fixture(scope="module")
def model(run: Run) -> Transformer:
    model = run.model()
    assert isinstance(model, Transformer)
    return model


@pytest.fixture(scope="module")
def ids(run: Run, lesson: Lesson) -> list[int]:
    return run.source.values([lesson.sentence.text])[0]


@pytest.fixture(scope="module")
def chosen(run: Run, lesson: Lesson) -> list[int]:
    """The tokens of the translation."""
    return list(lesson.next.chosen)


def shares_of(
    model: Transformer, ids: list[int], given: list[int], probe: Probe | None = None
) -> torch.Tensor:
    """(T, V), the probabilities of each next token."""
    with torch.inference_mode(), probe or Probe():
        memory = model.encode(Sequences.of([torch.tensor(ids)]))
        rows = model.decode(Sequences.of([torch.tensor(given)]), memory)
        return model.project(rows).double().softmax(-1)


def test_it_begins_with_the_sentence_of_the_paper(lesson: Lesson) -> None:
    assert lesson.sentence.text == PAPER and not lesson.is_own
    assert lesson.other is not None and lesson.other.text == PAPER.replace("tired", "wide")
    assert (
        lesson.sentence.tokens[lesson.focus].strip("▁")
        == "it"[: len(lesson.sentence.tokens[lesson.focus]) - 1]
    )
    assert PAPER.split()[lesson.deciding or 0] == "tired."


def test_the_weights_are_those_of_the_model(
    lesson: Lesson, model: Transformer, ids: list[int], chosen: list[int]
) -> None:
    with torch.inference_mode(), Probe() as probe:
        memory = model.encode(Sequences.of([torch.tensor(ids)]))
        model.decode(Sequences.of([torch.tensor([1, *chosen])]), memory)
    told: dict[Part, list[list[list[list[float]]]]] = {
        "encoder": lesson.sentence.encoder,
        "decoder": lesson.sentence.decoder,
        "cross": lesson.sentence.cross,
    }
    for part, weights in told.items():
        layers = model.attentions_of(part)
        assert len(weights) == len(layers) > 0
        for one, layer in zip(layers, weights, strict=True):
            np.testing.assert_allclose(layer, probe.attention[one.name][0], atol=CLOSE)


@pytest.mark.parametrize("part", ["encoder", "cross"])
def test_a_row_of_attention_is_query_times_key_over_the_root(
    part: Part, lesson: Lesson, model: Transformer, ids: list[int], chosen: list[int]
) -> None:
    opened: OpenedHeads = lesson.attention if part == "encoder" else lesson.memory
    layer = model.attentions_of(part)[opened.layer]
    queries, keys, values = map(np.array, (opened.queries, opened.keys, opened.values))
    assert opened.scale == pytest.approx(1 / math.sqrt(queries.shape[1]), rel=1e-5)
    for head in range(layer.heads):
        products = [
            sum(q * k for q, k in zip(queries[head], key, strict=True)) for key in keys[head]
        ]
        np.testing.assert_allclose(opened.products[head], products, atol=CLOSE)
        grown = [math.exp(product * opened.scale) for product in products]
        weights = np.array(grown) / sum(grown)
        np.testing.assert_allclose(opened.weights[head], weights, atol=CLOSE)
        np.testing.assert_allclose(opened.outputs[head], weights @ values[head], atol=CLOSE)
        for column in range(len(ids)):
            target = torch.tensor([1, *chosen])
            cell = open_cell(model, layer, head, opened.row, column, torch.tensor(ids), target)
            np.testing.assert_allclose(queries[head], cell.query, atol=CLOSE)
            np.testing.assert_allclose(keys[head][column], cell.key, atol=CLOSE)
            size = float(cell.adds.square().mean().sqrt())
            assert opened.adds[head][column] == pytest.approx(size, abs=CLOSE)


def test_a_head_that_is_off_adds_nothing(
    lesson: Lesson, run: Run, ids: list[int], chosen: list[int]
) -> None:
    """As if its part of W^O were zero."""
    for change in lesson.changes:
        if change.head is None:
            continue
        changed = run.model()
        assert isinstance(changed, Transformer)
        output = changed.encoder[change.layer or 0].attention.output.weight
        width = output.shape[1] // int(lesson.model.sizes["heads"])
        with torch.no_grad():
            output[:, change.head * width : (change.head + 1) * width] = 0
        place = lesson.sentence.place
        shares = shares_of(changed, ids, [1, *chosen[:place]])[-1]
        wanted = [*chosen, run.target.eos][place]
        assert change.probability == pytest.approx(float(shares[wanted]), abs=CLOSE)
        assert [change.best] == run.target.names_of([int(shares.argmax())])
    layer, head = lesson.encoder
    alone = [one for one in lesson.changes if one.head is not None]
    assert (alone[0].layer, len(alone)) == (layer, lesson.model.sizes["heads"])
    assert min(alone, key=lambda one: one.probability).head == head


def test_a_hidden_word_is_looked_at_by_nobody(
    lesson: Lesson, run: Run, model: Transformer, ids: list[int], chosen: list[int]
) -> None:
    place, word_of = lesson.sentence.place, lesson.sentence.words
    hidden = [one for one in lesson.changes if one.hidden is not None]
    assert [one.hidden for one in hidden] == list(range(word_of[-1]))
    for change in hidden:
        places = [token for token, word in enumerate(word_of) if word == change.hidden]
        shares = shares_of(model, ids, [1, *chosen[:place]], Probe(hidden=places))[-1]
        wanted = [*chosen, run.target.eos][place]
        assert change.probability == pytest.approx(float(shares[wanted]), abs=CLOSE)


def test_the_sizes_of_the_first_layer(lesson: Lesson, model: Transformer, ids: list[int]) -> None:
    first, second = lesson.sublayers[:2]
    assert [one.kind for one in lesson.sublayers[:2]] == ["self-attention", "feed-forward"]
    assert len(lesson.sublayers) == len(model.sublayers)
    layer, layout = model.encoder[0], Sequences.of([torch.tensor(ids)]).layout
    with torch.inference_mode():
        x = model.input_terms(torch.tensor(ids), "source")["sum"]
        added = layer.attention.forward(x, layout)
        after = layer.attention_norm.forward(x + added)

    def sizes(rows: torch.Tensor) -> list[float]:
        return rows.square().mean(-1).sqrt().tolist()

    assert lesson.model.sizes["norm"] == "post"
    np.testing.assert_allclose(first.stream, sizes(x), rtol=CLOSE)
    np.testing.assert_allclose(first.added, sizes(added), rtol=CLOSE, atol=CLOSE)
    np.testing.assert_allclose(first.after, sizes(after), rtol=CLOSE)
    assert second.stream == first.after


def test_the_mask_only_takes_the_future_away(lesson: Lesson) -> None:
    for head, unmasked in enumerate(lesson.decoding.unmasked):
        for row, weights in enumerate(unmasked):
            assert sum(weights) == pytest.approx(1, abs=CLOSE)
            past = np.array(weights[: row + 1])
            masked = lesson.sentence.decoder[0][head][row]
            np.testing.assert_allclose(masked[: row + 1], past / past.sum(), atol=CLOSE)
            assert not any(masked[row + 1 :])
    assert any(weights[-1] > CLOSE for rows in lesson.decoding.unmasked for weights in rows[:-1])


def test_the_next_word_with_temperature_smoothing_and_penalty(
    lesson: Lesson, run: Run, model: Transformer, ids: list[int], chosen: list[int]
) -> None:
    step, place = lesson.next, lesson.sentence.place
    shares = shares_of(model, ids, [1, *chosen])
    order = shares[place].argsort(descending=True)[: len(step.candidates)]
    pieces = run.target.names_of([int(token) for token in order])
    assert step.candidates == pieces
    for temperature, told in zip(step.temperatures, step.probabilities, strict=True):
        warm = (shares[place].log() / temperature).softmax(-1)[order]
        np.testing.assert_allclose(told, warm, atol=CLOSE)
    wanted = [*chosen, run.target.eos]
    each = [float(row[token]) for row, token in zip(shares, wanted, strict=True)]
    np.testing.assert_allclose(lesson.sentence.probabilities, each, atol=CLOSE)
    epsilon, size = run.recipe.training.label_smoothing, run.target.size
    assert step.wanted == pytest.approx(1 - epsilon + epsilon / size, rel=1e-5)
    for one in step.hypotheses:
        for alpha, score in zip(step.alphas, one.scores, strict=True):
            ranked = one.log_probability / length_penalty(one.length, alpha)
            assert score == pytest.approx(ranked, rel=1e-4)
    assert [column.outcome for column in step.beam[-1]].count("kept") <= lesson.model.beam


def test_without_positions_the_order_is_lost(
    lesson: Lesson, model: Transformer, ids: list[int]
) -> None:
    step = lesson.positions
    assert {swap.without for swap in step.swaps} == {step.without}
    assert max(swap.difference for swap in step.swaps) < 1e-4
    told = next(swap for swap in step.swaps if swap.words == (1, 5))
    assert told.text == "The street didn't cross the animal because it was too tired."
    width = int(lesson.model.sizes["model_dim"])
    for position, row in enumerate(step.encodings["sinusoidal"]):
        for i, value in enumerate(row):
            angle = position / 10_000 ** (i // 2 * 2 / width)
            wave = math.sin(angle) if i % 2 == 0 else math.cos(angle)
            assert value == pytest.approx(wave, abs=1e-5)
    assert step.encodings["binary"][5][:4] == [1, 0, 1, 0]


def test_the_merges_end_in_the_tokens(lesson: Lesson, run: Run) -> None:
    for cut in lesson.pieces:
        assert cut.steps[-1] == run.source_text.pieces(cut.ids)
        assert "".join(cut.steps[0]) == "▁" + cut.word
        for fewer, more in zip(cut.steps[1:], cut.steps, strict=False):
            assert len(fewer) == len(more) - 1 and "".join(fewer) == "".join(more)


def test_letters_that_the_vocabulary_does_not_know(run: Run) -> None:
    reader = Reader(subject_of(run, PAPER, "fp32").predictor)
    for cut in pieces_step(reader, "The Ωmega saw ЖЖ ."):
        assert cut.steps[-1] == run.source_text.pieces(cut.ids)
        assert cut.unknown == cut.steps[-1].count("<unk>")


def test_the_words_of_moses_are_cut(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader(subject_of(run, PAPER, "fp32").predictor)
    monkeypatch.setattr(TextForm, "prepare", lambda _, text: text.lower().replace(".", " ."))
    cuts = pieces_step(reader, "The dog sleeps.")
    assert [cut.word for cut in cuts] == ["the", "dog", "sleeps", "."]
    ids = run.source_text.encode_lists(["the dog sleeps ."])[0]
    assert [token for cut in cuts for token in cut.ids] == ids


def test_a_translation_that_is_the_beginning_of_the_other(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They differ where the shorter one ends."""

    def translate(reader: Reader, text: str) -> tuple[Hypothesis, list[int]]:
        tokens = [20, 21, 22] if text == PAPER else [20]
        best = hypothesis_of(tokens, [-1.0] * (len(tokens) + 1), finished=True)
        return best, reader.predictor.source_ids(text)

    monkeypatch.setattr("dragoman.insight.lesson.lesson._translate", translate)
    made = make_lesson(subject_of(run, PAPER, "fp32"))
    assert made.other is not None
    assert made.sentence.place == made.other.place == 1
    assert made.other.output_tokens[1] == "</s>"


def test_a_cut_translation_is_not_compared_with_the_server(run: Run) -> None:
    """The server does not cut it, so it differs, but not by rounding."""
    reader = Reader(subject_of(run, PAPER, "fp32").predictor)
    for finished in (False, True):
        best = hypothesis_of([20, 21], [-1.0] * (2 + finished), finished=finished)
        made = reader.sentence(PAPER, best, 0, None)
        assert made.is_cut != finished and (made.served is not None) == finished


def test_teacher_forcing_reads_what_is_right(
    lesson: Lesson, run: Run, model: Transformer, ids: list[int], chosen: list[int]
) -> None:
    pieces = [one.wanted for one in lesson.decoding.forced]
    assert pieces[-1] == "</s>"
    reference = lesson.sentence.reference
    given = chosen if reference is None else run.target.tokens([reference])[0]
    shares = shares_of(model, ids, [1, *given])
    for row, token, step in zip(
        shares, [*given, run.target.eos], lesson.decoding.forced, strict=True
    ):
        assert step.probability == pytest.approx(float(row[token]), abs=CLOSE)
        assert run.target.names_of([int(row.argmax())]) == [step.best]


def test_each_moment_of_the_film_is_asked(
    lesson: Lesson, run: Run, ids: list[int], chosen: list[int]
) -> None:
    files = sorted((run.folder / "film").glob("*.safetensors"))
    assert files[0].stem == "00000000"
    assert [one.update for one in lesson.learning.moments] == [int(file.stem) for file in files]
    for moment, file in zip(lesson.learning.moments, files, strict=True):
        earlier = run.model(file)
        assert isinstance(earlier, Transformer)
        place = lesson.sentence.place
        shares = shares_of(earlier, ids, [1, *chosen[:place]])[-1]
        wanted = [*chosen, run.target.eos][place]
        assert moment.probability == pytest.approx(float(shares[wanted]), abs=CLOSE)
        assert [moment.best] == run.target.names_of([int(shares.argmax())])
    losses = {one["update"]: one["nll"] for one in run.metrics() if one["kind"] == "update"}
    for update, loss in lesson.learning.training:
        assert loss == pytest.approx(losses[update], rel=1e-5)


def test_a_run_without_a_film_shows_its_snapshots(run: Run, tmp_path: Path) -> None:
    folder = shutil.copytree(run.folder, tmp_path / "older", ignore=shutil.ignore_patterns("film"))
    snapshots = [update for update, _ in run.snapshots()]
    moments = make_lesson(subject_of(Run.open(folder), "", "fp32")).learning.moments
    assert snapshots and [moment.update for moment in moments] == snapshots


def test_a_skipped_update_and_a_damaged_film_are_left_out(run: Run, tmp_path: Path) -> None:
    folder = shutil.copytree(run.folder, tmp_path / "odd")
    first, *others = (folder / "metrics.jsonl").read_text("utf-8").splitlines()
    skipped = json.loads(first) | {"loss": None, "nll": None, "perplexity": None, "skipped": True}
    (folder / "metrics.jsonl").write_text("\n".join([json.dumps(skipped), *others, ""]), "utf-8")
    damaged, *whole = (update for update, _ in run.film())
    (folder / "film" / f"{damaged:08}.safetensors").write_bytes(b"damaged")
    learning = make_lesson(subject_of(Run.open(folder), "", "fp32")).learning
    assert skipped["kind"] == "update" and skipped["update"] not in dict(learning.training)
    assert [moment.update for moment in learning.moments] == whole


def test_of_any_sentence_the_word_that_looks_most(run: Run) -> None:
    lesson = make_lesson(subject_of(run, "The dog sleeps.", "fp32"))
    assert lesson.other is None and lesson.deciding is None and not lesson.other_changes
    weights = np.array(lesson.sentence.encoder).max((0, 1))
    np.fill_diagonal(weights, 0)
    starts = [lesson.sentence.words.index(word) for word in range(lesson.sentence.words[-1])]
    assert lesson.focus in starts
    assert weights[lesson.focus, :-1].max() == max(weights[start, :-1].max() for start in starts)


def test_a_run_that_does_not_read_english_takes_a_sentence_of_its_own(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The data of this run are none of the demo's."""
    sample = {"source": "Der Hund schläft.", "reference": "The dog sleeps."}
    monkeypatch.setattr(Run, "languages", ("de", "en"))
    monkeypatch.setattr(Run, "scores", lambda _: {"samples": [sample]})
    made = make_lesson(subject_of(run, PAPER, "fp32"))
    assert made.is_own and made.sentence.text == sample["source"]
    assert made.sentence.reference == sample["reference"] and made.decoding.is_reference


def test_of_a_text_the_first_sentence(run: Run) -> None:
    text = " Mr. Smith sleeps. " + "He dreams. " * 400
    assert subject_of(run, text, "fp32").sentence == "Mr. Smith sleeps."


@pytest.mark.parametrize(
    ("text", "message"), [("a " * 60, "“a a a .*at most 40"), ("\u200b", "no words")]
)
def test_sentences_that_give_no_lesson(run: Run, text: str, message: str) -> None:
    with pytest.raises(DragomanError, match=message):
        make_lesson(subject_of(run, text, "fp32"))


def test_the_server_gives_the_same(run: Run, lesson: Lesson) -> None:
    async def ask() -> None:
        served = open_run(run, ServeSettings(precision="fp32"), "one-tiny")
        async with client_of(served) as client:
            answer = await client.post("/v1/lesson", json={"run": "one-tiny"})
            assert answer.status_code == 200, answer.text
            told = Lesson.model_validate(answer.json())
            assert told.model.name == "one-tiny"
            figure = await client.post("/v1/figures", json={"name": "mask", "sentence": "A dog."})
            assert figure.json()["run"] == "one-tiny"
            assert told.model_copy(update={"model": lesson.model}) == lesson
            refused = await client.post("/v1/lesson", json={"text": "a " * 60})
            assert refused.status_code == 400 and refused.json()["code"] == "no_lesson"

    asyncio.run(ask())


def beside(run: Run, other: Run) -> list[dict[str, Any]]:
    """Which runs a server that also has ``other`` shows beside ``run``."""

    async def ask() -> list[dict[str, Any]]:
        settings = ServeSettings(precision="fp32")
        runs = [open_run(one, settings, name) for one, name in ((run, "tiny"), (other, "lstm"))]
        async with client_of(*runs) as client:
            answer = await client.post("/v1/lesson", json={"run": "tiny"})
            assert answer.status_code == 200, answer.text
            return list(answer.json()["beside"])

    return asyncio.run(ask())


def test_a_damaged_run_is_not_shown_beside(
    run: Run, run_of: Callable[..., Run], tmp_path: Path
) -> None:
    folder = tmp_path / "lstm"
    shutil.copytree(run_of("translation", "text", "recurrent").folder, folder)
    other = Run.open(folder)
    files = other.film() or other.snapshots()
    assert files
    files[0][1].write_bytes(b"damaged")
    assert beside(run, other) == []


def test_a_run_that_loses_its_weights_keeps_the_lessons_of_others(
    run: Run, run_of: Callable[..., Run], tmp_path: Path
) -> None:
    folder = shutil.copytree(run_of("translation", "text", "recurrent").folder, tmp_path / "lstm")

    async def ask() -> None:
        settings, both = ServeSettings(precision="fp32"), {"tiny": run, "lstm": Run.open(folder)}
        async with client_of(*(open_run(it, settings, name) for name, it in both.items())) as http:
            shutil.rmtree(folder)
            answer = await http.post("/v1/lesson", json={"run": "tiny"})
            assert answer.status_code == 200, answer.text
            assert answer.json()["beside"] == []

    asyncio.run(ask())


def test_a_run_of_another_family_is_shown_beside(run: Run, run_of: Callable[..., Run]) -> None:
    other = run_of("translation", "text", "recurrent")
    assert other.languages == run.languages
    (shown,) = beside(run, other)
    assert (shown["name"], shown["family"]) == ("lstm", "recurrent")
    updates = [update for update, _ in shown["outputs"]]
    assert updates == sorted(updates) and updates[-1] == 2
    predictor = other.predictor(EngineSettings(precision="fp32"))
    engine = predictor.engine.over(other.model())
    ((best, *_),) = engine.search([engine.request(predictor.source_ids(PAPER))])
    assert shown["outputs"][-1][1] == engine.target.raw([best.tokens])[0]


def test_a_run_of_another_task_gives_none(run_of: Callable[..., Run]) -> None:
    with pytest.raises(DragomanError, match="a lesson is about a run that reads a text"):
        subject_of(run_of("language-model", "text", "decoder"), "")


@pytest.mark.parametrize("asked", ["lesson", "figures"])
def test_a_client_is_not_told_where_the_run_is(
    run: Run, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run has no sentence of its own to show."""
    monkeypatch.setattr(Run, "languages", ("de", "en"))
    monkeypatch.setattr(Run, "scores", lambda _: {})

    async def ask() -> None:
        async with client_of(open_run(run, ServeSettings(precision="fp32"), "tiny")) as client:
            request = {"name": "attention-cross"} if asked == "figures" else {}
            refused = await client.post(f"/v1/{asked}", json=request)
            assert refused.status_code == 400
            assert refused.json()["error"].startswith("tiny has no sentences to show")

    asyncio.run(ask())


def test_bytes_that_are_no_characters_are_read_as_unreadable(
    run: Run, dragoman: Dragoman, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell of another encoding passes them on."""
    for name in ("SCRIPT", "STYLE"):
        (tmp_path / name).touch()
        monkeypatch.setattr(f"dragoman.insight.lesson.lesson.{name}", tmp_path / name)
    to = tmp_path / "out.html"
    said = dragoman("lesson", run.folder, "--sentence", "A dog\udcff.", "--to", to)
    assert said.code == 0, said.err
    assert "A dog\ufffd." in to.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["out.html", "out-teacher.html"])
def test_neither_file_is_written_where_one_of_them_cannot_be(
    run: Run, dragoman: Dragoman, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).mkdir()
    said = dragoman("lesson", run.folder, "--to", tmp_path / "out.html")
    assert said.code == 1 and "is a folder" in said.err
    assert [path.name for path in tmp_path.iterdir()] == [name]
