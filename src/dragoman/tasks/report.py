"""Writes ``report.html``, ``card.md`` and ``verdict.json`` from the files of a run folder, and
keeps an example file in it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from dragoman.base.atomic import write_bytes, write_text
from dragoman.base.errors import DataError
from dragoman.base.measure import BLEU, LOSS
from dragoman.base.wording import plural
from dragoman.demo.corpus import NOTICE
from dragoman.engine.machine import machine_facts
from dragoman.pictures.bitmaps import png_of
from dragoman.pictures.card import card_markdown
from dragoman.pictures.curves import charts_of
from dragoman.pictures.records import (
    AttentionRecord,
    Hops,
    RunSummary,
    ShownSample,
    ShownScore,
    Table,
    merged_to_words,
)
from dragoman.pictures.report import report_html
from dragoman.runs.recipe.recipe_text import read_text
from dragoman.runs.run import EXAMPLE, MOST_EXAMPLE, RECIPE, VERDICT, Run
from dragoman.sources.picture.idx import is_place, picture_at
from dragoman.sources.shared.files import file_of, place_of
from dragoman.tasks.catalogue import runtime_of
from dragoman.tasks.shared.progress_made import TrainingSummary
from dragoman.tasks.verdict import verdict

_SAMPLE_SIZE = 2
_MAX_LENGTH = 100
"""The most characters of a sentence whose attention fits on a screen."""


def write_report(
    run: Run,
    *,
    hops: Sequence[Hops] = (),
    attention: Sequence[AttentionRecord] | None = None,
    sentences: Sequence[str] | None = None,
) -> Path:
    """Write ``report.html``, ``card.md`` and ``verdict.json`` into the run's folder, and for a run
    that reads files an example -> the page.

    ``hops`` and ``attention`` are figures that the report shows in addition to the contents of the
    folder; without ``attention`` it shows that of some test sentences. ``sentences`` are those of
    ``verdict``, if the caller already has them.
    Errors: ``RunError`` for a damaged folder, ``FileError`` when the disk is full.
    """
    looks = look_at_samples(run) if attention is None else attention
    sentences = verdict(run) if sentences is None else list(sentences)
    summary = summarise(run, hops=hops, attention=looks, sentences=sentences)
    write_text(run.folder / VERDICT, json.dumps({"said": sentences}, ensure_ascii=False) + "\n")
    page = run.folder / "report.html"
    write_text(page, report_html(summary))
    write_text(run.folder / "card.md", card_markdown(summary))
    keep_example(run)
    return page


def keep_example(run: Run) -> None:
    """Copy one of the files that the run was validated on into its folder, to try the run with.
    Files that are missing or large are passed over."""
    if not run.task.reads_files or run.example():
        return
    for source in run.sources_while_learning():
        path, name = place_of(source)
        try:
            if is_place(source):
                ending, content = ".png", png_of(picture_at(source))
            else:
                with file_of(source).open("rb") as file:
                    ending, content = Path(name or path).suffix, file.read(MOST_EXAMPLE + 1)
        except (OSError, DataError):
            continue
        if len(content) <= MOST_EXAMPLE:
            write_bytes(run.folder / f"{EXAMPLE}{ending.lower()}", content)
            return


def look_at_samples(run: Run) -> list[AttentionRecord]:
    """Record the attention of all layers and heads while the run reads some test sentences."""
    sources = [sample["source"] for sample in run.scores().get("samples", [])]
    short = [source for source in sources if 0 < len(source) <= _MAX_LENGTH][:_SAMPLE_SIZE]
    looks = runtime_of(run.task).looks(run, short) if short else []
    return list(map(merged_to_words, looks))


def summarise(
    run: Run,
    *,
    hops: Sequence[Hops] = (),
    attention: Sequence[AttentionRecord] = (),
    sentences: Sequence[str] | None = None,
) -> RunSummary:
    """Collect the contents of the report. The arguments are those of ``write_report``."""
    sentences = verdict(run) if sentences is None else sentences
    recipe = run.recipe
    scores, training = run.scores(), TrainingSummary.of(run)
    facts = [
        ("parameters", f"{sum(p.numel() for p in run.model().parameters()):,}"),
        ("vocabulary", runtime_of(run.task).vocabulary(run)),
    ]
    if training.updates:
        speed = training.tokens / max(training.seconds, 1e-9)
        facts += [
            ("updates", f"{training.updates:,} of {recipe.training.updates:,}"),
            (f"{run.task.counted} seen", f"{training.tokens:,}"),
            ("time", f"{training.seconds / 60:.1f} minutes, {speed:,.0f} {run.task.counted}/s"),
        ]
    if recipe.data.teachers:
        names = ("/".join(Path(teacher.run).parts[-2:]) for teacher in recipe.data.teachers)
        facts.append(("teachers", ", ".join(names)))
    facts.append(("weights", run.weights_summary))
    measured = "sentence" if run.task.noun == "pairs" else run.task.noun.removesuffix("s")
    test = f"{scores.get('test', '')}, {plural(scores.get('sentences', 0), measured)}"
    named = [
        ShownScore(name, value["value"], test, value["signature"], run.task.measure(name))
        for name, value in scores.get("scores", {}).items()
    ]
    if "prepared_bleu" in scores:
        prepared = scores["prepared_bleu"]
        named.append(
            ShownScore(
                "BLEU, lower-cased Moses tokens",
                prepared["value"],
                test,
                prepared["signature"],
                replace(BLEU, called="BLEU, lower-cased Moses tokens"),
            )
        )
    embedded = recipe.data.embedded is not None
    limits = [] if not embedded else ["It knows about 300 words and a few kinds of sentences."]
    limits += run.task.limits
    if longest := run.longest_words():
        limits.append(
            f"Nearly all sentences that it has learned from have at most "
            f"{plural(longest, 'word')}; it may leave out parts of longer ones."
        )
    samples, undrawn = runtime_of(run.task).samples(
        run,
        [
            ShownSample(sample["source"], sample["translation"], sample["reference"])
            for sample in scores.get("samples", [])
        ],
    )
    return RunSummary(
        name=recipe.name,
        languages=run.languages,
        hub_tag=run.task.hub_tag,
        notice=" ".join([*([NOTICE] if embedded else []), *sentences]),
        facts=facts,
        scores=named,
        samples=samples,
        undrawn=undrawn,
        measured=runtime_of(run.task).tables(scores),
        confusions=runtime_of(run.task).heatmaps(scores),
        charts=charts_of(list(run.metrics()), run.task),
        hops=hops,
        attention=attention,
        data=_data_tables(run),
        recipe=read_text(run.folder / RECIPE),
        machine=machine_facts(),
        limits=limits,
        made_by=f"dragoman {metadata.version('dragoman')}",
    )


def tuning_table(run: Run) -> Table | None:
    """The scores of a tuned run on the new and the old text, before and after; None for a run that
    keeps no old text."""
    tuning = run.tuning()
    rows = []
    for domain in tuning.get("domains", []):
        written = [
            f"{measure.number(before)} → {measure.number(after)}"
            for measure, (before, after) in ((LOSS, domain["loss"]), (BLEU, domain["bleu"]))
        ]
        row = (f"{domain['name']}: {domain['test']}", domain["sentences"], *written)
        rows.append((*row, f"{domain['p_value']:.4f}"))
    if not rows:
        return None
    note = f"Weights: {tuning['weights']}. p of BLEU: {tuning['domains'][0]['method']}."
    header = ("text", "sentences", "loss", "BLEU", "p")
    return Table("Before and after tuning", header, rows, note)


def _data_tables(run: Run) -> list[Table]:
    notes = run.notes()
    tables = []
    if (tuned := tuning_table(run)) is not None:
        tables.append(tuned)
    pairs = notes.get("pairs", {})
    if pairs:
        note = notes.get("overlap", "")
        if run.recipe.data.embedded is not None:
            note = "The text is generated: nothing is cleaned."
        noun, parts = run.task.noun, [*pairs.items()]
        if synthetic := notes.get("synthetic"):
            parts.insert(1, ("train: synthetic, written by models", synthetic))
        tables.append(Table(noun.capitalize(), ("part", noun), parts, note))
    doubts = notes.get("doubts", [])
    if doubts:
        listed = [(d["corpus"], d["words"], "; ".join(d["lines"])) for d in doubts]
        tables.append(Table("What looks wrong", ("text", "what", "lines"), listed))
    corpora = notes.get("corpora", [])
    if corpora:
        rows = [(c["name"], c["weight"], c["sha256"][:16]) for c in corpora]
        tables.append(Table("Corpora", ("name", "weight", "SHA-256 (first 16 digits)"), rows))
    cleaning = notes.get("cleaning")
    if cleaning and run.recipe.data.embedded is None:
        dropped = [
            (
                name,
                filtered["count"],
                "; ".join(f"line {e['line']}: {e['source'][:60]}" for e in filtered["first"]),
            )
            for name, filtered in cleaning["filters"].items()
        ]
        read = plural(cleaning["read"], run.task.noun.removesuffix("s"))
        note = f"{read} read, {cleaning['kept']:,} kept"
        tables.append(Table("Cleaning", ("filter", "dropped", "first examples"), dropped, note))
    return tables
