"""Chooses how a model is run on this machine: by a fast path of its kind, or by plain torch.

``fastest`` chooses a path and gives the reason in one line. ``networks.py`` lists the paths of each
kind of model; a kind without paths runs on plain torch. ``without_torch`` makes the same choice
without torch, from the measurements of an earlier process on this machine, if the chosen path needs
no torch.
"""

from __future__ import annotations

import logging
import math
import pathlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Literal

from dragoman.models.catalogue.networks import fast_paths
from dragoman.models.catalogue.packed_models import HeldWeights, packed_model
from dragoman.models.fast_path import AMOUNTS, FastPath
from dragoman.models.searched import SearchModel
from dragoman.models.settings import DEFAULT, ModelSettings
from dragoman.models.shortlist import Shortlist
from dragoman.native import library, loader
from dragoman.native.measured import measure, measures, microseconds, recall
from dragoman.nn.settings import InferencePrecision

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from dragoman.models.ensemble import Reader
    from dragoman.models.interface import Model, Writing
    from dragoman.nn.linear import Linear

logger = logging.getLogger("dragoman.inference")

Trials = Mapping[str, Callable[[], Callable[[], None]]]
"""Functions that prepare work to be timed, by the names of their times."""
Times = Callable[[Trials], Mapping[str, int]]
"""A function that returns the microseconds which trials take on this machine."""


@dataclass(frozen=True)
class Path:
    """One way to run a model on this machine."""

    precision: Literal["int8", "bf16", "fp32", "mixed"]
    """The precision of the products. mixed: an ensemble whose models run in different
    precisions."""
    reason: str
    """One line for people that names the choice and the reason."""
    searched: SearchModel
    """The model, as a search calls it."""
    model: Model | None = None
    """The fast model, or the plain one; None if no model is held in torch."""
    one_core_each: bool = True
    """True if several threads, each with one core and its own batch, are faster than one thread on
    all cores."""
    whole_steps: bool = False
    """True if kernels take whole steps of a search, without torch in between. The cost of a step
    depends on this, and a shortlist requires it."""
    rows: int = 64
    """The number of rows (hypotheses) per batch with which many sentences are searched fastest."""
    level: str = ""
    """The instruction set of the kernels; empty for plain torch."""


def fastest(
    model: Writing,
    precision: InferencePrecision = "auto",
    shortlist: Shortlist | None = None,
    remembered: pathlib.Path | None = None,
) -> Path:
    """Return the fastest way to run ``model`` in inference with ``precision``.

    "auto" is the path that was measured to be the fastest on this machine (``native/measured.py``),
    if ``remembered`` names a folder for the measurements. Without it, "auto" is int8 if there are
    kernels for it, else plain torch in bf16 if the processor has units for that, else fp32. If int8
    is not possible, "int8" is not an error: another path is chosen, and its reason says so. A
    shortlist works only in int8. "fp32" is ``model`` itself, the reference.
    """
    from dragoman.models.on_torch import OnTorch

    model.eval()

    def times(trials: Trials) -> Mapping[str, int]:
        return {} if remembered is None else microseconds(remembered, trials)

    if model.plain_only:
        return as_it_is(model, reason=f"fp32 on plain torch, {model.plain_only}")
    path, line = _choose(model.settings, precision, times)
    line += _shortlist_note(path, shortlist)
    _tell(line, _is_as_asked(path, precision, shortlist))
    if path is None:
        return as_it_is(model, reason=line)
    with loader.using(path.level):
        fast_model = path.make(model, shortlist if path.takes_shortlist else None)
    searched = OnTorch(fast_model) if path.searched is None else path.searched(fast_model)
    rows, whole = _rows(path, times), path.searched is not None
    return Path(
        path.precision, line, searched, fast_model,
        whole_steps=whole, rows=rows, level=path.level or "",
    )  # fmt: skip


def without_torch(
    settings: ModelSettings,
    sizes: tuple[int, int],
    weights: HeldWeights,
    precision: InferencePrecision = "auto",
    shortlist: Shortlist | None = None,
    remembered: pathlib.Path | None = None,
    kept: pathlib.Path | None = None,
) -> Path | None:
    """Make the path that ``fastest`` would choose, without importing torch. Return None if that is
    impossible.

    It is possible where an earlier process has compared the kernels with plain torch and measured
    them on this machine, and they run such models. ``sizes``: the numbers of source and target
    tokens. ``kept``: the folder of weights that were packed before (``packed_models.py``).
    """
    times = {} if remembered is None or not loader.is_loaded() else recall(remembered)
    if not any(
        path.without_torch is not None and path.time_key("one") in times
        for path in (fast_paths(settings.kind) if times else ())
    ):
        return None
    library.take_as_compared()

    try:
        path, line = _choose(
            settings, precision, lambda trials: {name: times[name] for name in trials}
        )
    except KeyError:  # one of the paths was not measured
        return None
    if path is None or path.without_torch is None:
        return None
    with loader.using(path.level):
        packed = packed_model(path.without_torch, settings, sizes, weights, kept)
        if packed is None:
            return None
        made = path.without_torch.make(packed, shortlist)
    line += _shortlist_note(path, shortlist)
    _tell(line, _is_as_asked(path, precision, shortlist))
    rows = _rows(path, lambda _: times)
    return Path(
        path.precision, line, made, whole_steps=True, rows=rows, level=path.level or ""
    )  # fmt: skip


def _trial(
    path: FastPath, trial: Callable[[int], Callable[[], None]], rows: int
) -> Callable[[], None]:
    with loader.using(path.level):
        return trial(rows)


def _trials(paths: Sequence[FastPath]) -> Trials:
    """Return the trials of some paths, with one sentence and with many, by the names of their
    times."""
    return {
        path.time_key(amount): partial(_trial, path, path.trial, rows)
        for path in paths
        for amount, rows in AMOUNTS.items()
    }


MIN_GAIN = 0.03
"""The share of time that more rows must save for a batch to get them."""


def _rows(path: FastPath, times_of: Times) -> int:
    """Return the number of rows (hypotheses) of a batch with which ``path`` is fastest here.
    ``times_of``: returns the times of trials, as far as they are known."""
    if path.more_rows is None or path.rows_trial is None or not measures():
        return path.rows
    sizes = (path.rows, path.more_rows)
    trials = {path.time_key(f"{n} rows"): partial(_trial, path, path.rows_trial, n) for n in sizes}
    times = times_of(trials)
    if not trials.keys() <= times.keys():
        return path.rows
    few, more = (times[name] / n for name, n in zip(trials, sizes, strict=True))
    return path.more_rows if more < few * (1 - MIN_GAIN) else path.rows


_Choice = tuple[FastPath | None, str]
"""The chosen path (None: the model runs by itself, on plain torch), and the line that names it."""


def _choose(settings: ModelSettings, precision: InferencePrecision, times_of: Times) -> _Choice:
    """Choose a path for a model with ``settings``. ``times_of``: returns the times of trials on
    this machine, or nothing if they do not matter."""
    paths = fast_paths(settings.kind)
    if precision == "fp32" or not paths:
        asked = "as asked for" if precision == "fp32" else None
        why = asked or f"the one way to run a {settings.kind} model"
        return None, f"fp32 on plain torch, {why}"
    if precision not in ("auto", *(path.precision for path in paths)):
        chosen, line = _choose(settings, "auto", times_of)
        return chosen, f"{line}: a {settings.kind} model cannot be run in {precision}"
    promised = paths[0].precision
    able = [path for path in paths if path.why_not(settings) is None]
    wished = [path for path in paths if path.precision == precision]
    if wished and precision != promised:
        return wished[0], f"{wished[0].line()}, as asked for"
    among = [path for path in able if path in wished] or able
    if len(among) > 1:
        # Of all that can be had here for some model, so that what is remembered says it of any.
        times = times_of(_trials([path for path in paths if path.why_not(None) is None]))
    else:
        times = {}
    if times:
        among = sorted(among, key=lambda path: _cost(path, among, times))
    chosen = among[0]
    if chosen.precision != promised and (missing := _missing_path(paths, settings)) is not None:
        return chosen, f"{chosen.line()}: no {promised}, because {missing}"
    rival = next((path for path in among if path.precision != chosen.precision), None)
    if not times or rival is None:
        return chosen, chosen.line()
    gain = _cost(rival, [chosen], times)
    if chosen.precision != promised:
        slower = f"measured faster here than {promised} ({gain:.1f} times)"
        return chosen, f"{chosen.line()}: {slower}"
    more = f"{gain:.0f}" if gain >= 2 else f"{gain:.1f}"
    return chosen, f"{chosen.line()}, {more} times as fast here as {rival.line()}"


def _cost(path: FastPath, among: Sequence[FastPath], times: Mapping[str, int]) -> float:
    """Return the time of a path divided by that of the fastest of ``among``: the geometric mean for
    one sentence and for many, since users may need both."""
    shares = [
        times[path.time_key(amount)] / min(times[other.time_key(amount)] for other in among)
        for amount in AMOUNTS
    ]
    return math.prod(shares) ** (1 / len(shares))


def _missing_path(paths: Sequence[FastPath], settings: ModelSettings) -> str | None:
    """Return the reason why no path with the precision of the first one runs such a model; None if
    one does."""
    reasons = [path.why_not(settings) for path in paths if path.precision == paths[0].precision]
    return None if None in reasons else reasons[0]


def as_it_is(model: Model, device: torch.device | str = "cpu", reason: str = "plain torch") -> Path:
    """Return the path of a model that is run by itself, in plain torch. The model is on
    ``device``."""
    from dragoman.models.on_torch import OnTorch

    return Path("fp32", reason, OnTorch(model, device), model, one_core_each=False)


def together(paths: Sequence[Path], readers: Sequence[Reader | None]) -> Path:
    """Return the path of an ensemble, each of whose models runs on its own path. ``readers``: see
    ``Ensemble``."""
    from dragoman.models.ensemble import Ensemble
    from dragoman.models.on_torch import OnTorch

    reasons = list(dict.fromkeys(path.reason for path in paths))
    precisions = {path.precision for path in paths}
    models = [path.model for path in paths if path.model is not None]
    assert len(models) == len(paths), "an ensemble is of models that torch holds"
    ensemble = Ensemble(models, readers)
    reason = f"ensemble of {len(paths)}: {'; '.join(reasons)}"
    _tell(reason, is_as_asked=True)
    return Path(
        precisions.pop() if len(precisions) == 1 else "mixed",
        reason,
        OnTorch(ensemble),
        ensemble,
        one_core_each=all(path.one_core_each for path in paths),
        whole_steps=all(path.whole_steps for path in paths),
        rows=min(path.rows for path in paths),
        level=" and ".join(dict.fromkeys(path.level for path in paths if path.level)),
    )


def beside_ctc(
    path: Path, head: Linear, weight: float, *, eos: int, device: torch.device | str
) -> Path:
    """Return a path whose model is searched together with CTC. ``head``: the CTC layer over the
    rows that the model encodes. ``weight``: λ, the share of CTC (``models/with_ctc.py``)."""
    from dragoman.models.on_torch import OnTorch
    from dragoman.models.with_ctc import WithCtc

    assert path.model is not None, "what reads rows is held by torch"

    def of_rows(rows: Tensor) -> Tensor:
        logits: Tensor = head(rows.to(head.weight.dtype))  # which a fast path may have in bf16
        return logits

    model = WithCtc(path.model, of_rows, weight, eos=eos)
    return replace(path, searched=OnTorch(model, device), whole_steps=False)


def paths_timed() -> list[tuple[str, int, int, bool]]:
    """Time every way to run a Transformer here. Return for each, the fastest first: its line, the
    microseconds for one sentence and for many, and True if it would be chosen."""
    paths = [path for path in fast_paths(DEFAULT) if path.why_not(None) is None]
    times = measure(_trials(paths))
    ranked = sorted(paths, key=lambda path: _cost(path, paths, times))
    return [
        (
            path.line(), times[path.time_key("one")], times[path.time_key("many")],
            path is ranked[0],
        )
        for path in ranked
    ]  # fmt: skip


def summary() -> str:
    """Return one line about how this machine translates by default."""
    paths = fast_paths(DEFAULT)
    path = next(path for path in paths if path.why_not(None) is None)
    if path.precision == paths[0].precision:
        return path.units()
    return f"{path.units()}: no {paths[0].precision}, because {paths[0].why_not(None)}"


def _is_as_asked(
    path: FastPath | None, precision: InferencePrecision, shortlist: Shortlist | None
) -> bool:
    has = "fp32" if path is None else path.precision
    lists = shortlist is None or (path is not None and path.takes_shortlist)
    return precision in ("auto", has) and lists


@cache
def _tell(line: str, is_as_asked: bool) -> None:
    """Log a line once per process, however many models run that way: for debugging, or as
    information if the path or shortlist is not the requested one."""
    logger.log(logging.DEBUG if is_as_asked else logging.INFO, line)


def _shortlist_note(path: FastPath | None, shortlist: Shortlist | None) -> str:
    """Return the part of the reason that says whether a shortlist is used."""
    if shortlist is None:
        return ""
    if path is None or not path.takes_shortlist:
        return "; the shortlist is left out: it is for Transformers in int8"
    return "; vocabulary shortlist"
