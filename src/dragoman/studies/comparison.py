"""Comparisons of runs, groups of runs and finished translations on one set of sentences."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from dragoman.base.errors import DragomanError, RunError
from dragoman.base.wording import plural, shorten
from dragoman.forms.form import Pair
from dragoman.forms.text_form import MosesText
from dragoman.metrics.significance import (
    Significance,
    compare_statistics,
    compare_systems,
)
from dragoman.metrics.word_errors import chance_of_word_errors, compare_word_errors
from dragoman.pictures.labels import visible
from dragoman.runs.evaluation_set import EvaluationSet
from dragoman.runs.recipe.sections import writes_what_it_reads
from dragoman.sources.file_examples import content_of
from dragoman.studies.systems import (
    ComparisonRequest,
    System,
    require_one_language,
    require_one_test_set,
    runs_at,
    search_training_text,
    systems_at,
)
from dragoman.tasks.catalogue import runtime_of
from dragoman.tasks.shared.progress_made import (
    TrainingSummary,
    chance_of_translations,
    training_answers,
)
from dragoman.tasks.verdict import hardly_learned

logger = logging.getLogger("dragoman")

UNSEEN = "On the texts that none of them was trained on"
_SIDE_BY_SIDE = 3
_MAX_SHOWN = 240
"""The most characters of a text that are shown."""
_SAMPLES = 300
"""The samples of the test for some of the sentences."""

PREPARED = (
    "All figures are over lower-cased, Moses-tokenised text, because one of the runs was trained "
    "on such text. Compare them with papers that do the same, not with BLEU on plain text."
)


@dataclass(frozen=True)
class SideBySide:
    """A text and the output of each system for it."""

    source: str
    reference: str
    outputs: dict[str, str]
    """Outputs by system; a group of runs shows the output of its first run."""

    def table(self) -> str:
        """Plain text with a line for each system."""
        lines = {"source": self.source, "reference": self.reference, **self.outputs}
        wide = max(map(len, lines))
        return "\n".join(
            f"{name:<{wide}}  {shorten(visible(text), _MAX_SHOWN)}"
            for name, text in lines.items()
            if text or name != "source"
        )


def side_by_side(
    pairs: Sequence[Pair], outputs: Mapping[str, Sequence[str]]
) -> tuple[SideBySide, ...]:
    """Choose some texts, spread over all those for which the outputs differ.

    ``outputs``: the outputs of each system for all texts.
    """
    differ = [place for place in range(len(pairs)) if len({o[place] for o in outputs.values()}) > 1]
    step = max(1, len(differ) // _SIDE_BY_SIDE)
    return tuple(
        SideBySide(
            pairs[place].source,
            pairs[place].target,
            {name: lines[place] for name, lines in outputs.items()},
        )
        for place in differ[::step][:_SIDE_BY_SIDE]
    )


@dataclass(frozen=True)
class ComparisonReport:
    """The quality of several systems on the same texts."""

    systems: tuple[System, ...]
    """The first system is the baseline."""
    test: str
    """The name of the test texts."""
    quality: Significance
    """The scores. Differences between systems that have hardly learned are not marked, so none of
    them wins."""
    trained: tuple[tuple[TrainingSummary, ...], ...]
    """The recorded training of each run of each system."""
    warnings: tuple[str, ...] = ()
    """Warnings that a reader must know before believing the scores."""
    unseen: Significance | None = None
    """The scores on the texts that no run was trained on, if some runs were trained on others."""
    samples: tuple[SideBySide, ...] = ()
    tables: tuple[str, ...] = ()
    """The tables that follow the scores, as plain text."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """The content of these tables, as plain values for JSON."""

    def table(self) -> str:
        """Return the whole report as plain text."""
        parts = [f"{self.test}\n{self.quality.table()}", *self._trainings()]
        if self.unseen is not None:
            parts.append(f"{UNSEEN}:\n{self.unseen.table()}")
        parts += [f"warning: {warning}" for warning in self.warnings]
        samples = [sample.table() for sample in self.samples]
        return "\n\n".join([*parts, *samples, *self.tables])

    def _trainings(self) -> list[str]:
        """The amount of training of each run, a line for each."""
        lines = []
        for system, trainings in zip(self.systems, self.trained, strict=True):
            for run, training in zip(system.runs, trainings, strict=True):
                name = system.name if len(system.runs) == 1 else f"{system.name}/{run.folder.name}"
                much = (
                    f"{plural(training.updates, 'update')}, {training.tokens:,} {run.task.counted}"
                )
                lines.append(
                    f"{name}: {much if training.updates else 'its training is not recorded'}"
                )
        return ["\n".join(lines)] if lines else []

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values, for JSON: updates and tokens of each run, null if no training
        is recorded."""
        systems = [
            {
                "system": system.name,
                "runs": [str(run.folder) for run in system.runs],
                "updates": [training.updates or None for training in trainings],
                "tokens": [training.tokens or None for training in trainings],
            }
            for system, trainings in zip(self.systems, self.trained, strict=True)
        ]
        return {
            "systems": systems,
            "on": self.test,
            **self.quality.to_dict(),
            "learned": self.quality.learned,
            "warnings": list(self.warnings),
            "unseen": None if self.unseen is None else self.unseen.to_dict(),
            "samples": [asdict(sample) for sample in self.samples],
            **self.details,
        }


def make_report(
    request: ComparisonRequest,
    systems: Sequence[System],
    test: str,
    pairs: Sequence[Pair],
    over: Callable[[Sequence[int]], Significance],
    *,
    chance: Mapping[str, float],
    samples: Sequence[SideBySide],
) -> ComparisonReport:
    """Make a comparison, with its warnings.

    ``test``: the name of the texts. ``over``: computes the comparison for the texts at some places.
    ``chance``: the score of guessing, by metric. There is no winner if no system is better than
    guessing by any metric, nor between two systems that have hardly learned.
    """
    runs = [run for system in systems for run in system.runs]
    embedded = runs[0].recipe.data.embedded if runs and not request.files else None
    named = [(system.name, system.runs) for system in systems]
    seen = search_training_text(named, pairs, kept_apart=embedded)
    trained = tuple(tuple(map(TrainingSummary.of, system.runs)) for system in systems)
    reasons = dict[str, str]()
    for system, trainings in zip(systems, trained, strict=True):
        whys = list(map(hardly_learned, system.runs, trainings))
        if whys and all(whys):
            reasons[system.name] = whys[0]
    warnings = [f"{name} {why}" for name, why in reasons.items()]
    if len(reasons) > 1:
        warnings.append("differences between systems that have hardly learned are not marked")
    quality, unlearned = over(range(len(pairs))), frozenset(reasons)
    if guessed := _all_guess(quality, chance):
        unlearned, warnings = frozenset(system.name for system in systems), [guessed]
    quality = replace(quality, unlearned=unlearned)
    unseen = over(seen.left) if seen.left else None
    if unseen is not None:
        unseen = replace(unseen, unlearned=quality.unlearned)
    warnings += seen.summary()
    return ComparisonReport(
        tuple(systems), test, quality, trained, tuple(warnings), unseen, tuple(samples)
    )


def compare_runs(request: ComparisonRequest) -> ComparisonReport:
    """Compare runs of a task by statistics that are summed over examples and then scored: run
    folders, and folders of runs that differ only by their seed.

    ``request.source``, ``request.references``: files as the first run's evaluation takes them;
    without them its test set is used. The score of guessing comes from the first run's training
    text. Errors: ``DataError`` if there are fewer than two systems, one is a file, or examples
    cannot be used; ``RunError`` for a folder that holds no run of the task.
    """
    systems = runs_at(request.paths)
    first = systems[0].runs[0]
    runtime, names = runtime_of(first.task), [system.name for system in systems]
    compare_them = runtime.parts().compared
    assert compare_them is not None, "texts are compared by ``compare``"
    runs = {system.name: system.runs for system in systems}
    result = compare_them(runs, request.source, request.references)

    def name_of(score: str) -> str:
        return first.task.measure(score).called

    def over(places: Sequence[int]) -> Significance:
        some = list(places)
        by_metric = {
            name_of(name): measured._replace(
                statistics=[[run[some] for run in runs] for runs in measured.statistics],
                signature=measured.signature.format(len(some)),
            )
            for name, measured in result.measured.items()
        }
        return compare_statistics(names, by_metric, request.test, request.samples, request.seed)

    guess = runtime.chance(first.recipe, first.forms, result.pairs)
    outputs = dict(zip(names, result.outputs, strict=True))
    report = make_report(
        request, systems, result.test, result.pairs, over,
        chance={name_of(name): guess[name] for name in result.guessed if name in guess},
        samples=side_by_side(result.shown or result.pairs, outputs),
    )  # fmt: skip
    return replace(report, tables=tuple(result.tables), details=result.details)


def _all_guess(quality: Significance, chance: Mapping[str, float]) -> str:
    """A warning if no system is better than guessing by any metric."""
    notes = []
    for comparison in quality.comparisons:
        if comparison.metric not in chance:
            continue
        best, guessed = comparison.best, chance[comparison.metric]
        if best < guessed if comparison.less_is_better else best > guessed:
            return ""
        notes.append(f"{comparison.metric} is {best:.2f} at best, and guessing gets {guessed:.2f}")
    if not notes:
        return ""
    return f"nothing has learned yet: {'; '.join(notes)}. No system is better than another"


@dataclass(frozen=True)
class ComparedTranslations:
    """A comparison of translations, and the translations themselves."""

    compared: ComparisonReport
    measured: EvaluationSet
    """The test sentences that every system translates."""
    outputs: Mapping[str, Sequence[Sequence[str]]]
    """The compared outputs of each run of each system."""
    references: Sequence[Sequence[str]]
    """The references in the form that is compared."""
    compare: Callable[..., Significance]
    """``compare_systems`` with the language, the tokenizer of BLEU and the seed."""

    def against(self, name: str) -> Significance:
        """The comparison with another system as the baseline."""
        systems = {name: self.outputs[name], **self.outputs}
        quality = self.compared.quality
        test, samples = quality.test, quality.samples
        return self.compare(systems, self.references, test=test, samples=samples)

    def over(self, places: Sequence[int]) -> Significance:
        """The comparison on the sentences at some places, by the bootstrap."""
        systems = {name: lines_at(runs, places) for name, runs in self.outputs.items()}
        return self.compare(systems, lines_at(self.references, places), samples=_SAMPLES)


def lines_at(lists: Sequence[Sequence[str]], places: Sequence[int]) -> list[list[str]]:
    """The lines at some places of each list."""
    return [[lines[place] for place in places] for lines in lists]


def _speakers(pairs: Sequence[Pair]) -> list[str]:
    """The speaker of each example, or a unique name if the speaker is unknown. An unknown speaker's
    group is the content of the file, which copies of the file share."""
    return [
        f"{number}" if pair.group in ("", content_of(pair.source)) else f"of {pair.group}"
        for number, pair in enumerate(pairs)
    ]


def compare(request: ComparisonRequest) -> ComparedTranslations:
    """Compare runs that translate and files of translations.

    Errors: ``DataError`` if there are fewer than two systems, or lines do not pair up; ``RunError``
    for a folder that holds no run, or one that does not translate, and for runs of different
    languages.
    """
    systems, references = systems_at(request.paths), request.references
    runs = [run for system in systems for run in system.runs]
    for run in runs:
        if run.task.name != "translation":
            raise RunError(
                f"{run.folder} is a {run.task.called}. Compare runs that all translate, label, "
                f"tag or parse. To measure this one: dragoman evaluate {run.folder}"
            )
    require_one_language(systems)
    if runs and references and request.source is None:
        raise DragomanError("comparing runs on files needs --source and --reference")
    if not runs and not references:
        raise DragomanError("comparing files of translations needs --reference FILE")
    if runs:
        measured = EvaluationSet.of(runs[0], request.files)
    else:
        measured = EvaluationSet.of_references(references)
    if not references:
        require_one_test_set(systems, measured.pairs)
    language = runs[0].recipe.languages.target if runs else "und"
    # A run trained on lower-cased tokens has no case to measure, so all systems are compared
    # without case.
    moses = MosesText(language).prepare if any(run.recipe.data.moses for run in runs) else None
    outputs = {system.name: system.translations(measured, moses) for system in systems}
    wanted, tokenizer = measured.references, None
    if moses is not None:
        wanted, tokenizer = [list(map(moses, lines)) for lines in wanted], "none"

    score = partial(compare_systems, language=language, tokenizer=tokenizer, seed=request.seed)
    pairs = measured.pairs
    by_words = bool(runs) and writes_what_it_reads(runs[0].recipe)
    speakers = _speakers(pairs) if by_words else []

    def over(places: Sequence[int]) -> Significance:
        some = {name: lines_at(runs_of_it, places) for name, runs_of_it in outputs.items()}
        if by_words:
            expected, groups = lines_at([wanted[0], speakers], places)
            noun = runs[0].task.noun.removesuffix("s")
            return compare_word_errors(
                some, expected, groups, request.test, request.samples, request.seed, noun
            )
        references = lines_at(wanted, places)
        quality = score(some, references, test=request.test, samples=request.samples)
        return replace(quality, notes=(*quality.notes, PREPARED)) if moses else quality

    # The training of finished outputs is unknown: guessing then uses the references.
    learned = training_answers(runs[0].recipe) if runs else list(wanted[0])
    if runs and moses is not None:
        learned = list(map(moses, learned))
    if by_words:
        chance = {"WER": chance_of_word_errors(wanted[0], learned)}
    else:
        chance = {"BLEU": chance_of_translations(wanted, learned, language, tokenizer)["bleu"]}
    compared = make_report(
        request, systems, measured.name, pairs, over, chance=chance,
        samples=side_by_side(pairs, {name: runs[0] for name, runs in outputs.items()}),
    )  # fmt: skip
    return ComparedTranslations(compared, measured, outputs, wanted, score)
