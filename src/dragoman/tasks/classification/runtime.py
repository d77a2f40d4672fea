"""The specification and the runtime of classification: a model reads a text and chooses one label
for it. The runtime has what trains, evaluates and predicts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from dragoman.base.errors import DataError
from dragoman.base.measure import LOSS, percent
from dragoman.base.reading import readable
from dragoman.base.task import Side
from dragoman.base.wording import plural, shorten
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.forms.form import Form, Pair
from dragoman.forms.labels import LONGEST, Labels, plain
from dragoman.forms.sides import Forms
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.recipe.sections import Sections
from dragoman.runs.recipe.spec import Examples, Spec, WithHead
from dragoman.runs.run import Run
from dragoman.sources.file_examples import content_of
from dragoman.sources.shared.rows import input_of
from dragoman.tasks.shared.progress_made import (
    MIN_ANSWERS,
    TrainingSummary,
    entropy,
    training_answers,
)
from dragoman.tasks.shared.runtime import SURE, Builders, LabelRuntime, Parts, beside_guess

if TYPE_CHECKING:
    from dragoman.models.interface import Network
    from dragoman.models.settings import ModelSettings

_COMPARED = 1_000_000
"""The most different examples that are compared with each other: about 100 MB."""
_MIN_EXAMPLES = 3
"""The fewest examples of a label: fewer are more likely a mistake."""


@dataclass(frozen=True)
class ClassificationSpec(WithHead):
    """Texts, or files, with one label each."""

    target_file: ClassVar[str] = "labels.json"
    fixed_tokens: ClassVar[bool] = True
    reads_rows: ClassVar[bool] = True
    mixes_labels: ClassVar[bool] = True

    def forms(self, given: Mapping[Side, Form], folder: Path, longest: int) -> Forms:
        return Forms(given["source"], Labels.load(folder / self.target_file))

    def learn_target(self, recipe: Sections, examples: Examples, folder: Path) -> list[str]:
        seen = _Contradictions(content_of if self.reads_files else str)
        labels, counts = Labels.learn(seen.take(pair).target for _, pair in _check_labels(examples))
        labels.save(folder / self.target_file)
        has_lines = any(corpus.format != "folders" for corpus in recipe.data.train)
        few = rare_labels(counts, may_be_header=has_lines)
        return [
            f"{labels.size:,} labels: {labels.summary()}",
            *([f"warning: {few}"] if few else []),
            *seen.warnings(),
        ]

    def check_target(self, recipe: Sections, examples: Examples, learned: Forms, run: Path) -> None:
        for name, pair in _check_labels(examples):
            line = f"{name}, line {pair.line}"
            self.check_known(learned.labels, pair.target, line, run, "label")

    def check_held(
        self, recipe: Sections, held: Mapping[str, Sequence[Pair]], learned: Forms
    ) -> list[str]:
        warnings = []
        for side, pairs in held.items():
            unknown = [pair for pair in pairs if learned.labels.value(pair.target) is None]
            if not unknown:
                continue
            named: CorpusSettings | None = getattr(recipe.data, side)
            label = repr(shorten(readable(plain(unknown[0].target)), 60))
            if len(unknown) < len(pairs):
                if side == "test":  # the validation reports dev
                    warnings.append(
                        f"warning: of {len(pairs):,} test {self.noun}, "
                        f"{plural(len(unknown), 'has', 'have')} a label that training does not "
                        f"have, {label} first: they are not scored"
                    )
            elif named is not None:
                raise DataError(
                    f"{named.name}, line {unknown[0].line}: {label} is not a label of training, "
                    f"and neither is any other of {side}, so nothing can be measured. Labels are "
                    f"{learned.labels.summary()}"
                )
            elif side == "test":
                raise DataError(
                    "none of the held-out test examples has a label that occurs in training (the "
                    f"first one has {label}), so nothing can be measured. Give more examples of "
                    "each label, or a test set (--test)"
                )
        return warnings

    def embedded_pairs(self, recipe: Sections, part: str) -> Iterator[Pair]:
        """The sentences of the demo; the label is the German pronoun of their "it"
        (``demo/corpus.py``)."""
        from dragoman.demo.corpus import demo_corpus, label_of

        pairs = enumerate(getattr(demo_corpus(), part), 1)
        labelled = ((line, pair.source, label_of(pair)) for line, pair in pairs)
        return (Pair(line, text, label) for line, text, label in labelled if label is not None)

    def new_network(self, settings: ModelSettings, forms: Forms) -> Network:
        from dragoman.models.catalogue.classifier import new_classifier

        return new_classifier(settings, input_of(forms.source), forms.target.size)


def rare_labels(counts: Mapping[str, int], *, may_be_header: bool = True) -> str:
    """A message about labels with too few examples; empty if there are none. ``may_be_header``:
    True if a label may be the name of a column."""
    rare = sorted(name for name, count in counts.items() if count < _MIN_EXAMPLES)
    if not rare:
        return ""
    header = ". If one is the name of a column, remove the header"
    header = header if may_be_header else ""
    return (
        f"{len(rare):,} of {len(counts):,} labels have fewer than {_MIN_EXAMPLES} training "
        f"examples, such as {rare[0]!r} with {counts[rare[0]]}, too few to learn them{header}"
    )


class _Contradictions:
    """Counts examples that occur twice, with different labels. The model must be wrong about
    one."""

    def __init__(self, content: Callable[[str], str]) -> None:
        """``content``: a function that gives equal results for equal examples."""
        self._content = content
        self._labels: dict[int, str] = {}
        self._first: tuple[str, str, str] | None = None
        self._count = 0

    def take(self, pair: Pair) -> Pair:
        """Check one more example, and return it."""
        label = plain(pair.target)
        if len(self._labels) >= _COMPARED:
            return pair
        before = self._labels.setdefault(hash(self._content(pair.source)), label)
        if before != label:
            self._count += 1
            self._first = self._first or (pair.source, before, label)
        return pair

    def warnings(self) -> list[str]:
        """A warning about such examples, if there are any."""
        if self._first is None:
            return []
        source, before, label = self._first
        return [
            (
                f"warning: {plural(self._count, 'training example')} also "
                f"{'occurs' if self._count == 1 else 'occur'} with another label, such as "
                f"{shorten(readable(source), 60)!r} with {before!r} and {label!r}. Use one "
                "label for each"
            )
        ]


def _check_labels(examples: Examples) -> Iterator[tuple[str, Pair]]:
    """Check the labels, and yield the examples, each with the name of its corpus. Errors:
    ``DataError`` for a label that is empty or too long."""
    for name, pair in examples():
        if not pair.target.strip():
            raise DataError(f"{name}, line {pair.line}: the label is empty")
        if len(plain(pair.target)) > LONGEST:
            raise DataError(
                f"{name}, line {pair.line}: the label has {len(plain(pair.target)):,} characters; "
                f"at most {LONGEST:,} are allowed: {pair.target.strip()[:60]!r}. If its column is "
                "wrong, set --columns"
            )
        yield name, pair


CLASSIFICATION = ClassificationSpec(
    name="classification",
    called="classifier",
    writes=False,
    noun="texts",
    counted="texts",
    metrics={"macro_f1": percent("macro F1"), "accuracy": percent("accuracy"), "loss": LOSS},
    evaluation_options=("columns", "keys"),
    verbs=(("classify", "< lines.txt"),),
    hub_tag="text-classification",
    limits=("It chooses among the labels that it was trained on, even if none of them fits.",),
)


class ClassificationRuntime(LabelRuntime):
    """Classification: the model reads a text and chooses a label for it."""

    spec: ClassVar[Spec] = CLASSIFICATION
    counts: ClassVar[str] = "labels"
    one_label: ClassVar[str] = "label"

    def builders(self) -> Builders:
        from dragoman.tasks.classification.sizes import ClassificationBuilder, FilesBuilder

        return (ClassificationBuilder, FilesBuilder)

    def parts(self) -> Parts:
        from dragoman.tasks.classification.evaluation import (
            ClassificationEvaluation,
            ClassificationValidation,
            compare_labels,
        )
        from dragoman.tasks.classification.labeller import Labeller
        from dragoman.tasks.shared.examples import LabelledTexts
        from dragoman.training.losses.objectives import LabelObjective

        return Parts(
            LabelledTexts, LabelObjective, ClassificationValidation,
            ClassificationEvaluation(), Labeller, compare_labels,
        )  # fmt: skip

    def count_target(self, counts: Counter[str], pair: Pair) -> None:
        counts[plain(pair.target)] += 1

    def rare_targets(self, counts: Mapping[str, int]) -> list[str]:
        return list(filter(None, [rare_labels(counts)]))

    def chance(self, recipe: Recipe, forms: Forms, pairs: Sequence[Pair]) -> dict[str, float]:
        return chance_of_labels([plain(pair.target) for pair in pairs], training_answers(recipe))

    def hardly_learned(self, run: Run, training: TrainingSummary) -> str | None:
        """A sentence that says that a run is no better than always choosing the most frequent
        label. None if it is better, or was measured on too few texts."""
        scores = run.scores()
        labels = scores.get("labels", [])
        texts = sum(label["texts"] for label in labels)
        if texts < MIN_ANSWERS:
            return None
        accuracy = sum(label["texts"] * label["recall"] for label in labels) / texts
        most = max(labels, key=lambda label: label["texts"])
        present = [label for label in labels if label["texts"]]
        f1 = sum(label["f1"] for label in present) / len(present)
        share = most["texts"] / texts
        guessed = f1_of(share, len(present))
        error = math.sqrt(share * (1 - share) / texts)
        if accuracy > share + SURE * error or f1 > guessed + SURE * error + 0.05:
            return None
        if columns := scores.get("confusion", []):
            chosen = [sum(row[k] for row in columns) for k in range(len(labels))]
            if max(chosen) == sum(chosen):
                always = labels[chosen.index(max(chosen))]["label"]
                return f"it gives every text the label {always!r}"
        return beside_guess(accuracy, repr(most["label"]), share)


def chance_of_labels(labels: Sequence[str], learned: Sequence[str]) -> dict[str, float]:
    """The scores of guessing the labels of some texts; empty if there are too few texts, if all
    have one label, or if the training labels (``training_answers``) are unknown."""
    if len(labels) < MIN_ANSWERS or len(set(labels)) < 2 or not learned:
        return {}
    counts = Counter(labels)
    (usual, _), *_ = Counter(map(plain, learned)).most_common(1)
    share = counts[usual] / len(labels)
    loss = entropy(counts.values())
    return {"accuracy": 100 * share, "macro_f1": 100 * f1_of(share, len(counts)), "loss": loss}


def f1_of(share: float, labels: int) -> float:
    """Macro F1, as a share, of always choosing the one label that a ``share`` of the texts have."""
    return 2 * share / (1 + share) / labels
