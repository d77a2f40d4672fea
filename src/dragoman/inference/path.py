"""How a model will be run on this machine: by one of its kind's fast paths, or as it is.

``fastest`` chooses, and says in one line why. A kind of model lists its paths in
``models/kinds.py``; a kind without any runs on plain torch.
"""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from dragoman.inference.measured import microseconds
from dragoman.inference.settings import Precision
from dragoman.models.ensemble import Ensemble, Reader
from dragoman.models.fast_path import FastPath
from dragoman.models.interface import Model, Network
from dragoman.models.kinds import DEFAULT, fast_paths
from dragoman.models.shortlist import Shortlist


@dataclass(frozen=True)
class Path:
    """How a model will be run on this machine."""

    model: Model
    """A fast one, or the model that was given."""
    precision: Literal["int8", "bf16", "fp32", "mixed"]
    """mixed: that of an ensemble whose models are run in several ways."""
    reason: str
    """One line for people: what was chosen and why."""
    one_core_each: bool = True
    """Whether threads with a core and a batch each do more than one thread on all cores."""


def fastest(
    model: Network,
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
    model.eval()
    paths = fast_paths(model.settings.kind)
    if precision == "fp32" or not paths:
        asked = "as asked for" if precision == "fp32" else None
        why = asked or f"the one way to run a {model.settings.kind} model"
        line = f"fp32 on plain torch, {why}" + _left_out(shortlist)
        return Path(model, "fp32", line, one_core_each=False)
    if precision not in ("auto", *(path.precision for path in paths)):
        chosen = fastest(model, "auto", shortlist, remembered)
        reason = f"{chosen.reason}: a {model.settings.kind} model cannot be run in {precision}"
        return replace(chosen, reason=reason)
    first, others = paths[0], [p for p in paths[1:] if p.why_not(model.settings) is None]
    for path in paths[1:]:
        if path.precision == precision:
            return _on(path, model, f"{path.line()}, as asked for", shortlist)
    missing = first.why_not(model.settings)
    times: dict[str, int] = {}
    if remembered is not None and (precision == "auto" or missing is not None):
        tried = [*([] if first.why_not(None) else [first]), *others]
        times = microseconds(remembered, {path.remembered_as: path.trial for path in tried})
        others.sort(key=lambda path: times[path.remembered_as])
    if missing is not None:
        line = f"{others[0].line()}: no {first.precision}, because {missing}"
        return _on(others[0], model, line, shortlist)
    line = first.line()
    if times:
        gain = times[others[0].remembered_as] / times[first.remembered_as]
        if gain < 1:
            slower = f"measured faster here than {first.precision} ({1 / gain:.1f} times)"
            return _on(others[0], model, f"{others[0].line()}: {slower}", shortlist)
        more = f"{gain:.0f}" if gain >= 2 else f"{gain:.1f}"
        line += f", {more} times as fast here as {others[0].line()}"
    return _on(first, model, line, shortlist)


def as_it_is(model: Network) -> Path:
    """A model run by itself, as it was made or trained."""
    return Path(model, "fp32", "plain torch", one_core_each=False)


def together(paths: Sequence[Path], readers: Sequence[Reader | None]) -> Path:
    """The models of some paths as one, each run as its own path has it."""
    reasons = list(dict.fromkeys(path.reason for path in paths))
    precisions = {path.precision for path in paths}
    return Path(
        Ensemble([path.model for path in paths], readers),
        precisions.pop() if len(precisions) == 1 else "mixed",
        f"ensemble of {len(paths)}: {'; '.join(reasons)}",
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


def _on(path: FastPath, model: Network, line: str, shortlist: Shortlist | None) -> Path:
    if not path.takes_shortlist:
        line, shortlist = line + _left_out(shortlist), None
    elif shortlist is not None:
        line += "; vocabulary shortlist"
    return Path(path.make(model, shortlist), path.precision, line)


def _left_out(shortlist: Shortlist | None) -> str:
    return "" if shortlist is None else "; the shortlist is left out: it is for int8"
