"""How a model will be run on this machine: by one of its kind's fast paths, or as it is.

``fastest`` chooses, and says in one line why. A kind of model lists its paths in
``models/kinds.py``; a kind without any runs on plain torch. ``without_torch`` makes the same choice
from what an earlier process has found on this machine, where the path chosen needs no torch.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from dragoman.inference.held_weights import HeldWeights
from dragoman.inference.measured import known, microseconds
from dragoman.inference.packed_models import packed_model
from dragoman.inference.settings import Precision
from dragoman.models.fast_path import FastPath
from dragoman.models.kinds import DEFAULT, fast_paths
from dragoman.models.searched import Searched
from dragoman.models.settings import ModelSettings
from dragoman.models.shortlist import Shortlist
from dragoman.native import library, loader

if TYPE_CHECKING:
    import torch

    from dragoman.models.ensemble import Reader
    from dragoman.models.interface import Model, Writing


@dataclass(frozen=True)
class Path:
    """How a model will be run on this machine."""

    precision: Literal["int8", "bf16", "fp32", "mixed"]
    """mixed: that of an ensemble whose models are run in several ways."""
    reason: str
    """One line for people: what was chosen and why."""
    searched: Searched
    """What a search speaks with."""
    model: Model | None = None
    """A fast one, or the model that was given; None where torch does not hold it."""
    one_core_each: bool = True
    """Whether threads with a core and a batch each do more than one thread on all cores."""


def fastest(
    model: Writing,
    precision: Precision = "auto",
    shortlist: Shortlist | None = None,
    remembered: pathlib.Path | None = None,
) -> Path:
    """The fastest way to run ``model`` in inference within ``precision``.

    "auto" is what was measured to be fastest on this machine (``measured.py``), if ``remembered``
    names a folder to keep that in. Without one it is int8 where there are kernels for it, else
    plain torch in bf16 where the processor has it, else in fp32. "int8" where it cannot be had is
    not an error: it falls back and says so. A shortlist is for int8 alone. "fp32" when asked for
    is ``model`` itself, the reference.
    """
    from dragoman.models.on_torch import OnTorch

    model.eval()

    def times(tried: Sequence[FastPath]) -> Mapping[str, int]:
        if remembered is None:
            return {}
        return microseconds(remembered, {path.remembered_as: path.trial for path in tried})

    chosen = _choose(model.settings, precision, times)
    path, line = chosen.path, chosen.line + _of_shortlist(chosen.path, shortlist)
    if path is None:
        return Path("fp32", line, OnTorch(model), model, one_core_each=False)
    made = path.make(model, shortlist if path.takes_shortlist else None)
    searched = OnTorch(made) if path.searched is None else path.searched(made)
    return Path(path.precision, line, searched, made)


def without_torch(
    settings: ModelSettings,
    sizes: tuple[int, int],
    weights: HeldWeights,
    precision: Precision = "auto",
    shortlist: Shortlist | None = None,
    remembered: pathlib.Path | None = None,
    kept: pathlib.Path | None = None,
) -> Path | None:
    """What ``fastest`` would choose, made without importing torch; None where that cannot be.

    It can where an earlier process has compared and measured the kernels of this machine, and they
    run such models. ``sizes``: source and target tokens. ``kept``: the folder of weights that were
    packed before (``packed_models.py``).
    """
    times = {} if remembered is None or not loader.loaded() else known(remembered)
    paths = fast_paths(settings.kind) if times else ()
    first = paths[0] if paths else None
    if first is None or first.without_torch is None or first.remembered_as not in times:
        return None
    if first.without_torch.why_not(settings) is not None:
        return None
    library.take_as_compared()

    def of_memory(tried: Sequence[FastPath]) -> Mapping[str, int]:
        return {path.remembered_as: times[path.remembered_as] for path in tried}

    try:
        chosen = _choose(settings, precision, of_memory)
    except KeyError:  # one of the paths was not measured
        return None
    if chosen.path is not first:
        return None
    found = packed_model(first.without_torch, settings, sizes, weights, kept)
    if found is None:
        return None
    line = chosen.line + _of_shortlist(first, shortlist)
    return Path(first.precision, line, first.without_torch.make(found, shortlist))


@dataclass(frozen=True)
class _Choice:
    path: FastPath | None
    """None: the model runs as it is."""
    line: str


def _choose(
    settings: ModelSettings,
    precision: Precision,
    times_of: Callable[[Sequence[FastPath]], Mapping[str, int]],
) -> _Choice:
    """``times_of``: what some paths take on this machine, by ``remembered_as``; nothing if that
    does not matter."""
    paths = fast_paths(settings.kind)
    if precision == "fp32" or not paths:
        asked = "as asked for" if precision == "fp32" else None
        why = asked or f"the one way to run a {settings.kind} model"
        return _Choice(None, f"fp32 on plain torch, {why}")
    if precision not in ("auto", *(path.precision for path in paths)):
        chosen = _choose(settings, "auto", times_of)
        line = f"{chosen.line}: a {settings.kind} model cannot be run in {precision}"
        return replace(chosen, line=line)
    first, others = paths[0], [p for p in paths[1:] if p.why_not(settings) is None]
    for path in paths[1:]:
        if path.precision == precision:
            return _Choice(path, f"{path.line()}, as asked for")
    missing = first.why_not(settings)
    times: Mapping[str, int] = {}
    if precision == "auto" or missing is not None:
        times = times_of([*([] if first.why_not(None) else [first]), *others])
        if times:
            others.sort(key=lambda path: times[path.remembered_as])
    if missing is not None:
        return _Choice(others[0], f"{others[0].line()}: no {first.precision}, because {missing}")
    line = first.line()
    if times:
        gain = times[others[0].remembered_as] / times[first.remembered_as]
        if gain < 1:
            slower = f"measured faster here than {first.precision} ({1 / gain:.1f} times)"
            return _Choice(others[0], f"{others[0].line()}: {slower}")
        more = f"{gain:.0f}" if gain >= 2 else f"{gain:.1f}"
        line += f", {more} times as fast here as {others[0].line()}"
    return _Choice(first, line)


def as_it_is(model: Model, device: torch.device | str = "cpu") -> Path:
    """A model run by itself, as it was made or trained; it stands on ``device``."""
    from dragoman.models.on_torch import OnTorch

    return Path("fp32", "plain torch", OnTorch(model, device), model, one_core_each=False)


def together(paths: Sequence[Path], readers: Sequence[Reader | None]) -> Path:
    """The models of some paths as one, each run as its own path has it."""
    from dragoman.models.ensemble import Ensemble
    from dragoman.models.on_torch import OnTorch

    reasons = list(dict.fromkeys(path.reason for path in paths))
    precisions = {path.precision for path in paths}
    models = [path.model for path in paths if path.model is not None]
    assert len(models) == len(paths), "an ensemble is of models that torch holds"
    ensemble = Ensemble(models, readers)
    return Path(
        precisions.pop() if len(precisions) == 1 else "mixed",
        f"ensemble of {len(paths)}: {'; '.join(reasons)}",
        OnTorch(ensemble),
        ensemble,
        one_core_each=all(path.one_core_each for path in paths),
    )


def in_words() -> str:
    """How translations are computed on this machine unless told otherwise; one line."""
    first, *others = fast_paths(DEFAULT)
    missing = first.why_not(None)
    if missing is None:
        return first.units()
    path = next(path for path in others if path.why_not(None) is None)
    return f"{path.units()}: no {first.precision}, because {missing}"


def _of_shortlist(path: FastPath | None, shortlist: Shortlist | None) -> str:
    """What becomes of a shortlist."""
    if shortlist is None:
        return ""
    if path is None or not path.takes_shortlist:
        return "; the shortlist is left out: it is for int8"
    return "; vocabulary shortlist"
