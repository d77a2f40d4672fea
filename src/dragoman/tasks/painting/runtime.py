"""The specification and the runtime of painting: a model reads a caption and writes the codes of a
picture. The runtime has what trains, evaluates and predicts."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from dragoman.base.atomic import replacing_file
from dragoman.base.errors import DataError, RunError
from dragoman.base.measure import LOSS, Measure, percent
from dragoman.base.reading import hash_of_file
from dragoman.base.task import Side
from dragoman.base.wording import plural
from dragoman.data.files.corpora import naming_lines
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.forms.form import Form, Pair
from dragoman.forms.sides import Forms
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.recipe.sections import Sections
from dragoman.runs.recipe.spec import Examples, Spec
from dragoman.runs.run import Run
from dragoman.sources.file_examples import content_of
from dragoman.sources.picture.codes_form import CODES, WEIGHTS, CodesForm, CodeSymbols
from dragoman.tasks.painting.form import LEARNED, codes_run, count_seen, form_of_codes
from dragoman.tasks.shared.progress_made import (
    MIN_ANSWERS,
    TrainingSummary,
    by_frequency,
    of_tokens,
)
from dragoman.tasks.shared.runtime import Builders, Parts, Runtime, codes_in

BEGUN = 0.02
"""The share of exact pictures below which a message says that hardly any picture fits its
caption."""
_OWN_WEIGHTS, _OWN_LEARNED = "model.safetensors", Path("learned") / "0-source"
"""The files with the weights, and with the hashes of the pictures, in the run that has learned the
codes."""


@dataclass(frozen=True)
class PaintingSpec(Spec):
    """The task of a painter, which reads captions. A search writes a picture as codes."""

    sections: ClassVar[frozenset[str]] = frozenset({"search", "painting"})
    target_file: ClassVar[str] = CODES
    search_rules: ClassVar[str] = "a picture has its own number of codes"
    overlaps_by_source: ClassVar[bool] = True
    never_generated: ClassVar[str] = "pictures"

    def check_source(self, recipe: Sections) -> None:
        if self.reads_files:
            raise ValueError(
                f'source.kind = "{recipe.source.kind}" is not text, but a {self.called} reads '
                "captions: leave it out"
            )
        for corpus in recipe.data.corpora:
            if corpus.holds != "captions":
                raise ValueError(
                    f"{corpus.name} has no captions for pictures. Set holds = captions"
                )

    def check_format(self, corpus: CorpusSettings) -> None:
        if corpus.format in ("trees", "tags", "coco", "spoken"):
            raise ValueError(
                f"{corpus.name}: a {self.called} learns from pictures and captions: format = tsv, "
                "jsonl, folders or idx"
            )

    def check_rest(self, recipe: Sections) -> None:
        if recipe.model.shares_vocabulary:
            raise ValueError(
                'words and codes cannot share a vocabulary: set model.tie = "target" or "none"'
            )

    def check_vocabularies(self, recipe: Sections) -> None:
        """Accept everything: there is only one vocabulary."""

    def forms(self, given: Mapping[Side, Form], folder: Path, longest: int) -> Forms:
        return Forms(given["source"], form_of_codes(folder))

    def learn_target(self, recipe: Sections, examples: Examples, folder: Path) -> list[str]:
        """Copy the codes of another run. Errors: ``RunError`` if it has none."""
        run = codes_run(recipe.painting.codes)
        symbols = CodeSymbols.load(run / CODES)
        own = run / _OWN_WEIGHTS if not symbols.weights else run / WEIGHTS
        if not own.is_file():
            raise RunError(
                f"{run} has no {own.name}: its training has not reached its first validation"
            )
        room = min(recipe.plan.max_target, recipe.model.longest or recipe.plan.max_target)
        if symbols.places + 1 > room:
            raise DataError(
                f"a picture of {run} has {symbols.places:,} codes, and the model learns "
                f"{room - 1:,} at most. Raise plan.max_target and model.positions.maximum to "
                f"{symbols.places + 1:,}"
            )
        digest = hash_of_file(own)
        _copy(own, folder / WEIGHTS)
        learned = run / (LEARNED if symbols.weights else _OWN_LEARNED)
        if learned.is_file():
            _copy(learned, folder / LEARNED)
        symbols.with_weights(digest).save(folder / CODES)
        form_of_codes(folder).coder  # noqa: B018, damaged weights are refused now
        codes = plural(symbols.places, "code")
        return [f"{codes} a picture, each one of {symbols.count:,}, as learned by {run}"]

    def check_held(
        self, recipe: Sections, held: Mapping[str, Sequence[Pair]], learned: Forms
    ) -> list[str]:
        target, said = CodesForm.of(learned.target), []
        known, data = target.seen, recipe.data
        for side, pairs in held.items():
            with naming_lines(data.dev, data.test, *data.train):
                for pair in pairs:  # else an error would show only after the training
                    target.picture_at(pair.target)
            count = count_seen(known, pairs)
            if count:
                said.append(
                    f"warning: the codes were learned from {count:,} of the {len(pairs):,} "
                    f"{side} {self.noun}, so the scores may be too high. Set the same --dev and "
                    "--test for both training runs"
                )
        return said

    def as_learned(self, pair: Pair) -> Pair:
        """Return the pair with a hash of its picture before the caption, because two pictures of
        the same caption are two examples."""
        return pair._replace(source=f"{content_of(pair.target)} {pair.source}")


def _copy(source: Path, to: Path) -> None:
    with replacing_file(to) as temporary:
        shutil.copyfile(source, temporary)


PAINTING = PaintingSpec(
    name="painting",
    called="painter",
    writes=True,
    noun="pictures",
    counted="target tokens",
    metrics={
        "exact": percent("exact pictures", share=True),
        "codes_right": percent("codes right", share=True),
        "loss": LOSS,
    },
    finished={
        "rmse": Measure("RMSE", "lower"),
        "rmse_of_codes": Measure("RMSE of the true codes", "lower"),
        "judged": percent("judged right", share=True),
        "judged_of_codes": percent("judged right, of the true codes", share=True),
        "judged_of_true": percent("judged right, of the true pictures", share=True),
    },
    evaluation_options=("beam", "precision", "output", "judge", "best_of"),
    verbs=(("paint", '"a caption"'),),
    hub_tag="text-to-image",
    limits=(
        "It paints only what its training captions describe, in pictures of one size.",
        "It shows no more detail than its codes can represent.",
    ),
)


class PaintingRuntime(Runtime):
    """Painting: the model reads a caption and writes the codes of a picture."""

    spec: ClassVar[Spec] = PAINTING
    begun: ClassVar[tuple[str, float]] = ("exact", BEGUN)
    test_file: ClassVar[str] = "test.tsv"

    def builders(self) -> Builders:
        from dragoman.tasks.painting.sizes import PaintingBuilder

        return (PaintingBuilder,)

    def parts(self) -> Parts:
        from dragoman.tasks.painting.evaluation import PaintingEvaluation, PaintingValidation
        from dragoman.tasks.painting.painter import Painter
        from dragoman.tasks.shared.examples import Pairs
        from dragoman.training.losses.objectives import next_token

        return Parts(Pairs, next_token, PaintingValidation, PaintingEvaluation(), Painter)

    def chance(self, recipe: Recipe, forms: Forms, pairs: Sequence[Pair]) -> dict[str, float]:
        """Return the scores of a guess that gives each caption the true picture of the next one."""
        from dragoman.tasks.painting.evaluation import code_scores

        if len(pairs) < MIN_ANSWERS:
            return {}
        true = forms.target.encode([pair.target for pair in pairs])
        codes = [tokens.tolist() for tokens in true]
        guessed = of_tokens(true)
        scores = {"loss": guessed["loss"]} if guessed else {}
        return scores | code_scores(codes, [*codes[1:], codes[0]])

    def hardly_learned(self, run: Run, training: TrainingSummary) -> str | None:
        if run.recipe.search.sampling is not None:  # a caption has many right pictures
            return by_frequency(run, training)
        return super().hardly_learned(run, training)

    def vocabulary(self, run: Run) -> str:
        return codes_in(run)
