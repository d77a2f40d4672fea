"""Codes of pictures: a picture is encoded as codes, and decoded from them: the specification of the
task, and what it needs to train and to evaluate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from dragoman.base.errors import DataError, RunError
from dragoman.base.measure import LOSS, Measure
from dragoman.base.task import Side
from dragoman.base.wording import plural
from dragoman.engine.settings import EngineSettings
from dragoman.forms.form import Form, Pair
from dragoman.forms.sides import Forms
from dragoman.models.settings import CodesSettings
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.recipe.sections import Sections
from dragoman.runs.recipe.spec import Examples, Spec
from dragoman.runs.run import Run
from dragoman.sources.picture.codes_form import CODES, CodesForm, CodeSymbols
from dragoman.sources.picture.form import PictureSource
from dragoman.tasks.shared.progress_made import MIN_ANSWERS, TrainingSummary, on_test
from dragoman.tasks.shared.runtime import Builders, Parts, Runtime, codes_in

if TYPE_CHECKING:
    from dragoman.engine.predictor import Predictor

BEGUN_CODES = 4.0
"""The codebook perplexity below which codes hardly distinguish pictures."""


@dataclass(frozen=True)
class CodesSpec(Spec):
    """The specification of the task that learns codes of pictures. Labels and captions of the
    pictures are ignored."""

    target_file: ClassVar[str] = CODES
    never_generated: ClassVar[str] = "pictures"
    reads_rows: ClassVar[bool] = True
    fixed_pictures: ClassVar[bool] = True
    has_head: ClassVar[bool] = True
    overlaps_by_source: ClassVar[bool] = True

    def check_source(self, recipe: Sections) -> None:
        if not recipe.source.patches:
            raise ValueError(
                f'source.kind = "{recipe.source.kind}" has no pixels, but a {self.called} reads '
                'pictures: set source.kind = "picture"'
            )
        for corpus in recipe.data.corpora:
            if not corpus.names_files:
                raise ValueError(
                    f"{corpus.name} contains texts, but the model reads pictures. Set format = "
                    "folders or idx, or holds = files for a list of files"
                )

    def check_rest(self, recipe: Sections) -> None:
        source = PictureSource.of(recipe.source)
        if source.patches > recipe.plan.max_target or source.patches > recipe.plan.max_source:
            raise ValueError(
                f"a picture has {source.patches:,} patches, and plan.max_source or "
                "plan.max_target is lower. Raise both, or set a larger source.patch"
            )

    def forms(self, given: Mapping[Side, Form], folder: Path, longest: int) -> Forms:
        return Forms(given["source"], CodesForm(CodeSymbols.load(folder / CODES)))

    def learn_target(self, recipe: Sections, examples: Examples, folder: Path) -> list[str]:
        assert isinstance(recipe.model, CodesSettings)
        if next(examples(), None) is None:
            raise DataError("there are no pictures to learn from")
        settings, source = recipe.model, PictureSource.of(recipe.source)
        plain = PictureSource.model_validate(
            source.model_dump(include={"height", "width", "channels", "patch"})
        )
        symbols = CodeSymbols(settings.levels, plain, settings.model_dump(mode="json"), "")
        symbols.save(folder / CODES)
        size = f"{source.height} x {source.width}"
        codes = plural(source.patches, "code")
        return [f"{codes} a picture of {size} pixels, each one of {symbols.count:,}"]

    def check_target(self, recipe: Sections, examples: Examples, learned: Forms, run: Path) -> None:
        read = PictureSource.of(recipe.source)
        known = CodesForm.of(learned.target).symbols.source
        if read != known:
            raise DataError(
                f"{run} was trained on pictures of {known.height} x {known.width} pixels with "
                f"{known.channels} channels, in patches of {known.patch}. Set the same in [source]"
            )


CODES_TASK = CodesSpec(
    name="codes",
    called="picture coder",
    texts=(),
    reads=False,
    writes=False,
    noun="pictures",
    counted="pictures",
    metrics={
        "rmse": Measure("RMSE", "lower"),
        "code_perplexity": Measure("codebook perplexity", "higher", digits=1),
        "codes_used": Measure("codes used", "higher", digits=0),
        "code_bits": Measure("bits per code", "higher"),
        "loss": LOSS,
    },
    verbs=(("evaluate", "test.tsv"),),
    hub_tag="image-feature-extraction",
    loss_unit="squared error",
    limits=("It works for pictures like those in its training; others become blurred or wrong.",),
)


class CodesRuntime(Runtime):
    """A picture is encoded as codes, and decoded from them."""

    spec: ClassVar[Spec] = CODES_TASK
    test_file: ClassVar[str] = "test.tsv"

    def builders(self) -> Builders:
        from dragoman.tasks.codes.sizes import CodesBuilder

        return (CodesBuilder,)

    def parts(self) -> Parts:
        from dragoman.tasks.codes.evaluation import (
            CodesEvaluation,
            CodesValidation,
            Pictures,
            SquaredError,
        )

        return Parts(Pictures, SquaredError, CodesValidation, CodesEvaluation(), _nothing_to_ask)

    def chance(self, recipe: Recipe, forms: Forms, pairs: Sequence[Pair]) -> dict[str, float]:
        """The score of replacing each picture by the mean of all pictures."""
        import numpy as np

        from dragoman.tasks.codes.evaluation import error_of_mean

        if len(pairs) < MIN_ANSWERS:
            return {}
        read = forms.source.encode([pair.source for pair in pairs])
        return {"rmse": error_of_mean(np.stack(read))}

    def hardly_learned(self, run: Run, training: TrainingSummary) -> str | None:
        perplexity = training.scores.get("code_perplexity", on_test(run, "code_perplexity"))
        if perplexity is None or perplexity >= BEGUN_CODES:
            return None
        return (
            f"the codes of its pictures have a perplexity of {perplexity:.1f}, so they hardly "
            "distinguish pictures"
        )

    def vocabulary(self, run: Run) -> str:
        return codes_in(run)


def _nothing_to_ask(run: Run, settings: EngineSettings | None) -> Predictor[object]:
    raise RunError(
        f"{run.folder} makes codes for a painter and is not used by itself. Train a painter: "
        f"dragoman train captions.tsv --task painting --codes {run.folder}"
    )
