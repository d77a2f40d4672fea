"""The behaviour of a task: training, evaluation, prediction and reports.

Each task has its own in ``tasks/NAME/runtime.py``, with its spec; ``tasks/catalogue.py`` lists
them. Modules that need torch are imported when they are used, so that mistakes are reported before.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

from dragoman.base.measure import SHARE
from dragoman.base.wording import plural
from dragoman.forms.form import Pair
from dragoman.forms.sides import Forms
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.recipe.spec import Spec
from dragoman.runs.run import Run
from dragoman.tasks.shared.progress_made import TrainingSummary, below, by_frequency, on_test

if TYPE_CHECKING:
    from dragoman.data.store import TokenStore
    from dragoman.engine.predictor import Predictor
    from dragoman.engine.settings import EngineSettings, TranslatorSettings
    from dragoman.metrics.significance import MeasuredSystem
    from dragoman.pictures.records import AttentionRecord, Heatmap, ShownSample, Table
    from dragoman.sizing.builder import RecipeBuilder
    from dragoman.tasks.shared.evaluation import RunEvaluation
    from dragoman.tasks.shared.examples import Examples
    from dragoman.tasks.shared.validation import Validation
    from dragoman.training.losses.objectives import Objective

Builders: TypeAlias = "tuple[type[RecipeBuilder], ...]"
MakePredictor = Callable[[Run, "EngineSettings | None"], "Predictor[object]"]


class ComparedRuns(NamedTuple):
    """The outputs of several systems for the same examples, for a significance test."""

    test: str
    """The name of the examples for reports."""
    pairs: Sequence[Pair]
    measured: Mapping[str, MeasuredSystem]
    """Each score's name -> the systems over all ``pairs``; ``{}`` in a signature is their
    number."""
    outputs: Sequence[Sequence[str]]
    """The outputs of the first run of each system."""
    guessed: Sequence[str]
    """The names of the scores that show whether a system only guesses."""
    shown: Sequence[Pair] | None = None
    """The pairs for display, if they differ from those that are scored."""
    tables: Sequence[str] = ()
    """The tables that follow the scores, as plain text."""
    details: Mapping[str, Any] = {}
    """The contents of these tables, as plain values for JSON."""


CompareRuns = Callable[[Mapping[str, Sequence[Run]], Path | None, Sequence[Path]], ComparedRuns]
"""A function that runs several systems on the same examples. It takes the runs of each system by
its name, the file of examples, and the files of references. Without files, it uses the test set of
the first run."""


class Parts(NamedTuple):
    """The parts of a task that need torch: training, evaluation and prediction."""

    examples: Callable[[TokenStore, Recipe, Forms], Examples]
    """Makes the training examples from a store."""
    objective: Callable[[Any, float], Objective]
    """Makes the objective from a network and the amount of label smoothing (section 5.4 of the
    paper)."""
    validation: Callable[..., Validation[Any]]
    """Makes the validation from network, recipe, forms, dev pairs and device."""
    evaluate: RunEvaluation[Any, Any]
    """The evaluation of the task, which ``Runtime.evaluate`` returns."""
    predictor: MakePredictor
    """Opens a finished run for prediction."""
    compared: CompareRuns | None = None
    """Runs and compares several systems, for tasks that do not compare output texts."""


class Runtime(ABC):
    """The behaviour of a task, to be used with its spec."""

    spec: ClassVar[Spec]
    counts: ClassVar[str] = ""
    """What ``count_target`` counts, such as labels; empty if it counts nothing."""
    begun: ClassVar[tuple[str, float] | None] = None
    """A score that any model reaches once it has begun to learn; None if its loss decides."""
    written: ClassVar[str] = ""
    """The name of the target's symbols, such as symbols of trees; empty for tokens of text."""
    test_file: ClassVar[str] = "test.txt"
    """A typical name of a file to evaluate a run on."""

    # --- recipes ----------------------------------------------------------------------------------

    @abstractmethod
    def builders(self) -> Builders:
        """The builders of recipes: the first for files of text; for other files, the first that
        accepts them."""

    # --- training ---------------------------------------------------------------------------------

    @abstractmethod
    def parts(self) -> Parts:
        """The parts that train, evaluate and run a network of the task. This imports torch."""

    def cut_off(self, store: TokenStore, recipe: Recipe, forms: Forms) -> int:
        """Count the training examples that are longer than the model reads."""
        return 0

    def count_target(self, counts: Counter[str], pair: Pair) -> None:  # noqa: B027, a default
        """Count the elements of the target of an example, for ``data show``."""

    def rare_targets(self, counts: Mapping[str, int]) -> list[str]:
        """List warnings about the targets that ``count_target`` has counted."""
        return []

    # --- measuring --------------------------------------------------------------------------------

    @property
    def evaluate(self) -> RunEvaluation[Any, Any]:
        """The evaluation of a finished run on files, or on its own test set."""
        return self.parts().evaluate

    @abstractmethod
    def chance(self, recipe: Recipe, forms: Forms, pairs: Sequence[Pair]) -> dict[str, float]:
        """Score a guess on ``pairs``, by the names that validation gives its scores; empty if there
        are too few pairs (``tasks/shared/progress_made.py``)."""

    def hardly_learned(self, run: Run, training: TrainingSummary) -> str | None:
        """Say why a finished run has hardly learned the task. None if it has learned it, or if that
        is not known."""
        if self.begun is None:
            return by_frequency(run, training)
        name, least = self.begun
        on_dev = training.scores.get(name)
        return below(self.spec.metrics[name], least, on_dev, on_test(run, name))

    def test_files(self, recipe: Recipe) -> list[str]:
        """Typical names of files on which a run can be evaluated, for messages."""
        return [self.test_file]

    # --- asking ---------------------------------------------------------------------------------

    def open(
        self, run: Run, settings: TranslatorSettings | None = None, ensemble: Sequence[Run] = ()
    ) -> Any:
        """Open a finished run with ``Parts.predictor``; a translator also splits texts into
        sentences. ``ensemble``: runs that translate together with it.

        Errors: ``RunError`` for a run that cannot be opened, and for an ensemble of a task that is
        not translation.
        """
        if ensemble:
            run.require_task("translation", "which does not translate")
        return self.parts().predictor(run, settings)

    # --- telling ----------------------------------------------------------------------------------

    def vocabulary(self, run: Run) -> str:
        """Describe the size of the vocabularies, for the report. The default is the target's."""
        if self.written:
            return f"{tokens_in(run)}, {run.target.size:,} {self.written}"
        return f"{run.target.size:,} {run.recipe.text.kind} tokens"

    def samples(self, run: Run, samples: list[ShownSample]) -> tuple[list[ShownSample], int]:
        """Return the samples as a report shows them, and the number of samples left out."""
        return samples, 0

    def looks(self, run: Run, sources: Sequence[str]) -> list[AttentionRecord]:
        """Record the attention of a run while it reads ``sources``, for its report."""
        return []

    def tables(self, scores: Mapping[str, Any]) -> list[Table]:
        """Make the report's tables of the last evaluation, in addition to its scores."""
        return []

    def heatmaps(self, scores: Mapping[str, Any]) -> list[Heatmap]:
        """Make the report's heatmaps of the last evaluation."""
        return []


def tokens_in(run: Run) -> str:
    """Describe the source: number and kind of tokens of a text; for files, the size of a row."""
    return run.recipe.source.size_told(f"{run.source.size:,} {run.recipe.text.kind} tokens")


def codes_in(run: Run) -> str:
    """Describe the source, and the codes of pictures that a run makes or writes."""
    from dragoman.sources.picture.codes_form import CodesForm

    return f"{tokens_in(run)}, {CodesForm.of(run.forms.target).symbols.count:,} codes"


class LabelRuntime(Runtime):
    """The behaviour of tasks that choose a label for each text, or for each of its words."""

    one_label: ClassVar[str]
    """The name of a single label in messages."""
    quoted: ClassVar[str] = "text"
    """The heading of the column with the text of a mistake."""
    quoted_length: ClassVar[int | None] = 100
    """The most characters of a mistake that are shown."""

    def cut_off(self, store: TokenStore, recipe: Recipe, forms: Forms) -> int:
        from dragoman.tasks.shared.examples import reading_of

        reading = reading_of(recipe, forms)
        return int((store.lengths["source"] > reading.longest - reading.symbols).sum())

    def test_files(self, recipe: Recipe) -> list[str]:
        learned = next(iter(recipe.data.train), None)
        if learned is not None and learned.names_files and learned.target is not None:
            return ["t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"]
        return ["test/" if learned is not None and learned.format == "folders" else "test.tsv"]

    def vocabulary(self, run: Run) -> str:
        return f"{tokens_in(run)}; {plural(run.forms.target.size, self.one_label)}"

    def tables(self, scores: Mapping[str, Any]) -> list[Table]:
        return [*self.label_tables(scores), *self.mistake_tables(scores)]

    def label_tables(self, scores: Mapping[str, Any]) -> list[Table]:
        """Make the table of precision, recall and F1 of each label, if the scores have them."""
        from dragoman.pictures.records import Table

        if not (labels := scores.get("labels", [])):
            return []
        title = f"{self.one_label.capitalize()} by {self.one_label}"
        header = (self.one_label, "precision", "recall", "F1", self.spec.counted)
        shares = ("precision", "recall", "f1")
        rows = [
            (record["label"], *(SHARE.text(record[name]) for name in shares), record["texts"])
            for record in labels
        ]
        return [Table(title, header, rows)]

    def mistake_tables(self, scores: Mapping[str, Any]) -> list[Table]:
        """Make the table of the surest mistakes, if there are any."""
        from dragoman.pictures.records import Table

        if not (worst := scores.get("worst", [])):
            return []
        about = ("line", self.one_label, "taken for", "probability", f"of the {self.one_label}")
        rows = [
            (case["line"], case["true"], case["chosen"], SHARE.text(case["probability"]),
             SHARE.text(case["of_true"]), case["text"][: self.quoted_length])
            for case in worst
        ]  # fmt: skip
        return [Table("Surest mistakes", (*about, self.quoted), rows)]

    def heatmaps(self, scores: Mapping[str, Any]) -> list[Heatmap]:
        from dragoman.tasks.shared.label_report import confusion_in, draw_confusion

        if not scores.get("confusion"):
            return []
        names = [record["label"] for record in scores["labels"]]
        title = (
            f"{self.one_label} by row, chosen by column: shares of each {self.one_label}'s "
            f"{self.spec.counted} of {scores.get('test', '')}"
        )
        picture = draw_confusion(title, names, confusion_in(scores))
        return [] if picture is None else [picture]


SURE = 2.0
"""The number of standard errors by which a run must exceed a guess that answers without reading."""


def beside_guess(accuracy: float, answer: str, guessed: float) -> str:
    """Say that a run is no better than always giving the same ``answer``, with the accuracy of
    both."""
    return (
        f"accuracy {SHARE.text(accuracy)}, and always answering {answer} gives "
        f"{SHARE.text(guessed)}"
    )
