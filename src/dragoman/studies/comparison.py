"""Comparing runs, groups of runs, and finished translations on one set of sentences."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, count
from pathlib import Path
from typing import Any

from dragoman.data.corpora import read_lines
from dragoman.data.pair import Pair
from dragoman.errors import DataError, DragomanError, RunError
from dragoman.forms.languages import base
from dragoman.forms.moses import MosesText
from dragoman.metrics.significance import Significance, Test, compare_systems
from dragoman.pictures.labels import visible
from dragoman.plural import plural
from dragoman.runs.evaluation_set import EvaluationSet, own_test_set
from dragoman.runs.run import Run
from dragoman.shortened import shortened
from dragoman.studies.seeds import runs_of
from dragoman.studies.seen import seen_by
from dragoman.tasks.translation.chance import chance_of_translations

logger = logging.getLogger("dragoman")

UNSEEN = "Over the texts that none of them has learned from"
_SIDE_BY_SIDE = 3
_OTHER_REFERENCES = 0.1
"""Share of the sources that two test sets have in common with different references, at most."""
_LONGEST_SHOWN = 240
"""Characters of a text that is shown."""

PREPARED = (
    "All figures are over lower-cased, Moses-tokenised text, since a run here knows no other: they "
    "compare with those of papers that do so, not with BLEU over plain text."
)


@dataclass(frozen=True)
class System:
    """What is compared with others: a run, runs that differ by their seed alone, or a file of
    finished translations."""

    name: str
    runs: tuple[Run, ...]
    """None of a file."""
    path: Path

    def translations(
        self, measured: EvaluationSet, prepare: Callable[[str], str] | None = None
    ) -> list[list[str]]:
        """Of all sentences, by each of its runs; what the file holds. With ``prepare`` as Moses
        prepares text: a run that speaks it says its own tokens."""
        if not self.runs:
            lines = list(read_lines(self.path))
            if len(lines) != len(measured.pairs):
                raise DataError(
                    f"{self.path} has {plural(len(lines), 'line')} for "
                    f"{plural(len(measured.pairs), 'sentence')}: a file of translations has one "
                    "line for each"
                )
            return [lines if prepare is None else list(map(prepare, lines))]
        from dragoman.tasks.translation.translator import (
            Translator,  # finished translations need no torch
        )

        found = []
        for run in self.runs:
            translator = Translator(run)
            logger.info("%s translates: %s", run.folder, translator.description)
            said = list(translator.stream(pair.source for pair in measured.pairs))
            if prepare is None:
                found.append([translation.text for translation in said])
            elif run.recipe.data.moses:
                found.append([translation.prepared for translation in said])
            else:
                found.append([prepare(translation.text) for translation in said])
        return found


@dataclass(frozen=True)
class SideBySide:
    """A text, and what each system makes of it."""

    source: str
    reference: str
    outputs: dict[str, str]
    """By the names of systems; of several runs the first one's."""

    def table(self) -> str:
        """Plain text: a line for each."""
        lines = {"source": self.source, "reference": self.reference, **self.outputs}
        wide = max(map(len, lines))
        return "\n".join(
            f"{name:<{wide}}  {shortened(visible(text), _LONGEST_SHOWN)}"
            for name, text in lines.items()
            if text or name != "source"
        )


def side_by_side(
    pairs: Sequence[Pair], outputs: Mapping[str, Sequence[str]]
) -> tuple[SideBySide, ...]:
    """Some texts, spread over all of which systems make different things.

    ``outputs``: of all texts, by each system.
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
    """Systems, and how good each is on the same texts."""

    systems: tuple[System, ...]
    """The first is what the others are compared with."""
    test: str
    """Which texts."""
    quality: Significance
    """Not marked where nothing has learned, so that nobody wins."""
    warnings: tuple[str, ...] = ()
    """What a reader must know before believing it."""
    unseen: Significance | None = None
    """The same over the texts that none has learned from, where some have learned from others."""
    samples: tuple[SideBySide, ...] = ()

    def table(self) -> str:
        """Plain text."""
        parts = [f"{self.test}\n{self.quality.table()}"]
        if self.unseen is not None:
            parts.append(f"{UNSEEN}:\n{self.unseen.table()}")
        parts += [f"warning: {warning}" for warning in self.warnings]
        return "\n\n".join([*parts, *(sample.table() for sample in self.samples)])

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        systems = [
            {"system": one.name, "runs": [str(run.folder) for run in one.runs]}
            for one in self.systems
        ]
        return {
            "systems": systems,
            "on": self.test,
            **self.quality.to_dict(),
            "learned": self.quality.marked,
            "warnings": list(self.warnings),
            "unseen": None if self.unseen is None else self.unseen.to_dict(),
            "samples": [asdict(sample) for sample in self.samples],
        }


def checked(
    systems: Sequence[System],
    test: str,
    quality: Significance,
    pairs: Sequence[Pair],
    *,
    own: bool,
    chance: Mapping[str, float],
    again: Callable[[Sequence[int]], Significance],
    samples: Sequence[SideBySide],
) -> ComparisonReport:
    """A comparison, with what a reader must know of it.

    ``own``: the texts are the test set of the first run. ``chance``: what guessing scores, by the
    names of metrics; nobody wins where no system scores better by any. ``again``: the comparison
    over the texts at some places.
    """
    runs = [run for system in systems for run in system.runs]
    embedded = runs[0].recipe.data.embedded if own and runs else None
    named = [(system.name, system.runs) for system in systems]
    seen = seen_by(named, pairs, kept_apart=embedded)
    warnings = seen.in_words()
    if guessed := _all_guess(quality, chance):
        quality, warnings = replace(quality, marked=False), [guessed, *warnings]
    unseen = again(seen.left) if seen.left else None
    if unseen is not None:
        unseen = replace(unseen, marked=quality.marked)
    return ComparisonReport(tuple(systems), test, quality, tuple(warnings), unseen, tuple(samples))


def _all_guess(quality: Significance, chance: Mapping[str, float]) -> str:
    """A warning where no system scores better than a guess by any metric."""
    told = []
    for comparison in quality.comparisons:
        if comparison.metric not in chance:
            continue
        best, guessed = max(score.value for score in comparison.scores), chance[comparison.metric]
        if best > guessed:
            return ""
        told.append(f"{comparison.metric} is {best:.2f} at best, and guessing gets {guessed:.2f}")
    if not told:
        return ""
    return f"nothing has learned yet: {'; '.join(told)}. No system is better than another"


@dataclass(frozen=True)
class ComparedTranslations:
    """A comparison of translations, and the translations."""

    compared: ComparisonReport
    measured: EvaluationSet
    """The sentences."""
    outputs: Mapping[str, Sequence[Sequence[str]]]
    """What each run of each system made of them, as it is compared."""
    references: Sequence[Sequence[str]]
    """As they are compared."""
    tokenizer: str | None
    """Of BLEU; None: the usual one."""

    def against(self, name: str) -> Significance:
        """The same with another system as the baseline."""
        systems = {name: self.outputs[name], **self.outputs}
        quality = self.compared.quality
        runs = (run for system in self.compared.systems for run in system.runs)
        language = next((run.recipe.languages.target for run in runs), "und")
        return compare_systems(
            systems, self.references, language, quality.test, tokenizer=self.tokenizer,
            samples=quality.samples, seed=quality.seed,
        )  # fmt: skip


def compare(
    paths: Sequence[Path],
    source: Path | None = None,
    references: Sequence[Path] = (),
    test: str = "bootstrap",
    samples: int | None = None,
    seed: int = 12345,
) -> ComparedTranslations:
    """Compare what lies at ``paths``: run folders, folders of runs that differ by their seed
    (``train --seeds``), and files of finished translations.

    ``source``, ``references``: the sentences; left out, the test set of the first run's recipe.
    ``test``: bootstrap or randomisation; ``samples`` None: as many as is usual for it.
    Errors: ``DataError`` if there are fewer than two systems, or lines do not pair up;
    ``RunError`` for a folder that holds no run, or one that does not translate, and for runs of
    different languages.
    """
    chosen, systems = chosen_test(test), systems_at(paths)
    runs = [run for system in systems for run in system.runs]
    for run in runs:
        if run.task.name != "translation":
            raise RunError(
                f"{run.folder} is a {run.task.called}: what is compared are runs that all "
                "translate, that all label or that all parse; dragoman evaluate "
                f"{run.folder} tells what this one is worth"
            )
    require_one_language(systems)
    if runs and references and source is None:
        raise DragomanError("comparing runs on files needs --source and --reference")
    if not runs and not references:
        raise DragomanError("comparing files of translations needs --reference FILE")
    if runs:
        measured = EvaluationSet.of(runs[0], [*([source] if source else []), *references])
    else:
        measured = EvaluationSet.of_references(references)
    if not references:
        require_one_test_set(systems, measured.pairs)
    language = runs[0].recipe.languages.target if runs else "und"
    # A run that knows lower-cased tokens alone has no case to be measured by, nor have those that
    # are compared with it.
    moses = MosesText(language).prepare if any(run.recipe.data.moses for run in runs) else None
    outputs = {system.name: system.translations(measured, moses) for system in systems}
    wanted, tokenizer = measured.references, None
    if moses is not None:
        wanted, tokenizer = [list(map(moses, lines)) for lines in wanted], "none"

    def over(places: Sequence[int]) -> Significance:
        some = {
            name: [[lines[n] for n in places] for lines in runs_of_it]
            for name, runs_of_it in outputs.items()
        }
        quality = compare_systems(
            some, [[lines[n] for n in places] for lines in wanted], language, chosen,
            tokenizer=tokenizer, samples=samples, seed=seed,
        )  # fmt: skip
        return replace(quality, notes=(*quality.notes, PREPARED)) if moses else quality

    pairs = measured.pairs
    guess = chance_of_translations(wanted, language, tokenizer)
    compared = checked(
        systems, measured.name, over(range(len(pairs))), pairs,
        own=source is None and not references, chance={"BLEU": guess["bleu"]}, again=over,
        samples=side_by_side(pairs, {name: runs[0] for name, runs in outputs.items()}),
    )  # fmt: skip
    return ComparedTranslations(compared, measured, outputs, wanted, tokenizer)


def require_one_language(systems: Sequence[System]) -> None:
    """Errors: ``RunError`` for runs of different languages, where recipes name them."""
    runs = [run for system in systems for run in system.runs]
    for run in runs[1:]:
        if len(run.languages) != len(runs[0].languages):
            continue
        for one, other in zip(runs[0].languages, run.languages, strict=True):
            if "und" not in (one, other) and base(one) != base(other):
                raise RunError(
                    f"{runs[0].folder} is of {' → '.join(runs[0].languages)} and {run.folder} of "
                    f"{' → '.join(run.languages)}: only runs of the same languages can be compared"
                )


def require_one_test_set(systems: Sequence[System], pairs: Sequence[Pair]) -> None:
    """Errors: ``RunError`` for a run whose own test set has other references for the sources of
    ``pairs``, those of the first run's, where the languages of either are not known."""
    runs = [run for system in systems for run in system.runs]
    wanted = {pair.source.strip(): pair.target.strip() for pair in pairs}
    for run in runs[1:]:
        if "und" not in (*run.languages, *runs[0].languages):
            continue  # ``require_one_language`` has compared them
        try:
            own, _ = own_test_set(run)
        except DragomanError:
            continue  # its text is not here
        both = [pair for pair in own if pair.source.strip() in wanted]
        differ = [pair for pair in both if wanted[pair.source.strip()] != pair.target.strip()]
        if len(differ) > _OTHER_REFERENCES * len(both):
            raise RunError(
                f"{runs[0].folder} and {run.folder} have test sets with the same sources and "
                f"different references, in {len(differ):,} of {len(both):,}, such as "
                f"{shortened(wanted[differ[0].source.strip()], 60)!r} and "
                f"{shortened(differ[0].target.strip(), 60)!r}: only runs of the same languages can "
                "be compared. If these are: --source FILE --reference FILE"
            )


def chosen_test(name: str) -> Test:
    """Errors: ``DragomanError`` for a name that no test has."""
    if name not in ("bootstrap", "randomisation"):
        raise DragomanError(f"--test {name}: it is bootstrap or randomisation")
    return "bootstrap" if name == "bootstrap" else "randomisation"


def runs_at(paths: Sequence[Path]) -> list[System]:
    """``systems_at``, of what is compared as runs alone. Errors: ``DataError`` for a file."""
    systems = systems_at(paths)
    for system in systems:
        if not system.runs:
            raise DataError(
                f"{system.path} is a file: of runs that label, and of parsers, the run folders are "
                "compared"
            )
    return systems


def systems_at(paths: Sequence[Path]) -> list[System]:
    """What lies there, before the first translates, which may take long. Errors: as ``compare``."""
    if len(paths) < 2:
        raise DataError("a comparison needs two systems or more: run folders, or translations")
    systems: list[System] = []
    for path in paths:
        if not path.exists():
            raise DataError(f"{path} does not exist; give run folders or files of translations")
        name = _name(path, {one.name for one in systems})
        systems.append(System(name, tuple(runs_of(path)) if path.is_dir() else (), path))
    return systems


def _name(path: Path, taken: set[str]) -> str:
    """The last part of a path; all of it, then with a number, where others have that name."""
    whole = str(path)
    numbered = (f"{whole} ({number})" for number in count(2))
    return next(name for name in chain((path.name or whole, whole), numbered) if name not in taken)
