"""What a model can be trained for, by the name that a recipe gives it. Needs no torch.

An example has sides: what is read (``source``) and what is written (``target``). A task says which
of them its examples have, what the model is trained to do with them, and how it is measured; all
that trains is the same for every task, and all that searches for every task that writes. Of a
masked text, what is read is made of the text itself, the one side there is. Where the ``target``
is a label, a model scores all there are and none is searched for. A tree is searched for as a text
is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from dragoman.address import found_at
from dragoman.measure import BITS_PER_BYTE, BLEU, CHRF, LOSS, PERPLEXITY, Measure, percent

Side = Literal["source", "target"]
"""What a model reads, or what it writes."""

Target = Literal["text", "label", "tree"]
"""A text; one of some labels (``forms/labels.py``); a tree (``forms/tree_form.py``)."""


@dataclass(frozen=True)
class Task:
    """One of ``TASKS``. What needs torch is named by its address."""

    name: str
    called: str
    """What a run of it is called in a sentence, after "a"."""
    sides: tuple[Side, ...]
    """Of an example, in the order in which a model takes them."""
    reads: bool
    """Whether its models read something that is given whole (``ModelSettings.reads``)."""
    writes: bool
    """Whether they write, token by token; else they say something of what they have read."""
    noun: str
    """What its examples are called, several of them."""
    counted: str
    """What its loss is summed over, as updates, speed and amount of training are counted."""
    metrics: Mapping[str, Measure]
    """What validation measures; by the first it is decided which weights are best, unless a recipe
    names another."""
    examples: str
    """(store, recipe, forms) -> ``tasks.examples.Examples``: what is learned from at once."""
    objective: str
    """(network, label smoothing) -> ``training.objectives.Objective``."""
    validation: str
    """Measures the network while it trains: a ``tasks.validation.Validation``."""
    evaluation: str
    """(run, files, changes of settings, options) -> what a finished run is worth on these files,
    or on its own test set: ``tasks.evaluation.evaluate_run`` for this task."""
    evaluation_options: tuple[str, ...]
    """The options of ``dragoman evaluate`` that it takes beside those that all tasks do."""
    begins: tuple[float, float]
    """(a, b): a model of width d begins to learn something after about d × max(a, b × L) of what is
    counted, L being the mean length of a target in tokens; of little text sooner
    (``sizing.least_tokens``). Of labels nothing is known: 0."""
    learned: str
    """(run, its training) -> why a finished run has hardly learned it; None if it has: of
    ``tasks/learned.py``."""
    verbs: tuple[tuple[str, str], ...]
    """What can be done with a finished run: verbs, and what follows the run's name."""
    hub_tag: str
    """What model hubs call it, for the card."""
    limits: tuple[str, ...]
    """What report and card warn of."""
    symbols: tuple[str, ...] = ()
    """Tokens of its vocabulary that stand for no text, beside those that every one has."""
    target: Target = "text"
    """What the target of an example is."""
    network: str = "dragoman.models.kinds.new_network"
    """(settings of the model, sizes of both forms) -> a network with fresh weights."""
    finished: Mapping[str, Measure] = field(default_factory=dict)
    """What is measured of a finished run alone."""
    compared: str | None = None
    """The score that compares where ``training.metric`` does not: across vocabularies."""

    @property
    def texts(self) -> tuple[Side, ...]:
        """The sides that are texts, each with a vocabulary."""
        return self.sides if self.target == "text" else ("source",)

    @property
    def one_counted(self) -> str:
        """One of what its loss is summed over."""
        return self.counted.removesuffix("s")

    def measure(self, name: str) -> Measure:
        """Of a score by its name; one of another version of this program is written as it is."""
        known = {**self.metrics, **self.finished}
        return known.get(name, Measure(name, "higher", digits=3))

    @property
    def evaluate(self) -> Any:
        """What stands at ``evaluation``."""
        return found_at(self.evaluation)

    def new_network(self, settings: Any, source: int, target: int) -> Any:
        """A network with fresh weights, for forms of so many different tokens."""
        return found_at(self.network)(settings, source, target)

    def new_objective(self, network: Any, smoothing: float) -> Any:
        """What training minimises."""
        return found_at(self.objective)(network, smoothing)


TASKS = {
    task.name: task
    for task in (
        Task(
            name="translation",
            called="translation",
            sides=("source", "target"),
            reads=True,
            writes=True,
            noun="pairs",
            counted="target tokens",
            metrics={"bleu": BLEU, "chrf": CHRF, "loss": LOSS, "perplexity": PERPLEXITY},
            finished={
                "BLEU": BLEU,
                "chrF": CHRF,
                "chrF++": Measure("chrF++", "higher"),
                "TER": Measure("TER", "lower"),
            },
            examples="dragoman.tasks.examples.Pairs",
            objective="dragoman.training.objectives.next_token",
            validation="dragoman.tasks.translation.Translations",
            evaluation="dragoman.tasks.evaluation.evaluate_run",
            evaluation_options=("beam", "mbr", "precision", "shortlist", "ensemble", "output"),
            begins=(10_000, 250),
            learned="dragoman.tasks.learned.by_bleu",
            verbs=(("translate", "< input.txt > output.txt"), ("look", "'A sentence.'")),
            hub_tag="translation",
            limits=(
                "It translates sentence by sentence and knows nothing of those around.",
                "It may leave out, add or invent; figures and names deserve a second look.",
            ),
        ),
        Task(
            name="language-model",
            called="language-model",
            sides=("target",),
            reads=False,
            writes=True,
            noun="texts",
            counted="target tokens",
            metrics={"loss": LOSS, "perplexity": PERPLEXITY, "bits_per_byte": BITS_PER_BYTE},
            compared="bits_per_byte",
            examples="dragoman.tasks.examples.TextWindows",
            objective="dragoman.training.objectives.next_token",
            validation="dragoman.tasks.language_model.Texts",
            evaluation="dragoman.tasks.language_model.evaluate_run",
            evaluation_options=(),
            begins=(4_000, 0),
            learned="dragoman.tasks.learned.by_frequency",
            verbs=(("write", "'How it begins'"),),
            hub_tag="text-generation",
            limits=("It writes what its training text makes likely, whether it is true or not.",),
        ),
        Task(
            name="masked",
            called="masked language model",
            sides=("target",),
            reads=True,
            writes=False,
            noun="texts",
            counted="masked tokens",
            metrics={
                "loss": LOSS,
                "perplexity": PERPLEXITY,
                "accuracy": percent("accuracy", share=True),
            },
            finished={"pseudo_perplexity": Measure("pseudo-perplexity", "lower")},
            examples="dragoman.tasks.examples.MaskedTexts",
            objective="dragoman.training.objectives.masked_tokens",
            validation="dragoman.tasks.masked.Restored",
            evaluation="dragoman.tasks.masked.evaluate_run",
            evaluation_options=(),
            begins=(6_000, 0),
            learned="dragoman.tasks.learned.by_frequency",
            verbs=(("fill", "'How it ___.'"),),
            hub_tag="fill-mask",
            limits=("It fills in what its training text makes likely, whether it is true or not.",),
            symbols=("<mask>",),
        ),
        Task(
            name="classification",
            called="classification",
            sides=("source", "target"),
            reads=True,
            writes=False,
            noun="texts",
            counted="texts",
            metrics={
                "macro_f1": percent("macro F1"),
                "accuracy": percent("accuracy"),
                "loss": LOSS,
            },
            examples="dragoman.tasks.examples.LabelledTexts",
            objective="dragoman.training.objectives.label",
            validation="dragoman.tasks.classification.Labelled",
            evaluation="dragoman.tasks.classification.evaluate_run",
            evaluation_options=(),
            begins=(0, 0),
            learned="dragoman.tasks.learned.by_majority",
            verbs=(("classify", "< lines.txt"),),
            hub_tag="text-classification",
            limits=(
                "It chooses among the labels that it was trained on, also where none of them fits.",
            ),
            target="label",
            network="dragoman.models.classifier.new_classifier",
        ),
        Task(
            name="parsing",
            called="parser",
            sides=("source", "target"),
            reads=True,
            writes=True,
            noun="trees",
            counted="target tokens",
            metrics={
                "f1": percent("F1"),
                "precision": percent("precision"),
                "recall": percent("recall"),
                "exact": percent("exact"),
                "tags": percent("tags"),
                "loss": LOSS,
                "perplexity": PERPLEXITY,
            },
            finished={
                "f1_40": percent("F1 (≤ 40 words)"),
                "exact_40": percent("exact (≤ 40 words)"),
            },
            examples="dragoman.tasks.examples.Pairs",
            objective="dragoman.training.objectives.next_token",
            validation="dragoman.tasks.parsing.Parses",
            evaluation="dragoman.tasks.parsing.evaluate_run",
            evaluation_options=("beam", "precision", "output"),
            begins=(5_500, 0),
            learned="dragoman.tasks.learned.by_f1",
            verbs=(("parse", "--draw 'A sentence of words .'"),),
            hub_tag="text2text-generation",
            limits=(
                "It parses sentences whose words are cut as those of its treebank are.",
                "Each parse is a tree over all words, also where the sentence makes no sense.",
            ),
            target="tree",
        ),
    )
}
"""Every task by its name."""
