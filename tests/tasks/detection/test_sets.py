"""Boxes as a set: what is match_boxes, what is learned of it, and that a search reads it out."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from command_line import Dragoman
from memories import some_sources
from recipe_of_files import recipe_of
from tiny_cells import tiny_cell
from tiny_scenes import write_scenes

from dragoman.base.errors import DataError, RecipeError
from dragoman.forms.boxes import PER_BOX, BoxRules, BoxSymbols, Read
from dragoman.models.interface import Memory
from dragoman.models.settings import TransformerSettings
from dragoman.nn.layout import Sequences
from dragoman.sources.picture.coco import read_coco
from dragoman.sources.picture.form import PictureSource
from dragoman.tasks.catalogue import Recipe, Run
from dragoman.tasks.detection.detector import Detector
from dragoman.tasks.detection.evaluation import DetectionEvaluation
from dragoman.tasks.detection.head import FoundSet, SetPredictor, SetState
from dragoman.tasks.detection.learning import (
    SetLoss,
    assignment,
    boxes_batch,
    corners,
    generalised_iou,
    match_boxes,
    set_loss,
)
from dragoman.tasks.training import train

SYMBOLS = BoxSymbols(["cat", "dog"], bins=16, most=4, read=Read(16, 16), kind="set")
SETTINGS = TransformerSettings.model_validate(
    {
        "model_dim": 32, "ffn_dim": 32, "encoder_layers": 1, "decoder_layers": 2, "dropout": 0,
        "tie": "target", "norm": "pre", "attention": {"num_heads": 2},
    }
)  # fmt: skip
SMALL = (
    "boxes.kind=set", "model.model_dim=64", "model.ffn_dim=128", "model.attention.num_heads=4",
    "model.encoder_layers=2", "model.decoder_layers=2", "model.dropout=0",
    "plan.tokens_per_update=512", "training.updates=240", "training.validate_every=240",
    "training.schedule.peak=4e-3", "training.schedule.warmup=30", "training.average_last=0",
    "training.precision=fp32", "source.patch=4", "model.positions.maximum=32",
)  # fmt: skip


def predictor() -> SetPredictor:
    torch.manual_seed(1)
    return SetPredictor(SETTINGS, PictureSource(height=16, width=16, patch=4), SYMBOLS).double()


def pictures(count: int) -> Sequences:
    draw = np.random.default_rng(count)
    return Sequences.of(
        [torch.from_numpy(draw.integers(0, 256, (16, 16)).astype(np.uint8)) for _ in range(count)]
    )


# ---- matching


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (2, 5), (4, 4), (6, 6)])
def test_an_assignment_costs_the_least_of_all(shape: tuple[int, int]) -> None:
    boxes, queries = shape
    draw = np.random.default_rng(boxes)
    for round_ in range(20):
        costs = draw.normal(size=shape)
        if round_ % 2:  # many of one cost
            costs = draw.integers(-2, 3, shape).astype(float)
        found = assignment(costs)
        assert len(set(found.tolist())) == boxes
        least = min(
            costs[np.arange(boxes), list(chosen)].sum()
            for chosen in itertools.permutations(range(queries), boxes)
        )
        assert costs[np.arange(boxes), found].sum() == pytest.approx(least)


def test_an_assignment_costs_what_scipys_does() -> None:
    scipy = pytest.importorskip("scipy.optimize", reason="scipy is for development")
    draw = np.random.default_rng(0)
    for shape in [(16, 16), (7, 16), (1, 30), (40, 60)]:
        for _ in range(10):
            costs = draw.normal(size=shape)
            rows, columns = scipy.linear_sum_assignment(costs)
            found = assignment(costs)
            assert (found == columns).all() and len(rows) == len(found)


# ---- what is learned


def test_generalised_iou_of_boxes_that_were_computed_by_hand() -> None:
    one = torch.tensor([0.0, 0.0, 2.0, 2.0])
    others = torch.tensor(
        [
            [0.0, 0.0, 2.0, 2.0],  # the same
            [1.0, 1.0, 3.0, 3.0],  # 1 of 7 in common, 7 of the 9 around both filled
            [3.0, 0.0, 5.0, 2.0],  # apart: 8 of the 10 around both filled
            [0.5, 0.5, 1.5, 1.5],  # inside
        ]
    )
    found = generalised_iou(one, others)
    assert found.tolist() == pytest.approx([1.0, 1 / 7 - 2 / 9, -2 / 10, 1 / 4])
    assert corners(torch.tensor([0.5, 0.4, 0.2, 0.6])).tolist() == pytest.approx(
        [0.4, 0.1, 0.6, 0.7]
    )


def drawn_set(seed: int = 0) -> tuple[FoundSet, torch.Tensor, torch.Tensor]:
    """What five queries say of three pictures, with four, two and no boxes of three labels."""
    draw = torch.Generator().manual_seed(seed)
    places = torch.rand(3, 5, 4, generator=draw, dtype=torch.float64) * 0.5 + 0.1
    logits = torch.randn(3, 5, 4, generator=draw, dtype=torch.float64)
    true = torch.rand(3, 4, 4, generator=draw, dtype=torch.float64) * 0.5 + 0.1
    labels = torch.tensor([[0, 1, 2, 0], [2, 1, 3, 3], [3, 3, 3, 3]])
    return FoundSet(logits, places), labels, true


def test_the_loss_depends_neither_on_the_order_of_boxes_nor_of_queries() -> None:
    found, labels, true = drawn_set()
    loss = set_loss(found, labels, true)
    for seed in range(5):
        draw = torch.Generator().manual_seed(seed)
        boxes, queries = torch.randperm(4, generator=draw), torch.randperm(5, generator=draw)
        moved = FoundSet(found.logits[:, queries], found.places[:, queries])
        assert set_loss(moved, labels[:, boxes], true[:, boxes]) == pytest.approx(loss)
    other = labels.clone()
    other[0, 0] = 1
    assert set_loss(found, other, true) != pytest.approx(loss)


@pytest.mark.parametrize("seed", range(8))
def test_the_loss_is_that_of_the_paper_written_out(seed: int) -> None:
    """Of the cheapest of all ways to match, by brute force; queries differ little in their places,
    so that labels decide too."""
    found, labels, true = drawn_set(seed)
    found = FoundSet(4 * found.logits, 0.3 + found.places / 20)
    total, log_p = 0.0, torch.log_softmax(found.logits, -1)
    for n in range(3):
        boxes = [m for m in range(4) if labels[n, m] < 3]

        def apart(q: int, m: int, n: int = n) -> float:
            one, other = found.places[n, q], true[n, m]
            iou = generalised_iou(corners(one), corners(other))
            return float(5 * (one - other).abs().sum() + 2 * (1 - iou))

        def cost(chosen: tuple[int, ...], n: int = n, boxes: list[int] = boxes) -> float:
            return sum(
                apart(q, m, n) - float(log_p[n, q, labels[n, m]].exp())
                for q, m in zip(chosen, boxes, strict=True)
            )

        best = min(itertools.permutations(range(5), len(boxes)), key=cost)
        for q, m in zip(best, boxes, strict=True):
            total += apart(q, m) - float(log_p[n, q, labels[n, m]])
        total -= sum(0.1 * float(log_p[n, q, 3]) for q in range(5) if q not in best)
    assert set_loss(found, labels, true) == pytest.approx(total)


def test_numbers_that_are_none_end_the_update_and_not_the_program() -> None:
    found, labels, true = drawn_set()
    broken = FoundSet(found.logits * float("nan"), found.places * float("nan"))
    picture, query, _ = match_boxes(broken, labels, true)
    assert len(picture) == 6 and len(set(query[:4].tolist())) == 4
    assert not torch.isfinite(set_loss(broken, labels, true))


def test_true_boxes_are_those_of_the_symbols(tmp_path: Path) -> None:
    file = write_scenes(tmp_path, 6)
    pairs = list(read_coco(file))
    symbols = BoxSymbols(["lamp", "stone"], bins=16, most=4, read=Read(16, 16), kind="set")
    from dragoman.forms.boxes import scene_of

    scenes = [scene_of(pair.target) for pair in pairs]
    recipe = Recipe.load("demo-boxes")
    targets = [np.array(symbols.encode(scene), np.int32) for scene in scenes]
    rows = [np.zeros((16, 16), np.uint8) for _ in pairs]
    batch = boxes_batch(rows, targets, recipe, symbols, 0, range(6))
    labels, places = SetLoss(symbols, 0.0).true(batch)
    assert labels.shape == (6, 4) and places.shape == (6, 4, 4)
    for number, scene in enumerate(scenes):
        there = labels[number] < 2
        found = {
            (symbols.labels[label], *(16 * corners(place)).tolist())
            for label, place in zip(labels[number][there], places[number][there], strict=True)
        }
        assert found == {(b.label, b.left, b.top, b.right, b.bottom) for b in scene.boxes}


# ---- reading it out


def test_a_step_at_a_time_reads_out_what_is_read_at_once() -> None:
    model, memory = predictor(), None
    memory = model.encode(pictures(3))
    spelled = whole(model, memory)  # (3, 21, V)
    assert torch.allclose(spelled.exp().sum(-1), torch.ones(3, 21, dtype=torch.float64))
    state = model.start(some_sources(memory, [0, 1]))
    one = torch.zeros(2, 1, dtype=torch.int64)
    assert (model.step(one, state) == spelled[:2, 0]).all()
    state.admit(some_sources(memory, [2]))
    state.select(torch.tensor([1, 1, 2]))
    assert state.lengths.tolist() == [1, 1, 0]
    found = model.step(torch.zeros(3, 1, dtype=torch.int64), state)
    assert (found == torch.stack([spelled[1, 1], spelled[1, 1], spelled[2, 0]])).all()
    given = Sequences.of([torch.zeros(n, dtype=torch.int64) for n in (2, 21, 5)])
    assert (
        model.decode(given, memory) == torch.cat([spelled[0, :2], spelled[1], spelled[2, :5]])
    ).all()


def whole(model: SetPredictor, memory: Memory) -> torch.Tensor:
    """(B, 21, V): the log-probabilities of all symbols of some pictures."""
    given = [torch.zeros(PER_BOX * 4 + 1, dtype=torch.int64)] * memory.layout.batch
    return model.decode(Sequences.of(given), memory).unflatten(0, (len(given), -1))


def test_what_is_kept_of_a_picture_does_not_grow_with_symbols_times_boxes() -> None:
    """All symbols of 256 pictures with a hundred boxes and COCO's labels were half a gigabyte."""
    model = predictor()
    state = model.start(model.encode(pictures(3)))
    assert isinstance(state, SetState)
    kept = sum(one.numel() for one in state._read)
    assert kept == 3 * 4 * (len(SYMBOLS.labels) + 1 + 4)


@torch.no_grad()
def test_what_is_read_out_obeys_the_rules_and_is_what_was_found() -> None:
    model = predictor()
    model.place[-1].bias.copy_(torch.tensor([4.0, 0.0, -9.0, -9.0]))  # a point, at an edge
    memory = model.encode(pictures(5))
    found, spelled = model.layer_outputs(memory)[-1], whole(model, memory)
    rules = BoxRules(SYMBOLS)
    likely = found.logits.softmax(-1)[..., :-1]
    for number in range(5):
        tokens: list[int] = []
        for place in range(PER_BOX * 4 + 1):
            allowed = rules.allows(np.array([tokens], np.int32).reshape(1, -1))[0]
            scores = spelled[number, place].numpy().copy()
            scores[~allowed] = -np.inf
            tokens.append(int(scores.argmax()))
            assert np.isfinite(scores.max())
            if place % PER_BOX == 4:
                best = float(np.exp(scores.max()))
                assert best == pytest.approx(sorted(likely[number].amax(-1))[-1 - place // PER_BOX])
        assert tokens[-1] == SYMBOLS.eos
        assert len(SYMBOLS.decode(tokens[:-1], 16, 16)) == 4


def test_a_box_is_read_out_around_its_centre(monkeypatch: pytest.MonkeyPatch) -> None:
    model = predictor()
    bins = SYMBOLS.bins
    logits = torch.zeros(1, 2, len(SYMBOLS.labels) + 1)
    logits[0, 1, 0] = 5.0  # the second query is the surer one, and comes first
    places = torch.tensor([[[0.25, 0.5, 0.5, 1.0], [0.5, 0.75, 0.25, 0.5]]])  # x, y, width, height
    monkeypatch.setattr(model, "layer_outputs", lambda _: [FoundSet(logits, places)])
    edges = model.read_out(model.encode(pictures(1))).edges / bins  # top, left, bottom, right
    wanted = torch.tensor([[[0.5, 0.375, 1.0, 0.625], [0.0, 0.0, 1.0, 0.5]]])
    assert torch.allclose(edges, wanted, atol=0.5 / bins)


def test_queries_look_at_all_others_and_their_order_changes_nothing() -> None:
    model = predictor()
    memory = model.encode(pictures(2))
    first = model.layer_outputs(memory)[-1]
    with torch.no_grad():
        model.queries.copy_(model.queries.flip(0))
    assert torch.allclose(model.layer_outputs(memory)[-1].places, first.places.flip(1))
    with torch.no_grad():
        model.queries[3] *= -1
    places = model.layer_outputs(memory)[-1].places
    assert not torch.allclose(places[:, 0], first.places[:, 3], atol=1e-5)


# ---- the task


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sets")
    files = [str(write_scenes(folder / part, count, seed)) for part, count, seed in (
        ("train", 400, 1), ("dev", 30, 2), ("test", 30, 3))]  # fmt: skip
    recipe, _ = recipe_of(
        files[:1], task="detection", dev=files[1:2], test=files[2:], changes=SMALL
    )
    train(recipe, folder / "run", say=lambda _: None, display=False, measure=False)
    return folder


@pytest.mark.slow  # half a minute; test_detection.py has one of tokens
def test_a_toy_is_learned_in_seconds(learned: Path, dragoman: Dragoman) -> None:
    report = DetectionEvaluation()(Run.open(learned / "run"))
    assert report.scores["ap50"] > 0.3
    assert "as a set" in report.path
    assert (
        DetectionEvaluation()(Run.open(learned / "run"), changes=["beam=3"]).scores == report.scores
    )
    said = dragoman("detect", learned / "run", learned / "test" / "boxes-001.png")
    assert not said.code and said.out.splitlines()[0].split("\t")[1] in ("lamp", "stone")
    said = dragoman("look", learned / "run", learned / "test" / "boxes-001.png")
    assert said.code == 1 and "boxes.kind = tokens" in said.err


def test_kinds_do_not_go_on_with_each_other(tmp_path: Path) -> None:
    scenes = str(write_scenes(tmp_path / "scenes", 40, 1))
    brief = (*SMALL, "training.updates=1", "training.validate_every=0")
    recipe, _ = recipe_of([scenes], task="detection", changes=brief)
    train(recipe, tmp_path / "run", say=lambda _: None, display=False, measure=False)
    run = Run.open(tmp_path / "run")
    assert run.forms.boxes.symbols.kind == "set"
    assert not Detector(run).has_inside, "its queries are no symbols"
    with pytest.raises(DataError, match=r"boxes\.kind = set"):
        train(
            run.recipe.change(["boxes.kind=tokens"]), tmp_path / "on", start_from=run,
            say=lambda _: None, display=False,
        )  # fmt: skip
    with pytest.raises(RecipeError, match="see all queries at once"):
        tiny_cell("detection", "recurrent", "picture", tmp_path / "cell").change(["boxes.kind=set"])
