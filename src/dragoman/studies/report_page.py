"""The report of a comparison as a page, with the figures of the paper's tables 1 and 2."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import metadata

from dragoman.base.wording import plural, shorten
from dragoman.metrics.significance import SIGNIFICANT, Significance
from dragoman.pictures.records import Chart, Series, Table
from dragoman.pictures.report import ComparisonPage, ReportSection
from dragoman.studies.comparison import UNSEEN
from dragoman.studies.report import FAMILY_NAMES, LAYERS, MODELS, CurvePoint, Report

_MAX_SHOWN = 1000
"""The most characters of a translation that are shown."""


def report_page(report: Report) -> ComparisonPage:
    """Make the page: quality first, then the cost of training and use, then the searches."""
    return ComparisonPage(
        title=" · ".join(system.name for system in report.compared.systems),
        lead=f"Compared on {report.compared.test}, {report.compared.quality.sentences:,} "
        "sentences.",
        verdict=[*report.verdict, *(f"Warning: {text}." for text in report.compared.warnings)],
        sections=[
            _quality(report), _side_by_side(report), _lengths(report),
            _learning(report), _using(report), _layers(report), _paper(report),
            _search_section(report),
            ReportSection("Machine", tables=[Table("", ("what", "value"), report.machine)]),
        ],
        made_by=f"dragoman {metadata.version('dragoman')}",
    )  # fmt: skip


def _quality(report: Report) -> ReportSection:
    quality, unseen = report.compared.quality, report.compared.unseen
    tables = [_quality_table("", quality)]
    if unseen is not None:
        title = f"{UNSEEN}, {plural(unseen.sentences, 'sentence')}"
        tables.append(_quality_table(title, unseen))
    baseline = quality.comparisons[0].scores[0].system
    below = f", below {SIGNIFICANT} chance hardly explains the difference" if quality.marks else ""
    return ReportSection(
        "Quality",
        f"{quality.method}; p: against {baseline}{below}; ±: "
        "half the 95 % interval over sentences; sd: over runs that differ by their seed.",
        tables=tables,
    )


def _quality_table(title: str, quality: Significance) -> Table:
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
    return Table(title, header, [[name, *cells] for name, cells in columns.items()], notes)


def _side_by_side(report: Report) -> ReportSection:
    """Some translations, each with its source and reference."""
    tables = [
        Table(
            "",
            ("", ""),
            [
                (name, shorten(text, _MAX_SHOWN))
                for name, text in {
                    "source": sample.source, "reference": sample.reference, **sample.outputs
                }.items()
            ],
        )
        for sample in report.compared.samples
    ]  # fmt: skip
    return ReportSection(
        "Side by side",
        "Sentences that the systems translate differently, spread over the test set.",
        tables=tables,
    )


def _lengths(report: Report) -> ReportSection:
    lengths = report.lengths
    if not lengths.bins:
        return ReportSection("By source length")
    header, rows = lengths.rows()
    return ReportSection(
        "By source length",
        f"BLEU of sentences in bins by the {lengths.unit} of their source, each bin is a separate "
        "test set; ±: half the 95 % interval over its sentences.",
        [lengths.chart()],
        [Table("", header, rows)],
    )


def _learning(report: Report) -> ReportSection:
    def chart_of(title: str, label: str, x: Callable[[CurvePoint], float]) -> Chart:
        series = [
            Series(system.name, [x(p) for p in system.curve], [p.value for p in system.curve])
            for system in report.trained
            if system.curve
        ]
        return Chart(title, series, x_label=label, from_zero=True)

    rows = [
        (
            system.name, FAMILY_NAMES.get(system.kind, system.kind), f"{system.parameters:,}",
            f"{system.updates:,}", f"{system.tokens:,}", f"{system.minutes:.1f}",
            f"{system.operations:.2e}",
        )
        for system in report.trained
    ]  # fmt: skip
    header = ("system", "model", "parameters", "updates", "target tokens", "minutes",
              "operations")  # fmt: skip
    note = (
        "Minutes of training with its validations, on the machine that trained. Operations are "
        "those of matrix products and convolutions, forward and backward, counted on "
        f"{report.counted} test sentences, times the tokens of the training."
    )
    charts = (
        chart_of("dev BLEU over updates", "update", lambda point: point.update),
        chart_of("dev BLEU over minutes", "minutes", lambda point: point.minutes),
    )
    return ReportSection(
        "Training", "The curves show the first run of each system.",
        [chart for chart in charts if chart.series], [Table("", header, rows, note)],
    )  # fmt: skip


def _using(report: Report) -> ReportSection:
    rows = [
        (
            system.name, f"{system.pace.sentences_per_second:,.0f}",
            f"{system.pace.megabytes:,.0f}", system.pace.path,
        )
        for system in report.trained
    ]  # fmt: skip
    pace = report.trained[0].pace
    return ReportSection(
        "Translating",
        f"{pace.sentences:,} test sentences, each run in its own process, in {len(pace.seconds)} "
        "turns after one to warm up; the fastest turn counts. Memory is the peak of the whole "
        "process.",
        tables=[Table("", ("system", "sentences/s", "memory, MB", "computed by"), rows)],
    )


def _layers(report: Report) -> ReportSection:
    published = {layer.kind: layer for layer in LAYERS}
    rows = []
    for system in report.trained:
        layer = published.get(system.kind)
        if layer is None or system.layer is None:
            continue
        cost = system.layer
        rows.append(
            (
                system.name, cost.kind, layer.operations, f"{cost.core:,}", f"{cost.whole:,}",
                layer.sequential, f"{cost.sequential:,}", layer.path, f"{cost.path:,}",
            )
        )  # fmt: skip
    header = (
        "system", "layer", "paper: operations", "here", "with projections",
        "paper: steps in turn", "here", "paper: longest path", "here",
    )  # fmt: skip
    return ReportSection(
        "Layers, compared with the paper's table 1",
        f"One layer of each over {report.length} tokens, the mean length of the test sentences, "
        "at the width of the model. The path is how many steps a signal takes from end to end. A "
        "gated convolution makes two products, for its values and its gates; its kernels are "
        "contiguous, where the paper's path is that of dilated ones.",
        tables=[Table("", header, rows)] if rows else [],
    )


def _paper(report: Report) -> ReportSection:
    bleu = {score.system: score.value for score in report.best.scores}
    rows: list[tuple[str, ...]] = []
    for model in MODELS:
        here = [system for system in report.trained if system.kind == model.kind]
        rows.append(
            (
                model.name, f"{model.german:.2f}", f"{model.french:.2f}",
                f"{model.german_operations:.1e}", f"{model.french_operations:.1e}",
                ", ".join(system.name for system in here) or "not measured here",
                ", ".join(f"{bleu[system.name]:.2f}" for system in here),
                ", ".join(f"{system.operations:.1e}" for system in here),
            )
        )  # fmt: skip
    header = (
        "paper", "EN-DE", "EN-FR", "operations EN-DE", "operations EN-FR", "here", "BLEU",
        "operations",
    )  # fmt: skip
    return ReportSection(
        "The paper's table 2",
        "Text, sizes and machines differ, so compare only the order of the models and the "
        "ratios of their costs.",
        tables=[Table("", header, rows)],
    )


def _search_section(report: Report) -> ReportSection:
    tables, charts = [], []
    for sweep in report.sweeps:
        header, rows = sweep.rows()
        base = sweep.base.training.updates
        note = (
            f"{plural(len(rows), 'trial')} of {plural(base, 'update')}: {' '.join(sweep.plan.over)}"
        )
        tables.append(Table(sweep.folder.name, header, rows, note))
        charts += [
            replace(chart, title=f"{sweep.folder.name}: {chart.title}") for chart in sweep.charts()
        ]
    return ReportSection(
        "Earlier searches",
        "The sweep next to each run. A system without one was not tuned here.",
        charts,
        tables,
    )
