"""The rows of an ablation: those of the paper's table 3, scaled to a recipe, and our own.

The paper changes its base model (6 layers, d_model 512, d_ff 2048, 8 heads of d_k 64, dropout 0.1,
label smoothing 0.1) one thing at a time. A recipe of another size gets the same proportions: an
eighth of the heads for 1 of 8, a third of the layers for 2 of 6. The paper's row *big* is left out:
it was trained three times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from dragoman.base.errors import DragomanError, RecipeError
from dragoman.runs.recipe.recipe import Recipe
from dragoman.sources.file_examples import SOURCES
from dragoman.studies.records import other_dev

BASE = "base"


@dataclass(frozen=True)
class Published:
    """A row of the paper's table 3: newstest2013, English to German."""

    what: str
    perplexity: float
    bleu: float


PAPER_BASE = Published("base", 4.92, 25.8)


@dataclass(frozen=True)
class AblationRow:
    """A row of the table: one change to the recipe."""

    name: str
    """The name of the row in ``--rows`` and in its records."""
    group: str
    """The name of the group of rows, which ``--rows`` accepts too."""
    part: str
    """The part of the paper's table, A to E; "" for a row that the paper does not have."""
    what: str
    """The setting that was changed, in words."""
    changes: tuple[str, ...]
    paper: Published | None = None
    cannot: str = ""
    """The reason why the recipe cannot have the row; "" if it can."""


def rows_of(recipe: Recipe) -> list[AblationRow]:
    """All rows, the base first; rows that the recipe cannot have give the reason."""
    rows = [AblationRow(BASE, BASE, "", "the recipe as it is", (), PAPER_BASE)]
    known = {recipe.model_dump_json(): "the recipe as it is"}
    for group, make in GROUPS.items():
        try:
            made = list(make(_Values(recipe)))
        except _Missing as missing:
            kind = recipe.model.kind
            rows.append(
                AblationRow(group, group, "", group, (), cannot=f"{kind} models have no {missing}")
            )
            continue
        for row in made:
            rows.append(_check_row(row, recipe, known))
    return rows


def choose_rows(rows: Sequence[AblationRow], names: Sequence[str]) -> list[AblationRow]:
    """Choose rows by their names or groups; the base is always included. All if ``names`` is empty.

    Errors: ``DragomanError`` for an unknown name, or if none of the rows is possible.
    """
    known = [name for row in rows for name in (row.group, row.name)]
    for name in names:
        if name not in known:
            raise DragomanError(
                f"--rows: there is no {name!r}. Rows: {', '.join(dict.fromkeys(known))}"
            )
    selection = [
        row
        for row in rows
        if not names or row.name == BASE or row.name in names or row.group in names
    ]
    if not any(row.changes and not row.cannot for row in selection):
        why = "; ".join(f"{row.name}: {row.cannot}" for row in selection if row.cannot)
        raise DragomanError(
            "--rows leaves nothing to compare with the unchanged "
            f"recipe{f' ({why})' if why else ''}"
        )
    return selection


def _check_row(row: AblationRow, recipe: Recipe, known: dict[str, str]) -> AblationRow:
    """The row, with a reason if the recipe cannot have it or already has this setting."""
    try:
        made = recipe.change(row.changes)
    except RecipeError as error:
        return replace(row, cannot=str(error).removeprefix("the recipe: "))
    if why := other_dev(made, recipe):
        return replace(row, cannot=f"it {why}")
    changed = made.model_dump_json()
    if changed in known:
        scaled = "" if row.paper is None else f"the paper's {row.paper.what}, scaled to it, is "
        return replace(row, cannot=f"{scaled}the same as {known[changed]}")
    known[changed] = row.name
    return row


class _Missing(Exception):
    """A setting that this kind of model does not have."""


class _Values:
    """The settings of a recipe by their keys."""

    def __init__(self, recipe: Recipe) -> None:
        self._values = recipe.model_dump(mode="json")

    def __getitem__(self, key: str) -> Any:
        value: Any = self._values
        for part in key.split("."):
            if not isinstance(value, dict) or part not in value:
                raise _Missing(key)
            value = value[part]
        return value

    def __contains__(self, key: str) -> bool:
        try:
            self[key]
        except _Missing:
            return False
        return True

    def key_width(self) -> int:
        """The width of the keys of a head (d_k)."""
        given = self["model.attention.key_width"]
        return int(given or self["model.model_dim"] // self["model.attention.num_heads"])


def _heads(of: _Values) -> Iterable[AblationRow]:
    heads, width = of["model.attention.num_heads"], of.key_width()
    for count, paper in (
        (1, Published("1 head, d_k 512", 5.29, 24.9)),
        (max(1, heads // 2), Published("4 heads, d_k 128", 5.00, 25.5)),
        (2 * heads, Published("16 heads, d_k 32", 4.91, 25.8)),
        (4 * heads, Published("32 heads, d_k 16", 5.01, 25.4)),
    ):
        narrower = max(1, heads * width // count)
        changes = [f"model.attention.num_heads={count}"]
        if of["model.attention.key_width"] is not None:
            changes.append(f"model.attention.key_width={narrower}")
        what = f"{count} head{'s' if count > 1 else ''}, d_k {narrower}"
        yield AblationRow(f"heads-{count}", "heads", "A", what, tuple(changes), paper)


def _key_width(of: _Values) -> Iterable[AblationRow]:
    width = of.key_width()
    value = of["model.attention.value_width"] or width
    for divisor, paper in (
        (4, Published("d_k 16", 5.16, 25.1)),
        (2, Published("d_k 32", 5.01, 25.4)),
    ):
        narrower = max(1, width // divisor)
        changes = (
            f"model.attention.key_width={narrower}", f"model.attention.value_width={value}",
        )  # fmt: skip
        yield AblationRow(
            f"key-width-{narrower}", "key-width", "B", f"d_k {narrower}", changes, paper
        )


def _layers(of: _Values) -> Iterable[AblationRow]:
    sides = [f"model.{name}" for name in ("encoder_layers", "decoder_layers", "layers")]
    sides = [key for key in sides if key in of]
    if not sides:
        raise _Missing("model.encoder_layers")
    for times, paper in (
        (1 / 3, Published("2 layers", 6.11, 23.7)),
        (2 / 3, Published("4 layers", 5.19, 25.3)),
        (4 / 3, Published("8 layers", 4.88, 25.5)),
    ):
        counts = [max(1, round(times * of[key])) for key in sides]
        changes = tuple(f"{key}={count}" for key, count in zip(sides, counts, strict=True))
        what = "+".join(map(str, counts))
        yield AblationRow(f"layers-{what}", "layers", "C", f"{what} layers", changes, paper)


def _half_and_twice(
    group: str, key: str, what: str, half: Published, twice: Published, of: _Values
) -> Iterable[AblationRow]:
    """Rows for half and twice a width."""
    values = ((max(1, of[key] // 2), half), (2 * of[key], twice))
    return _set_values(group, "C", key, what, values)


def _none_and_twice(
    group: str, key: str, what: str, none: Published, twice: Published, of: _Values
) -> Iterable[AblationRow]:
    """Rows for none and twice of a share."""
    values = ((0.0, none), (min(0.8, round(2 * of[key], 4)), twice))
    return _set_values(group, "D", key, what, values)


def _set_values(
    group: str, part: str, key: str, what: str, papers: Iterable[tuple[float, Published]]
) -> Iterable[AblationRow]:
    """A row for each value of a setting, with the paper's result."""
    for value, paper in papers:
        change = (f"{key}={value:.12g}",)
        yield AblationRow(
            f"{group}-{value:.12g}", group, part, f"{what} {value:.12g}", change, paper
        )


def _positions(of: _Values) -> Iterable[AblationRow]:
    paper = Published("learned positions", 4.92, 25.7)
    for kind in ("learned", "index", "normalised", "binary"):
        if of["model.positions.kind"] == kind:
            continue
        learned = kind == "learned"
        yield AblationRow(
            f"positions-{kind}", "positions", "E" if learned else "", f"{kind} positions",
            (f"model.positions.kind={kind}",), paper if learned else None,
        )  # fmt: skip


def _invert(name: str, key: str, off: str, on: str, of: _Values) -> Iterable[AblationRow]:
    """A row that inverts a setting."""
    now = bool(of[key])
    yield AblationRow(name, name, "", off if now else on, (f"{key}={str(not now).lower()}",))


def _warmup(_: _Values) -> Iterable[AblationRow]:
    yield AblationRow("warm-up", "warm-up", "", "no warm-up", ("training.schedule.warmup=0",))


def _optimizer(of: _Values) -> Iterable[AblationRow]:
    other = "adam" if of["training.optimizer.kind"] == "muon" else "muon"
    change = f"training.optimizer.kind={other}"
    yield AblationRow("optimizer", "optimizer", "", other.capitalize(), (change,))


def _norm(of: _Values) -> Iterable[AblationRow]:
    other = "pre" if of["model.norm"] == "post" else "post"
    yield AblationRow("norm", "norm", "", f"{other}-norm", (f"model.norm={other}",))
    yield AblationRow("no-norm", "norm", "", "no layer norms", ("model.norm=none",))


def _synthetic_voices(of: _Values) -> Iterable[AblationRow]:
    if "synthetic_voices" not in SOURCES[of["source.kind"]].varied_by:
        return
    name, now = "synthetic-voices", of["data.synthetic_voices"]
    what = "no synthetic voices" if now else "each text spoken once more by a synthetic voice"
    yield AblationRow(name, name, "", what, (f"data.synthetic_voices={0 if now else 1}",))


GROUPS: dict[str, Callable[[_Values], Iterable[AblationRow]]] = {
    "heads": _heads,
    "key-width": _key_width,
    "layers": _layers,
    "width": partial(
        _half_and_twice, "width", "model.model_dim", "d_model",
        Published("d_model 256", 5.75, 24.5), Published("d_model 1024", 4.66, 26.0),
    ),
    "feed-forward": partial(
        _half_and_twice, "feed-forward", "model.ffn_dim", "d_ff",
        Published("d_ff 1024", 5.12, 25.4), Published("d_ff 4096", 4.75, 26.2),
    ),
    "dropout": partial(
        _none_and_twice, "dropout", "model.dropout", "dropout",
        Published("dropout 0", 5.77, 24.6), Published("dropout 0.2", 4.95, 25.5),
    ),
    "smoothing": partial(
        _none_and_twice, "smoothing", "training.label_smoothing", "label smoothing",
        Published("label smoothing 0", 4.67, 25.3), Published("label smoothing 0.2", 5.47, 25.7),
    ),
    "positions": _positions,
    "scaling": partial(
        _invert, "scaling", "model.attention.scaled", "scores not divided by √d_k", "divided"
    ),
    "slices": partial(
        _invert, "slices", "model.attention.whole_input", "heads over slices of the input",
        "heads over the whole input",
    ),
    "warm-up": _warmup,
    "optimizer": _optimizer,
    "norm": _norm,
    "residual": partial(
        _invert, "residual", "model.residual", "no residual connections", "residual connections"
    ),
    "synthetic-voices": _synthetic_voices,
}  # fmt: skip
"""The groups that ``--rows`` accepts, in the order of the paper's table, then our own."""
