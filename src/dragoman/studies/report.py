"""A comparison of trained runs in full: quality, training cost, speed, memory, layers, the sweep of
each, beside what the paper prints (its tables 1 and 2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path
from statistics import fmean
from typing import Any

from dragoman.insight.cost import Cost, attention_cost, convolution_cost, recurrence_cost
from dragoman.metrics.significance import SIGNIFICANT, Comparison
from dragoman.models.settings import ModelSettings
from dragoman.pictures.comparison import ComparisonPage, Section
from dragoman.pictures.records import Chart, Series, Table
from dragoman.studies.comparison import Compared, System, Translated
from dragoman.studies.operations import operations_per_token
from dragoman.studies.published import LAYERS, MODELS
from dragoman.studies.sweep import PLAN, Sweep
from dragoman.studies.turns import Pace, measure_in_turns
from dragoman.studies.verdict import FAMILIES, Point, Standing, verdict
from dragoman.tasks.machine import machine_facts
from dragoman.tasks.model import hollow_model
from dragoman.tasks.prepare import Say
from dragoman.tasks.run import Run

_COUNTED, _TIMED = 64, 500
"""Sentences that operations are counted on, and that are translated in turns."""

LAYER_OF: dict[str, Callable[[int, ModelSettings], Cost]] = {
    "transformer": lambda n, model: attention_cost(n, model.model_dim),
    "recurrent": lambda n, model: recurrence_cost(n, model.model_dim),
    "convolutional": lambda n, model: convolution_cost(
        n, int(model.sizes["channels"]), int(model.sizes["kernel_width"])
    ),
}
"""What mixes positions in each kind of model: (length, settings) -> its cost."""


@dataclass(frozen=True)
class Trained:
    """What one system cost and what it can do, beside the quality of its translations."""

    name: str
    kind: str
    sizes: dict[str, int | str]
    parameters: int
    runs: int
    updates: int
    """Of its first run."""
    tokens: int
    """Target tokens of its first run."""
    minutes: float
    """Of training, the mean over its runs."""
    operations: float
    """Of the whole training: matrix products and convolutions."""
    curve: tuple[Point, ...]
    """BLEU on dev, of its first run."""
    pace: Pace
    layer: Cost | None
    """Of one layer that mixes positions, at the mean length of the test sentences."""
    sweep: str | None
    """The folder of the search that its settings come from."""


@dataclass(frozen=True)
class Report:
    """All of a comparison."""

    compared: Compared
    trained: tuple[Trained, ...]
    """In the order of the systems."""
    length: int
    """Tokens of a test sentence, the mean over all, as the first run reads them."""
    counted: int
    """Test sentences that operations were counted on."""
    best: Comparison
    """BLEU, against the best."""
    sweeps: tuple[Sweep, ...]
    machine: tuple[tuple[str, str], ...]

    @property
    def standings(self) -> list[Standing]:
        """How each did, in short."""
        scores = {score.system: score for score in self.best.scores}
        return [
            Standing(
                one.name, one.kind, scores[one.name].value, scores[one.name].p_value, one.curve,
                one.pace.sentences_per_second,
            )
            for one in self.trained
        ]  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {
            **self.compared.to_dict(),
            "verdict": verdict(self.standings),
            "trained": [
                {**asdict(one), "sentences_per_second": one.pace.sentences_per_second}
                for one in self.trained
            ],
            "against the best": [asdict(score) for score in self.best.scores],
            "tokens_per_sentence": self.length,
            "sweeps": [
                {"folder": str(sweep.folder), "trials": [r.model_dump() for r in sweep.ranked]}
                for sweep in self.sweeps
            ],
            "paper": {
                "table 1": [asdict(layer) for layer in LAYERS],
                "table 2": [asdict(model) for model in MODELS],
            },
            "machine": dict(self.machine),
        }

    def page(self) -> ComparisonPage:
        """For people."""
        return ComparisonPage(
            title=" · ".join(system.name for system in self.compared.systems),
            lead=f"Compared on {self.compared.test}, {self.compared.quality.sentences:,} "
            "sentences.",
            verdict=verdict(self.standings),
            sections=[
                self._quality(), self._learning(), self._using(), self._layers(), self._paper(),
                self._searched(),
                Section("Machine", tables=[Table("", ("what", "value"), self.machine)]),
            ],
            made_by=f"dragoman {metadata.version('dragoman')}",
        )  # fmt: skip

    def _quality(self) -> Section:
        tests = {"bootstrap": "paired bootstrap", "randomisation": "approximate randomisation"}
        quality = self.compared.quality
        columns: dict[str, list[str]] = {}
        for comparison in quality.comparisons:
            for score in comparison.scores:
                sd = "" if score.deviation is None else f" sd {score.deviation:.2f}"
                within = "" if score.interval is None else f" ± {score.interval:.2f}"
                p = "" if score.p_value is None else f"{score.p_value:.4f}"
                columns.setdefault(score.system, []).extend((f"{score.value:.2f}{within}{sd}", p))
        header = ["system"]
        for comparison in quality.comparisons:
            header += [comparison.metric, "p"]
        signatures = "; ".join(f"{c.metric}: {c.signature}" for c in quality.comparisons)
        notes = " ".join((f"{signatures}.", *quality.notes))
        return Section(
            "Quality",
            f"{tests[quality.test]}, {quality.samples:,} samples; p: against "
            f"{next(iter(columns))}, below {SIGNIFICANT} it is hardly luck; ±: half the 95 % "
            "interval over sentences; sd: over runs that differ by their seed.",
            tables=[Table("", header, [[name, *cells] for name, cells in columns.items()], notes)],
        )

    def _learning(self) -> Section:
        def chart(title: str, label: str, x: Callable[[Point], float]) -> Chart:
            series = [
                Series(one.name, [x(p) for p in one.curve], [p.value for p in one.curve])
                for one in self.trained
                if one.curve
            ]
            return Chart(title, series, x_label=label, from_zero=True)

        rows = [
            (
                one.name, FAMILIES.get(one.kind, one.kind), f"{one.parameters:,}",
                f"{one.updates:,}", f"{one.tokens:,}", f"{one.minutes:.1f}",
                f"{one.operations:.2e}",
            )
            for one in self.trained
        ]  # fmt: skip
        header = ("system", "model", "parameters", "updates", "target tokens", "minutes",
                  "operations")  # fmt: skip
        note = (
            "Minutes of training with its validations, on the machine that trained. Operations are "
            "those of matrix products and convolutions, forward and backward, counted on "
            f"{self.counted} test sentences, times the tokens of the training."
        )
        charts = (
            chart("dev BLEU over updates", "update", lambda point: point.update),
            chart("dev BLEU over minutes", "minutes", lambda point: point.minutes),
        )
        return Section(
            "Training", "Curves are of the first run of each.",
            [one for one in charts if one.series], [Table("", header, rows, note)],
        )  # fmt: skip

    def _using(self) -> Section:
        rows = [
            (
                one.name, f"{one.pace.sentences_per_second:,.0f}", f"{one.pace.megabytes:,.0f}",
                one.pace.path,
            )
            for one in self.trained
        ]  # fmt: skip
        pace = self.trained[0].pace
        return Section(
            "Translating",
            f"{pace.sentences:,} test sentences, each run in a process of its own, in "
            f"{len(pace.seconds)} turns after one to warm up; the fastest turn. Memory is the most "
            "that the process took, program included.",
            tables=[Table("", ("system", "sentences/s", "memory, MB", "computed by"), rows)],
        )

    def _layers(self) -> Section:
        published = {layer.kind: layer for layer in LAYERS}
        rows = []
        for one in self.trained:
            layer = published.get(one.kind)
            if layer is None or one.layer is None:
                continue
            cost = one.layer
            rows.append(
                (
                    one.name, cost.kind, layer.operations, f"{cost.core:,}", f"{cost.whole:,}",
                    layer.sequential, f"{cost.sequential:,}", layer.path, f"{cost.path:,}",
                )
            )  # fmt: skip
        header = (
            "system", "layer", "paper: operations", "here", "with projections",
            "paper: steps in turn", "here", "paper: longest path", "here",
        )  # fmt: skip
        return Section(
            "Layers, beside the paper's table 1",
            f"One layer of each over {self.length} tokens, the mean length of the test sentences, "
            "at the width of the model. The path is how many steps a signal takes from end to end; "
            "a gated convolution makes two such products.",
            tables=[Table("", header, rows)] if rows else [],
        )

    def _paper(self) -> Section:
        bleu = {score.system: score.value for score in self.best.scores}
        rows: list[tuple[str, ...]] = []
        for model in MODELS:
            here = [one for one in self.trained if one.kind == model.kind]
            rows.append(
                (
                    model.name, f"{model.german:.2f}", f"{model.french:.2f}",
                    f"{model.german_operations:.1e}", f"{model.french_operations:.1e}",
                    ", ".join(one.name for one in here) or "not measured here",
                    ", ".join(f"{bleu[one.name]:.2f}" for one in here),
                    ", ".join(f"{one.operations:.1e}" for one in here),
                )
            )  # fmt: skip
        header = (
            "paper", "EN-DE", "EN-FR", "operations EN-DE", "operations EN-FR", "here", "BLEU",
            "operations",
        )  # fmt: skip
        return Section(
            "The paper's table 2",
            "Other text, other sizes and other machines: what can be compared is the order of the "
            "models, and the relation of their costs.",
            tables=[Table("", header, rows)],
        )

    def _searched(self) -> Section:
        tables, charts = [], []
        for sweep in self.sweeps:
            header, rows = sweep.rows()
            base = sweep.base.training.updates
            note = f"{len(rows)} trials of {base:,} updates: {' '.join(sweep.plan.over)}"
            tables.append(Table(sweep.folder.name, header, rows, note))
            charts += [
                replace(chart, title=f"{sweep.folder.name}: {chart.title}")
                for chart in sweep.charts()
            ]
        return Section(
            "What was searched before",
            "The sweep that lies beside each run; a system without one was not tuned here.",
            charts,
            tables,
        )


def report(translated: Translated, say: Say) -> Report:
    """Measure what a comparison of runs does not know yet. No system may be a file: nothing
    trained it here.

    Errors: ``RunError`` for a run that cannot translate, or a sweep that is damaged.
    """
    compared, pairs = translated.compared, translated.measured.pairs
    some = pairs[:: max(1, len(pairs) // _COUNTED)][:_COUNTED]
    timed = [pair.source for pair in pairs[:: max(1, len(pairs) // _TIMED)][:_TIMED]]
    say(f"translating {len(timed)} sentences in turns")
    paces = measure_in_turns([system.runs[0].folder for system in compared.systems], timed)
    first = compared.systems[0].runs[0]
    read = first.source.tokens([pair.source for pair in pairs])
    length = round(fmean(len(tokens) + 1 for tokens in read))
    trained = []
    for system, pace in zip(compared.systems, paces, strict=True):
        say(f"counting the operations of {system.name}")
        per_token = operations_per_token(system.runs[0], some)
        trained.append(_trained(system, pace, per_token, length))
    bleu = next(c for c in compared.quality.comparisons if c.metric == "BLEU")
    best = max(bleu.scores, key=lambda score: score.value).system
    against = translated.against(best)
    folders = [folder for system in compared.systems if (folder := sweep_beside(system.path))]
    return Report(
        compared,
        tuple(trained),
        length,
        len(some),
        next(c for c in against.comparisons if c.metric == "BLEU"),
        tuple(Sweep.open(folder) for folder in folders),
        tuple(machine_facts()),
    )


def sweep_beside(path: Path) -> Path | None:
    """The folder of the search that lies beside a run: ``runs/x-sweep`` for ``runs/x``."""
    named = path if path.name else path.resolve()  # the present folder's path has no name
    folder = named.with_name(f"{named.name}-sweep")
    return folder if (folder / PLAN).is_file() else None


def _trained(system: System, pace: Pace, per_token: float, length: int) -> Trained:
    run = system.runs[0]
    model = run.recipe.model
    lines = list(run.metrics())
    updates = [line for line in lines if line["kind"] == "update"]
    tokens = sum(line["tokens"] for line in updates)
    cost = LAYER_OF.get(model.kind)
    sweep = sweep_beside(system.path)
    return Trained(
        name=system.name,
        kind=model.kind,
        sizes=model.sizes,
        parameters=sum(
            p.numel() for p in hollow_model(run.recipe, run.source, run.target).parameters()
        ),
        runs=len(system.runs),
        updates=updates[-1]["update"] if updates else 0,
        tokens=tokens,
        minutes=fmean(_minutes(one) for one in system.runs),
        operations=per_token * tokens,
        curve=tuple(
            Point(line["update"], line.get("elapsed", 0.0) / 60, line["scores"]["bleu"])
            for line in lines
            if line["kind"] == "validation"
            and line["weights"] != "average"
            and line["scores"].get("bleu") is not None
        ),
        pace=pace,
        layer=None if cost is None else cost(length, model),
        sweep=None if sweep is None else str(sweep),
    )


def _minutes(run: Run) -> float:
    return max((line.get("elapsed", 0.0) for line in run.metrics()), default=0.0) / 60
