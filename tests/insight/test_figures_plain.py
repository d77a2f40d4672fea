"""Figures that need no run: every number in their CSV against a computation of its own."""

from __future__ import annotations

import csv
import io
import itertools
import math
from collections.abc import Callable, Iterable
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from dragoman.insight import cost
from dragoman.insight.figures import costs
from dragoman.insight.figures.catalogue import make_figure
from dragoman.pictures.figure import Figure, csv_files

Rows = list[dict[str, str]]


@pytest.fixture(scope="module")
def tables() -> Callable[[str], dict[str, Rows]]:
    """Name of a figure -> its CSV files as they would be read again, by the table's name."""
    made: dict[str, Figure] = {}

    def read(name: str) -> dict[str, Rows]:
        if name not in made:
            made[name] = make_figure(name, None)
        files = csv_files(made[name])
        return {
            file.removeprefix(name).removesuffix(".csv").removeprefix("-"): list(
                csv.DictReader(io.StringIO(content))
            )
            for file, content in files.items()
        }

    return read


def values(row: dict[str, str]) -> list[float]:
    """All cells but the first."""
    return [float(value) for value in list(row.values())[1:]]


def sine(place: int, width: int) -> list[float]:
    """The paper's two equations, number by number."""
    out = []
    for d in range(width):
        angle = place / 10000 ** ((d - d % 2) / width)
        out.append(math.cos(angle) if d % 2 else math.sin(angle))
    return out


def test_index_and_its_similarity(tables: Callable[[str], dict[str, Rows]]) -> None:
    read = tables("position-index")
    for row in read[""]:
        assert values(row) == [float(row["position"])] * 8
    for row in read["similarity"]:
        assert float(row["value"]) == 8 * int(row["position"]) * int(row["other"])


def test_the_same_position_has_another_value_at_another_length(
    tables: Callable[[str], dict[str, Rows]],
) -> None:
    rows = tables("position-normalised")[""]
    for row in rows:
        wanted = int(row["position"]) / int(row["length"])
        assert float(row["value"]) == pytest.approx(wanted, abs=1e-7)
    assert len({row["value"] for row in rows if row["position"] == "4"}) == 3
    for row in tables("position-normalised")["similarity"]:
        wanted = 8 * int(row["position"]) / 20 * int(row["other"]) / 20
        assert float(row["value"]) == pytest.approx(wanted, abs=1e-6)


def test_binary_digits_and_flips(tables: Callable[[str], dict[str, Rows]]) -> None:
    read = tables("position-binary")
    for row in read[""]:
        assert values(row) == [float(d) for d in reversed(f"{int(row['position']):08b}")]
    for row in read["similarity"]:
        common = int(row["position"]) & int(row["other"])
        assert float(row["value"]) == common.bit_count()
    for row in read["flips"]:
        place = int(row["position"])
        assert values(row) == [(place ^ (place + 1)).bit_count()]


def test_sines_and_cosines(tables: Callable[[str], dict[str, Rows]]) -> None:
    read = tables("position-sinusoidal")
    assert len(read[""]) == 128
    for row in read[""][::17]:
        assert values(row) == pytest.approx(sine(int(row["position"]), 512), abs=1e-8)
    waves = (
        make_figure("position-sinusoidal", None, {"length": 48})
        .panels[2]
        .to_dict()["chart"]["series"]
    )
    assert all(list(wave["x"]) == list(range(48)) for wave in waves), "as far as the maps"
    by_distance: dict[int, list[float]] = {}
    for row in read["similarity"]:
        by_distance.setdefault(int(row["position"]) - int(row["other"]), []).append(
            float(row["value"])
        )
    for distance, found in by_distance.items():
        assert max(found) - min(found) < 1e-5
        total = sum(math.cos(10000 ** (-2 * k / 512) * distance) for k in range(256))
        assert found[0] == pytest.approx(total, abs=1e-6)


def test_the_identity(tables: Callable[[str], dict[str, Rows]]) -> None:
    rows = tables("position-identity")[""]
    for row in rows[::7]:
        distance = int(row["distance"])
        total = sum(math.cos(10000 ** (-2 * k / 512) * distance) for k in range(256))
        assert float(row["sum of cosines"]) == pytest.approx(total, abs=1e-6)
        for start in (0, 10, 30, 60):
            product = sum(
                a * b for a, b in zip(sine(start, 512), sine(start + distance, 512), strict=True)
            )
            assert float(row[f"from {start}"]) == pytest.approx(product, abs=1e-6)
            assert product == pytest.approx(total, abs=1e-9)


def test_variance_and_saturation(tables: Callable[[str], dict[str, Rows]]) -> None:
    rows = tables("scale")[""]
    for row in rows:
        width, variance = int(row["d_k"]), float(row["variance of q·k"])
        # The variance of a sample variance: σ⁴ (kurtosis - 1) / n, kurtosis 3 + 6 / d_k.
        error = width * math.sqrt((2 + 6 / width) / 4000)
        assert abs(variance - width) < 5 * error
        for kind in ("", ", scaled"):
            largest, slope = float(row[f"largest weight{kind}"]), float(row[f"1 - sum p^2{kind}"])
            assert 1 / 32 < largest < 1
            assert 0 < float(row[f"entropy{kind}"]) < math.log(32)
            # Σp² is at least the square of the largest weight, at most that weight.
            assert 1 - largest - 0.2 < slope < 1 - 1 / 32
        # The same experiment with other numbers, drawn by another program.
        random = np.random.default_rng(int(row["d_k"]))
        queries = random.standard_normal((40, 60, width))
        keys = random.standard_normal((40, 32, width))
        scores = queries @ keys.transpose(0, 2, 1)
        for kind, scale in (("", 1.0), (", scaled", width**-0.5)):
            shares = np.exp(scores * scale - (scores * scale).max(-1, keepdims=True))
            shares /= shares.sum(-1, keepdims=True)
            entropies = -(shares * np.log(np.maximum(shares, 1e-300))).sum(-1)
            told = {
                "largest weight": (shares.max(-1).mean(), 0.06),
                "entropy": (entropies.mean(), 0.25),
                "1 - sum p^2": ((1 - np.square(shares).sum(-1)).mean(), 0.06),
            }
            for name, (wanted, within) in told.items():
                assert abs(float(row[f"{name}{kind}"]) - wanted) < within, (row, name, wanted)
    first, last = rows[0], rows[-1]
    assert float(last["largest weight"]) > 0.9 > 0.3 > float(last["largest weight, scaled"])
    assert float(first["1 - sum p^2"]) > 5 * float(last["1 - sum p^2"])


@pytest.mark.parametrize(
    ("kind", "count"),
    [
        ("self-attention core", cost.attention_cost(40, 24).core),
        ("self-attention whole", cost.attention_cost(40, 24).whole),
        ("recurrence core", cost.recurrence_cost(40, 24).core),
        ("recurrence whole", cost.recurrence_cost(40, 24).whole),
        ("convolution", cost.convolution_cost(40, 24, 3).core),
    ],
)
def test_counts_are_what_torch_is_asked_for(kind: str, count: int) -> None:
    with torch.device("meta"):
        layer = cost.layer(kind, 40, 24)
    with FlopCounterMode(display=False) as counter:
        layer()
    assert counter.get_total_flops() == count


def operations(kind: str, length: int, width: int) -> float:
    """What torch counts."""
    with FlopCounterMode(display=False) as counter, torch.device("meta"):
        cost.layer(kind, length, width)()
    return counter.get_total_flops()


def test_counts_against_length(tables: Callable[[str], dict[str, Rows]]) -> None:
    read = tables("cost-length")
    for row in read[""][:12]:
        length = int(row["length"])
        for column, kind in (
            ("attention", "self-attention core"),
            ("with projections", "self-attention whole"),
            ("LSTM", "recurrence whole"),
            ("convolution", "convolution"),
        ):
            assert int(row[column]) == operations(kind, length, 512)
    lengths = [int(row["length"]) for row in read[""]]
    assert lengths == sorted(lengths) and lengths[-1] > 4 * 512, "beyond every crossing"
    measured = [int(row["length"]) for row in read["measured"]]
    assert len(measured) > 2 and set(measured) <= {2**n for n in range(16)}


def clock_of(monkeypatch: pytest.MonkeyPatch, seconds: Iterable[float]) -> None:
    """Let what is timed seem to have taken so long, one after the other."""
    ticks = itertools.chain.from_iterable((0.0, taken) for taken in seconds)
    monkeypatch.setattr(cost, "time", SimpleNamespace(perf_counter=lambda: next(ticks)))


def test_seconds_are_those_of_the_best_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = ("convolution", "recurrence whole")
    clock_of(monkeypatch, [5.0, 7.0, 2.0, 9.0, 4.0, 8.0])
    assert cost.durations(kinds, 8, 8, repeats=3) == {"convolution": 2.0, "recurrence whole": 7.0}


def test_a_part_that_takes_longer_than_the_whole_is_not_believed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    core, whole = kinds = ("self-attention core", "self-attention whole")
    clock_of(monkeypatch, [44.0, 3.0, 2.0, 6.0])
    assert cost.durations(kinds, 8, 8, repeats=1) == {core: 2.0, whole: 3.0}
    clock_of(monkeypatch, itertools.cycle([44.0, 3.0]))
    assert cost.durations(kinds, 8, 8, repeats=1) == {core: None, whole: None}
    told = {kind: None if kind in kinds else 1e-3 for kind in cost.LAYERS}
    monkeypatch.setattr(costs, "durations", lambda *_: told)
    made = make_figure("cost", None)
    assert [row[0] for row in made.data[1].rows] == [k for k in cost.LAYERS if k not in kinds]
    assert core in made.notes[0].english and core in made.notes[0].korean


def test_the_lstm_is_the_lstm() -> None:
    torch.manual_seed(0)
    whole = torch.nn.LSTM(6, 6, bias=False)
    x = torch.randn(5, 6)
    # torch orders the gates input, forget, cell, output, as ours.
    ours = cost._lstm(x, whole.weight_hh_l0.T, whole.weight_ih_l0.T)
    torch.testing.assert_close(ours, whole(x)[1][0])


def test_the_well_known_counts_and_both_ways(tables: Callable[[str], dict[str, Rows]]) -> None:
    found = {row["layer"]: row for row in tables("cost")[""]}
    attention, recurrence = found["self-attention"], found["recurrence (LSTM)"]
    convolution = found["convolution (k = 3)"]
    assert (int(attention["core"]), int(recurrence["whole"])) == (4 * 10**9, 16 * 10**9)
    assert int(convolution["core"]) == 6 * 10**9
    assert (int(attention["whole"]), int(recurrence["core"])) == (12 * 10**9, 8 * 10**9)
    assert (attention["sequential"], recurrence["sequential"]) == ("1", "1000")
    reach, layers = 1, 0
    while reach < 1000:
        reach, layers = reach * 3, layers + 1
    assert (attention["path"], recurrence["path"], convolution["path"]) == (
        "1",
        "1000",
        str(layers),
    )
    near = found["restricted attention (r = 100)"]
    # Each of 1000 places looks at 100: their products, and the sum by weights.
    assert int(near["core"]) == 1000 * 100 * 1000 * 2 * 2
    assert int(near["whole"]) - int(near["core"]) == int(attention["whole"]) - int(
        attention["core"]
    )
    assert near["path"] == "10"
    measured = tables("cost")["measured"]
    assert [row["layer"] for row in measured] == [
        kind for kind in cost.LAYERS if kind in {row["layer"] for row in measured}
    ]
    assert "convolution" in {row["layer"] for row in measured}
    for row in measured:
        assert int(row["operations"]) == operations(row["layer"], 256, 256)


def test_lines_cross_where_it_is_said(tables: Callable[[str], dict[str, Rows]]) -> None:
    said = [int(row["length"]) for row in tables("cost-length")["crossings"]]

    def crossing(first: Callable[[int], int], second: Callable[[int], int]) -> int:
        return next(n for n in range(1, 5000) if first(n) >= second(n))

    d = 512
    assert said == [
        crossing(lambda n: 4 * n * n * d, lambda n: 16 * n * d * d),
        crossing(lambda n: 4 * n * n * d + 8 * n * d * d, lambda n: 16 * n * d * d),
        crossing(lambda n: 4 * n * n * d, lambda n: 6 * n * d * d),
        crossing(lambda n: 4 * n * n * d, lambda n: 8 * n * d * d),
    ]


def test_schedule_is_equation_3(tables: Callable[[str], dict[str, Rows]]) -> None:
    for row in tables("schedule")[""]:
        step = int(row["update"])
        for width, warmup in ((512, 4000), (1024, 4000), (512, 8000), (256, 2000)):
            rate = width**-0.5 * min(step**-0.5, step * warmup**-1.5)
            assert float(row[f"{width:,} / {warmup:,}"]) == pytest.approx(rate, rel=1e-8)
        # The same peak, reached in a straight line; then 1/√step, half a cosine, nothing.
        peak = (512 * 4000) ** -0.5
        up = min(step / 4000, 1.0)
        rest = (step - 4000) / 16_000
        assert float(row["constant"]) == pytest.approx(peak * up)
        falls = {
            "inverse_square_root": (4000 / step) ** 0.5,
            "cosine": (1 + math.cos(math.pi * rest)) / 2,
        }
        for name, share in falls.items():
            wanted = peak * (up if step <= 4000 else share)
            assert float(row[name]) == pytest.approx(wanted, rel=1e-6, abs=1e-9)


def test_label_smoothing_is_torch_s(tables: Callable[[str], dict[str, Rows]]) -> None:
    read = tables("label-smoothing")
    smoothed = [float(row["smoothed"]) for row in read[""]]
    assert sum(smoothed) == pytest.approx(1)
    target = torch.tensor([3])
    for row in read["loss"][::50]:
        q = float(row["q"])
        p = torch.full((1, 10), (1 - q) / 9, dtype=torch.float64)
        p[0, 3] = q
        for epsilon in (0.0, 0.1, 0.2):
            wanted = torch.nn.functional.cross_entropy(p.log(), target, label_smoothing=epsilon)
            assert float(row[f"epsilon {epsilon:g}"]) == pytest.approx(float(wanted), abs=1e-7)
    losses = [float(row["epsilon 0.1"]) for row in read["loss"]]
    assert float(read["loss"][int(np.argmin(losses))]["q"]) == pytest.approx(smoothed[3], abs=2e-3)
