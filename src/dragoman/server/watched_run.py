"""This module reads from the folder of a run what can be seen while it is trained.

The training does not know that it is watched: ``metrics.jsonl`` has the curves and the samples, and
the film and the snapshots have the weights with which a visitor's sentence is translated.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from dragoman.base.errors import DragomanError
from dragoman.base.reading import parse_json
from dragoman.pictures.curves import charts_of
from dragoman.pictures.records import AttentionRecord
from dragoman.runs.run import METRICS, RECIPE
from dragoman.server.info import ChartView
from dragoman.tasks.catalogue import Run

MOST_POINTS = 300
"""The most points of a curve, and the most validations: about what a screen can show."""
MOST_TRANSLATIONS = 60
"""The most translations of one sentence that are kept."""
MOST_WEIGHTS = 2_500
"""The most attention weights of one head that are shown: 50 tokens by 50."""
_MEANT = ("nll", "learning_rate", "gradient_norm", "tokens_per_second")

Record = dict[str, Any]


class Records:
    """The records of a ``metrics.jsonl`` that grows, in bounded memory: means over stretches of
    updates, and the validations."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0
        self._stretch = 1
        self._pending: list[Record] = []
        self.updates: list[Record] = []
        """The mean of each stretch of updates, of at most ``MOST_POINTS`` stretches."""
        self.validations: list[Record] = []
        self.latest: Record | None = None
        """The record of the last update; None before the first."""
        self.samples: list[dict[str, str]] = []
        """The samples of the last validation that had some."""

    def read(self) -> None:
        """Read what was written since the last call. Errors: ``RunError`` for a damaged line."""
        if not self._path.is_file():
            return
        with self._path.open("rb") as file:
            file.seek(self._position)
            for line in file:
                if not line.endswith(b"\n"):
                    return  # the training is writing it
                self._position += len(line)
                self._add(parse_json(line, str(self._path)))

    def _add(self, record: Record) -> None:
        if record["kind"] == "validation":
            self.samples = record.pop("samples") or self.samples
            self.validations.append(record)
            if len(self.validations) > MOST_POINTS:
                some = [v for n, v in enumerate(self.validations) if n % 2 or v["best"]]
                self.validations = some if len(some) < MOST_POINTS else self.validations[1::2]
            return
        self.latest = record
        self._pending.append(record)
        if len(self._pending) < self._stretch:
            return
        self.updates.append(_mean(self._pending))
        self._pending.clear()
        if len(self.updates) >= MOST_POINTS:
            self.updates = [_mean(self.updates[n : n + 2]) for n in range(0, MOST_POINTS, 2)]
            self._stretch *= 2

    def seconds_left(self, updates: int) -> float | None:
        """Return how long a run of so many ``updates`` will still take, at the pace of the second
        half of the updates so far; None if that is not known yet."""
        if self.latest is None or len(self.updates) < 2:
            return None
        before = self.updates[len(self.updates) // 2 - 1]
        done = self.latest["update"] - before["update"]
        pace = (self.latest["elapsed"] - before["elapsed"]) / max(1, done)
        return float(pace * max(0, updates - self.latest["update"]))


def _mean(records: list[Record]) -> Record:
    """Return the last record with the mean of the numbers that are drawn."""
    means = {
        key: fmean(values)
        for key in _MEANT
        if (values := [record[key] for record in records if record[key] is not None])
    }
    return records[-1] | means


@dataclass(eq=False)
class _Sentence:
    """A visitor's sentence, and what is known of it."""

    text: str
    translations: dict[int, str] = field(default_factory=dict)
    """The translation with the weights after each update."""
    newest: int = -1
    tokens: tuple[int, ...] = ()
    """The newest translation, for which attention is computed at every moment."""
    looks: dict[int, tuple[tuple[int, ...], AttentionRecord]] = field(default_factory=dict)
    """The attention at each moment of the film, and the tokens for which it was computed."""


class WatchedRun:
    """A run that is being trained. ``told`` and ``translate_next`` may be called in two threads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = folder.resolve().name
        self._run: Run | None = None
        self._recipe_written = 0.0
        self._sentence = _Sentence("")
        self._head = (0, 0)
        self._problem = ""
        self.begin()

    def begin(self) -> None:
        """Read the records from their beginning: a training that is resumed may have cut them."""
        self._records = Records(self.folder / METRICS)
        self._begun: int | None = None

    @property
    def moves(self) -> bool:
        """True if an update was made since ``begin``."""
        latest = self._records.latest
        return latest is not None and self._begun is not None and latest["update"] > self._begun

    def _opened(self) -> Run | None:
        """Return the run, opened again if its plan was corrected; None if it is not written yet."""
        path = self.folder / RECIPE
        written = path.stat().st_mtime if path.is_file() else 0.0
        if written > self._recipe_written:
            self._run, self._recipe_written = Run.open(self.folder), written
        return self._run

    # ---- the course of training

    def told(self) -> dict[str, Any]:
        """Return the course of the training so far, as JSON has it."""
        run = self._opened()
        if run is None:
            return {"name": self.name}
        records, task = self._records, run.task
        records.read()
        latest, updates = records.latest or {}, run.recipe.training.updates
        if self._begun is None:
            self._begun = latest.get("update", 0)
        charts = charts_of([*records.updates, *records.validations], task)
        scores = records.validations[-1]["scores"] if records.validations else {}
        return {
            "name": self.name,
            "update": latest.get("update", 0),
            "updates": updates,
            "left": records.seconds_left(updates),
            "rate": latest.get("learning_rate"),
            "speed": latest.get("tokens_per_second"),
            "counted": task.counted,
            "source": run.languages[0] if run.languages else "und",
            "target": run.languages[-1] if run.languages else "und",
            "translates": _can_translate(run),
            "charts": [ChartView.model_validate(chart).model_dump() for chart in charts],
            "scores": [_written(run, name, value) for name, value in scores.items()],
            "samples": records.samples,
        }

    # ---- a visitor's sentence

    def ask(self, text: str) -> None:
        """Translate ``text`` with all weights that are there, and with those to come."""
        self._sentence, self._problem = _Sentence(text), ""

    def choose_head(self, layer: int, head: int) -> None:
        """Show this head of cross-attention, both counted from 0."""
        self._head = layer, head

    def sentence(self) -> dict[str, Any]:
        """Return the translations so far and one head's attention at each moment, as JSON has
        it."""
        asked = self._sentence
        said = [{"update": u, "text": text} for u, text in sorted(asked.translations.items())]
        told: dict[str, Any] = {
            "text": asked.text,
            "said": said,
            "problem": self._problem,
            "heads": None,
        }
        looks = [
            (u, look) for u, (tokens, look) in sorted(asked.looks.items()) if tokens == asked.tokens
        ]
        if looks and len(looks[0][1].cross):
            first = looks[0][1]
            layers, heads = first.cross.shape[:2]
            layer, head = min(self._head[0], layers - 1), min(self._head[1], heads - 1)
            maps = [
                {"update": u, "weights": look.cross[layer, head].astype(float).round(2).tolist()}
                for u, look in looks
            ]
            told["heads"] = {
                "source": first.source, "target": first.target, "layers": layers, "heads": heads,
                "layer": layer, "head": head, "maps": maps,
            }  # fmt: skip
        return told

    def translate_next(self) -> bool:
        """Translate the sentence with the next weights for which that is still to be done, the
        newest first; return False if there are none."""
        asked, run = self._sentence, self._run
        if not asked.text or self._problem or run is None or not _can_translate(run):
            return False
        film = dict(run.film())
        snapshots = sorted((self.folder / "training" / "snapshots").glob("[0-9]*.safetensors"))
        files = film | {int(path.stem): path for path in snapshots[-1:]}
        newest = max(files, default=-1)
        for update in sorted(files, key=lambda u: (u != newest, u)):
            is_filmed, look = update in film, asked.looks.get(update)
            is_stale = is_filmed and (look is None or look[0] != asked.tokens)
            if update in asked.translations and not is_stale:
                continue
            try:
                self._translate(run, asked, update, files[update], is_filmed=is_filmed)
            except DragomanError as error:
                if files[update].is_file():  # else it made room for a newer one
                    self._problem = str(error)
            return True
        return False

    def _translate(
        self, run: Run, asked: _Sentence, update: int, path: Path, *, is_filmed: bool
    ) -> None:
        from dragoman.engine.engine import Engine
        from dragoman.engine.settings import EngineSettings
        from dragoman.models.interface import writing

        search = run.recipe.search.model_copy(update={"n_best": 1, "sampling": None})
        network = writing(run.model(path))
        engine = Engine(network, run.source, run.target, search, settings=EngineSettings(threads=1))
        (values,) = engine.source.read([asked.text])
        values = values[: engine.longest]
        if update not in asked.translations:
            ((best, *_),) = engine.search([engine.request(values)])
            (asked.translations[update],) = engine.target.raw([best.tokens])
            if update > asked.newest:
                asked.newest, asked.tokens = update, tuple(best.tokens)
            if len(asked.translations) > MOST_TRANSLATIONS:
                others = sorted(asked.translations.keys() - dict(run.film()).keys())
                asked.translations.pop((others or sorted(asked.translations))[0])
        if is_filmed:
            look = engine.attention.record(values, asked.tokens)
            if len(look.source) * len(look.target) <= MOST_WEIGHTS:
                asked.looks[update] = asked.tokens, look


def _can_translate(run: Run) -> bool:
    return run.task.translates and not run.lacks_tag


def _written(run: Run, name: str, value: float | None) -> Mapping[str, Any]:
    measure = run.task.measure(name)
    return {
        "name": name, "called": measure.called, "value": value,
        "times": measure.times, "digits": measure.digits, "unit": measure.unit,
    }  # fmt: skip


def as_json(told: Mapping[str, Any]) -> str:
    """Return ``told`` as a line of JSON."""
    return json.dumps(told, ensure_ascii=False, allow_nan=False)
