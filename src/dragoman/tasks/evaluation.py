"""Measuring a finished run, and comparing runs."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dragoman.atomic import write_text
from dragoman.data.corpora import CorpusSettings, Pair, read_lines, read_pairs
from dragoman.errors import DataError, DragomanError
from dragoman.forms.moses import MosesText
from dragoman.metrics.markup import Markup, count_intact
from dragoman.metrics.significance import Significance, Test
from dragoman.metrics.significance import compare_systems as compare_outputs
from dragoman.metrics.translation import (
    WHY_BLEU_DIFFERS,
    Score,
    Scores,
    evaluate_translation,
    tokenised_bleu,
)
from dragoman.tasks.prepare import has_test_set, plain_pairs
from dragoman.tasks.run import RECIPE, SCORES, Run

logger = logging.getLogger("dragoman")


@dataclass(frozen=True)
class Evaluated:
    """A test set as a run translates it, and what that scores."""

    run: str
    weights: str
    """Which weights these are: best, average or last, and of which update."""
    test: str
    """Which sentences."""
    search: str
    path: str
    """What translated: int8 kernels, or torch in bf16 or fp32."""
    seconds: float
    scores: Scores
    prepared: Score | None
    """BLEU over lower-cased Moses tokens, where that protocol is asked for."""
    markup: Markup | None
    """How many lines keep their markup, where the recipe says that the text has any."""
    pairs: Sequence[Pair]
    hypotheses: Sequence[str]

    def table(self) -> str:
        """Plain text."""
        speed = len(self.hypotheses) / max(self.seconds, 1e-9)
        lines = [
            f"{self.run} ({self.weights}) on {self.test}, {len(self.hypotheses):,} sentences",
            f"{self.search}; {self.path}; {self.seconds:.1f} s, {speed:,.0f} sentences/s",
            "",
            self.scores.table(),
        ]
        if self.prepared is not None:
            lines += [
                "",
                (
                    f"BLEU {self.prepared.value:.2f} over lower-cased, Moses-tokenised text "
                    f"({self.prepared.signature})"
                ),
                WHY_BLEU_DIFFERS,
            ]
        if self.markup is not None:
            lines += ["", str(self.markup)]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON: figures, not sentences."""
        values: dict[str, Any] = {
            "run": self.run,
            "weights": self.weights,
            "test": self.test,
            "search": self.search,
            "path": self.path,
            "seconds": round(self.seconds, 2),
            **self.scores.to_dict(),
        }
        if self.prepared is not None:
            values["prepared_bleu"] = {
                "value": self.prepared.value,
                "signature": self.prepared.signature,
                "why": WHY_BLEU_DIFFERS,
            }
        if self.markup is not None:
            values["markup"] = asdict(self.markup)
        return values

    def to_json(self) -> str:
        """``to_dict`` as text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)


def evaluate_run(
    run: str | Path | Run,
    source: Path | None = None,
    reference: Path | None = None,
    search_changes: Sequence[str] = (),
    precision: str = "auto",
    *,
    shortlist: bool = False,
    keep: bool = True,
) -> Evaluated:
    """Translate a test set (the recipe's, if no files are given) and score it.

    ``search_changes`` are ``key=value``, merged into the recipe's search settings. With ``keep``,
    the figures on the recipe's own test set are written to the run's scores.json.
    Errors: ``RunError`` for a run, ``DataError`` for files that cannot be used.
    """
    opened = run if isinstance(run, Run) else Run.open(run)
    recipe = opened.recipe
    pairs, test = _test_set(opened, source, reference)
    # Here, so that what is wrong above is said at once: it imports torch, which takes seconds.
    from dragoman.tasks.search_settings import parse_search
    from dragoman.tasks.settings import TranslatorSettings
    from dragoman.tasks.translator import Translator

    search = parse_search(recipe.search, [*search_changes, "n_best=1"])
    settings = TranslatorSettings.check(precision=precision, shortlist=shortlist)
    translator = Translator(opened, settings, search)
    logger.info("translating %s sentences: %s", f"{len(pairs):,}", translator.description)
    began = time.perf_counter()
    translations = list(translator.stream(pair.source for pair in pairs))
    seconds = time.perf_counter() - began
    hypotheses = [translation.text for translation in translations]
    references = [pair.target for pair in pairs]
    language = recipe.languages.target
    scores = evaluate_translation(hypotheses, references, language)
    prepared = None
    if recipe.data.moses:
        # The model speaks prepared text: its own tokens are what that protocol counts.
        prepared = tokenised_bleu(
            [translation.prepared for translation in translations],
            [opened.target.prepare(line) for line in references],
        )
    elif recipe.evaluation.tokenised:
        try:
            prepare = MosesText(language).prepare
            prepared = tokenised_bleu(
                *[[prepare(t) for t in ts] for ts in (hypotheses, references)]
            )
        except DataError as error:
            logger.info("%s (for BLEU over tokenised text)", error)
    markup = None
    if recipe.evaluation.markup != "none":
        markup = count_intact([pair.source for pair in pairs], hypotheses, references)
    described = f"beam {search.beam}, length penalty {search.length_penalty}"
    if search.sampling is not None:
        described = f"sampling, {search.sampling.model_dump(exclude_none=True)}"
    result = Evaluated(
        opened.folder.name, opened.weights_in_words, test, described, translator.description,
        seconds, scores, prepared, markup, pairs, hypotheses,
    )  # fmt: skip
    if keep and source is None:
        samples = recipe.evaluation.samples
        step = max(1, len(pairs) // max(1, samples))
        record = result.to_dict() | {
            "samples": [
                {"source": pair.source, "reference": pair.target, "translation": hypothesis}
                for pair, hypothesis in list(zip(pairs, hypotheses, strict=True))[::step][:samples]
            ]
        }
        write_text(opened.folder / SCORES, json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    return result


def compare_systems(
    systems: Sequence[Path],
    source: Path | None,
    reference: Path | None,
    test: str,
    samples: int | None,
    seed: int,
) -> Significance:
    """Compare runs (folders) and finished translations (files) on one test set.

    ``test``: bootstrap or randomisation; ``samples`` None: as many as is usual for it.
    Errors: ``DataError`` if there are fewer than two systems, or lines do not pair up;
    ``RunError`` for a folder that is no run.
    """
    if test not in ("bootstrap", "randomisation"):
        raise DragomanError(f"--test {test}: it is bootstrap or randomisation")
    if len(systems) < 2:
        raise DataError("a comparison needs two systems or more: run folders, or translations")
    for path in systems:  # before the first is translated, which may take long
        if path.is_dir():
            Run.open(path)
        elif not path.exists():
            raise DataError(f"{path} does not exist; give run folders or files of translations")
    chosen: Test = "bootstrap" if test == "bootstrap" else "randomisation"
    runs = [path for path in systems if (path / RECIPE).is_file()]
    if runs:
        first = Run.open(runs[0])
        pairs, _ = _test_set(first, source, reference)
        language = first.recipe.languages.target
    elif reference is not None:
        pairs = [Pair(n, "", line) for n, line in enumerate(read_lines(reference), 1)]
        language = "und"
    else:
        raise DragomanError("comparing files of translations needs --reference FILE")
    outputs: dict[str, list[str]] = {}
    for path in systems:
        name = path.name if path.name not in outputs else str(path)
        if path in runs:
            if pairs and not pairs[0].source and source is None and reference is not None:
                raise DragomanError("comparing runs on files needs --source and --reference")
            from dragoman.tasks.translator import Translator  # finished translations need none

            translator = Translator(Run.open(path))
            outputs[name] = [t.text for t in translator.stream(pair.source for pair in pairs)]
        else:
            outputs[name] = list(read_lines(path))
    references = [pair.target for pair in pairs]
    return compare_outputs(outputs, references, language, chosen, samples=samples, seed=seed)


def _test_set(run: Run, source: Path | None, reference: Path | None) -> tuple[list[Pair], str]:
    """The sentences to measure on, and what to call them."""
    if (source is None) != (reference is None):
        raise DragomanError("give both the source sentences and their references, or neither")
    if source is not None and reference is not None:
        corpus = CorpusSettings(source=str(source), target=str(reference), format="lines")
        return list(read_pairs(corpus)), source.name
    data = run.recipe.data
    run.require_text("test")
    pairs = plain_pairs(run.recipe, "test")
    if not pairs:
        why = "names no test set and holds none out"
        if has_test_set(run.recipe):
            why = "holds out a share of the text for a test, and no pair of so few fell into it"
        raise DragomanError(
            f"the recipe of {run.folder} {why}; give two files: "
            f"dragoman evaluate {run.folder} test.source test.reference"
        )
    if data.test is not None:
        return pairs, Path(data.test.source).name
    return pairs, "the demo's test set" if data.embedded else "the held-out test set"
