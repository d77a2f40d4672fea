"""What a task adds to its spec: how it trains, is measured, predicts and is told of.

Each stands in ``tasks/NAME/runtime.py``, beside the spec; ``catalogue.py`` lists them. What
needs torch is imported when it is called, so that mistakes are told before.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

from dragoman.forms.form import Pair
from dragoman.forms.sides import Forms
from dragoman.pictures.records import AttentionRecord, Heatmap, ShownSample, Table
from dragoman.recipe.recipe import Recipe
from dragoman.recipe.spec import Spec
from dragoman.runs.run import Run
from dragoman.sources.picture.codes_form import CodesForm, CodeSymbols
from dragoman.tasks.shared.evaluation import CompareRuns, RunEvaluation
from dragoman.tasks.shared.progress_made import TrainingSummary, below, by_frequency, on_test

if TYPE_CHECKING:
    from dragoman.data.store import TokenStore
    from dragoman.engine.predictor import Predictor
    from dragoman.engine.settings import EngineSettings, TranslatorSettings
    from dragoman.sizing.builder import RecipeBuilder
    from dragoman.tasks.shared.examples import Examples
    from dragoman.tasks.shared.validation import Validation
    from dragoman.training.losses.objectives import Objective

Builders: TypeAlias = "tuple[type[RecipeBuilder], ...]"
MakePredictor = Callable[[Run, "EngineSettings | None"], "Predictor[object]"]


class Parts(NamedTuple):
    """What a task needs torch for: training, measuring and predicting."""

    examples: Callable[[TokenStore, Recipe, Forms], Examples]
    """Makes what is learned from at once."""
    objective: Callable[[Any, float], Objective]
    """Of a network and label smoothing (section 5.4 of the paper): what training minimises."""
    validation: Callable[..., Validation[Any]]
    """Of network, recipe, forms, pairs of dev and device: measures the network as it trains."""
    evaluate: RunEvaluation[Any, Any]
    """As ``Runtime.evaluate``."""
    predictor: MakePredictor
    """Opens a finished run to be asked."""
    compared: CompareRuns | None = None
    """Asks runs that are compared with each other, where that is not done by their texts."""


class Runtime(ABC):
    """A task at work."""

    spec: ClassVar[Spec]
    counts: ClassVar[str] = ""
    """What ``count_target`` counts, where there is anything to count."""
    begun: ClassVar[tuple[str, float] | None] = None
    """A score that a model has at least that has begun to learn; None: its loss tells."""
    test_file: ClassVar[str] = "test.txt"
    """The name of a file such as one would measure a run on."""

    # --- recipes ----------------------------------------------------------------------------------

    @abstractmethod
    def builders(self) -> Builders:
        """What makes recipes of files: of texts the first; of other files whichever of the rest
        takes them."""

    # --- training ---------------------------------------------------------------------------------

    @abstractmethod
    def parts(self) -> Parts:
        """What trains a network of the task, measures it and asks it. This imports torch."""

    def cut_off(self, store: TokenStore, recipe: Recipe, forms: Forms) -> int:
        """How many examples of training are longer than what is read of each."""
        return 0

    def count_target(self, counts: Counter[str], pair: Pair) -> None:  # noqa: B027, a default
        """Count what the target of an example is made of: ``data show`` tells it."""

    def rare_targets(self, counts: Mapping[str, int]) -> list[str]:
        """What looks wrong with the targets that ``count_target`` has counted."""
        return []

    # --- measuring --------------------------------------------------------------------------------

    @property
    def evaluate(self) -> RunEvaluation[Any, Any]:
        """Measures a finished run on some files, or on its own test set."""
        return self.parts().evaluate

    @abstractmethod
    def chance(self, recipe: Recipe, forms: Forms, pairs: Sequence[Pair]) -> dict[str, float]:
        """What guessing scores on ``pairs``, by the names that validation gives these scores;
        nothing where there are too few of them (``tasks/shared/progress_made.py``)."""

    def hardly_learned(self, run: Run, training: TrainingSummary) -> str | None:
        """Why a finished run has hardly learned the task; None if it has, or that is not known."""
        if self.begun is None:
            return by_frequency(run, training)
        name, least = self.begun
        on_dev = training.scores.get(name)
        return below(self.spec.metrics[name], least, on_dev, on_test(run, name))

    def test_files(self, recipe: Recipe) -> list[str]:
        """Names of files such as one would measure a run on."""
        return [self.test_file]

    # --- asking ---------------------------------------------------------------------------------

    def open(
        self, run: Run, settings: TranslatorSettings | None = None, ensemble: Sequence[Run] = ()
    ) -> Any:
        """A finished run, ready to be asked: what ``Parts.predictor`` gives; of a translator one
        that cuts texts into sentences. ``ensemble``: runs that translate together with it.

        Errors: ``RunError`` for a run that cannot be opened, and for an ensemble where it does not
        translate.
        """
        if ensemble:
            run.require_task("translation", "which does not translate")
        return self.parts().predictor(run, settings)

    # --- telling ----------------------------------------------------------------------------------

    def vocabulary(self, run: Run) -> str:
        """How many tokens a run reads and writes, for its report; of text alone, its tokens."""
        return f"{run.target.size:,} {run.recipe.text.kind} tokens"

    def samples(self, run: Run, samples: list[ShownSample]) -> tuple[list[ShownSample], int]:
        """Samples as a report shows them, and how many it leaves out."""
        return samples, 0

    def looks(self, run: Run, sources: Sequence[str]) -> list[AttentionRecord]:
        """Where a run looks while it reads some sources, for its report."""
        return []

    def tables(self, scores: Mapping[str, Any]) -> list[Table]:
        """What the last evaluation found, beside its scores."""
        return []

    def heatmaps(self, scores: Mapping[str, Any]) -> list[Heatmap]:
        """The same as pictures."""
        return []


def tokens_in(run: Run) -> str:
    """How many tokens are read of a text, with their kind; of files what a row of them is."""
    return run.recipe.source.size_told(f"{run.source.size:,} {run.recipe.text.kind} tokens")


def symbols_of(run: Run) -> CodeSymbols:
    """The codes of a run that makes or writes them."""
    return CodesForm.of(run.forms.target).symbols
