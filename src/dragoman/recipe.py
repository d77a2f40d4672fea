"""A recipe: one TOML file that says everything about a run.

Each section is the settings of one component, defined beside it; here they are only composed,
checked and written. Paths in a recipe file are relative to that file;
in a recipe that ships with the program, to the folder in which the program is run.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

import tomli_w
from pydantic import Field, ValidationError, field_validator, model_validator

from dragoman.atomic import write_text
from dragoman.data.cleaning import CleaningSettings
from dragoman.data.corpora import CorpusSettings
from dragoman.data.masking import MaskingSettings
from dragoman.data.plan import PlanSettings
from dragoman.data.split import SplitSettings
from dragoman.errors import RecipeError
from dragoman.forms.text_settings import TextSettings
from dragoman.forms.tree_symbols import TreeSettings
from dragoman.models.kinds import KINDS, AnyModel
from dragoman.models.settings import TransformerSettings
from dragoman.recipe_text import explain, map_paths, merge, read_text, shipped
from dragoman.search.settings import SearchSettings
from dragoman.settings import Settings
from dragoman.task import TASKS, Task
from dragoman.training.settings import TrainingSettings

_ABLE = {
    (True, True): "reads a source and writes",
    (False, True): "writes and reads nothing",
    (True, False): "reads and writes nothing",
}
"""What a model or a task does, by whether it reads and whether it writes."""

FORMAT = 1
"""The version of recipe files that this program writes, and the newest that it reads."""


class LanguageSettings(Settings):
    """Which languages are translated, as BCP 47 codes ("en", "de", "ko"); "und" is not known."""

    source: str = "und"
    """Language of the source side."""
    target: str = "und"
    """Language of the target side; decides the BLEU tokeniser (ko-mecab for "ko")."""


class DataSettings(Settings):
    """The text to learn from and to be measured on."""

    embedded: Literal["demo", "demo-trees"] | None = None
    """A corpus that the program generates itself, in place of files: demo, sentences and their
    translations; demo-trees, sentences and their trees (task parsing)."""
    train: tuple[CorpusSettings, ...] = ()
    """Corpora to train on, with weights."""
    dev: CorpusSettings | None = None
    """What validation uses; held out of ``train`` if not given."""
    test: CorpusSettings | None = None
    """What the final score is measured on; held out of ``train`` if not given."""
    split: SplitSettings = SplitSettings()
    """How much is held out where dev or test is not given."""
    moses: bool = False
    """Lower-case and tokenise all text as Moses does, as older papers have it (forms/moses.py);
    translations are put back into plain text, in lower case."""
    cleaning: CleaningSettings = CleaningSettings()
    """What is not worth training on."""

    @model_validator(mode="after")
    def _one_of_both(self) -> DataSettings:
        if self.train and self.embedded:
            raise ValueError('give either corpora ("train") or "embedded", not both')
        return self


class EvaluationSettings(Settings):
    """How a finished model is measured."""

    dev_sentences: int = Field(500, ge=1, le=1_000_000)
    """So many sentences of dev are translated at each validation; its loss is over all of them."""
    dev_beam: int = Field(1, ge=1, le=4096)
    """Beam of those translations; 1 is greedy, which is several times faster."""
    samples: int = Field(10, ge=0, le=1000)
    """Sentences of the test set that the report shows."""
    markup: Literal["none", "restructuredtext"] = "none"
    """Count the lines of the test set whose inline markup comes out as it went in."""
    tokenised: bool = False
    """Give BLEU over lower-cased, Moses-tokenised text as well, the figure of older papers."""
    window: int | None = Field(None, ge=1, le=1_000_000)
    """Language models: tokens that are read at once when a text is scored; plan.context if not
    given. One that carries its past along (LSTM) may be given more than it learned from."""
    stride: int | None = Field(None, ge=1, le=1_000_000)
    """Language models: by how many tokens each window is further than the one before, so that each
    token is given window - stride others at least; half of the window if not given; as large as
    the window: nothing is read twice, and windows begin without context."""

    @model_validator(mode="after")
    def _agree(self) -> EvaluationSettings:
        if self.window is not None and self.stride is not None and self.stride > self.window:
            raise ValueError(
                f"stride {self.stride} is greater than window {self.window}: tokens between two "
                "windows would be passed over"
            )
        return self


class Recipe(Settings):
    """Everything about a run. ``Recipe.load`` reads one, ``save`` writes one, complete."""

    format: int = Field(FORMAT, ge=1, le=FORMAT)
    """Version of this file's layout."""
    name: str = "translator"
    """What the run is called."""
    task: str = "translation"
    """What the model is for: translation, language-model, masked, classification or parsing."""
    seed: int = Field(1, ge=0, lt=2**63)
    """Every random draw of the run follows from it."""
    languages: LanguageSettings = LanguageSettings()
    data: DataSettings = DataSettings()
    text: TextSettings = TextSettings()
    trees: TreeSettings = TreeSettings()
    model: AnyModel = TransformerSettings()
    plan: PlanSettings = PlanSettings()
    masking: MaskingSettings = MaskingSettings()
    training: TrainingSettings = TrainingSettings()
    search: SearchSettings = SearchSettings()
    evaluation: EvaluationSettings = EvaluationSettings()

    @field_validator("task")
    @classmethod
    def _is_known(cls, task: str) -> str:
        if task not in TASKS:
            raise ValueError(f"there is no such task; tasks are {', '.join(TASKS)}")
        return task

    @model_validator(mode="before")
    @classmethod
    def _metric_of_task(cls, values: Any) -> Any:
        """A recipe that names no metric is judged by the first of its task."""
        if not isinstance(values, Mapping):
            return values
        task, training = TASKS.get(str(values.get("task", "translation"))), values.get("training")
        if task is None or not isinstance(training, Mapping | None) or "metric" in (training or {}):
            return values
        return {**values, "training": {**(training or {}), "metric": next(iter(task.metrics))}}

    @model_validator(mode="after")
    def _agree(self) -> Self:
        task = TASKS[self.task]
        if self.training.metric not in task.metrics:
            raise ValueError(
                f'training.metric = "{self.training.metric}" is not measured of a {task.called}; '
                f"it is one of {', '.join(task.metrics)}"
            )
        for corpus in (*self.data.train, *filter(None, (self.data.dev, self.data.test))):
            if corpus.is_alone != (len(task.sides) == 1):
                alone = "text, documents or file"
                raise ValueError(
                    f"{corpus.name}: a {task.called} learns from texts alone: format = {alone}"
                    if len(task.sides) == 1
                    else f"{corpus.name}: a {task.called} has two sides; format {corpus.format} "
                    f"has one, as {alone} have"
                )
            if (corpus.format == "trees") != (task.target == "tree"):
                raise ValueError(
                    f"{corpus.name}: a {task.called} learns from bracketed trees: format = trees"
                    if task.target == "tree"
                    else f"{corpus.name}: format trees is for parsing, and this is a {task.called}"
                )
            if corpus.links is not None and (task.target != "text" or len(task.sides) == 1):
                told = "; what a head is taught, the trees tell" if task.target == "tree" else ""
                raise ValueError(
                    f"{corpus.name}: links ({corpus.links}) lead from words to those of their "
                    f"translation, and a {task.called} has none: leave links out{told}"
                )
        if self.data.embedded not in (None, "demo-trees" if task.target == "tree" else "demo"):
            other = "demo-trees" if task.target == "tree" else "demo"
            raise ValueError(
                f'data.embedded = "{self.data.embedded}" is no corpus for a {task.called}: '
                f'"{other}" is'
            )
        asked, model = (task.reads, task.writes), self.model
        if task.target == "label":
            self._check_labelling(task)
        elif (model.reads, model.writes) != asked:
            kinds = [kind for kind, (one, _) in KINDS.items() if (one.reads, one.writes) == asked]
            raise ValueError(
                f'model.kind = "{model.kind}" {_ABLE[model.reads, model.writes]}, and a '
                f"{task.called} asks for a model that {_ABLE[asked]}: choose one of "
                f"{', '.join(kinds)}"
            )
        if isinstance(model, TransformerSettings) and model.next_word and task.target != "tree":
            raise ValueError(
                "model.next_word is for outputs that keep the order of the words that were read, "
                f"and a {task.called} writes others: leave it out"
            )
        if self.training.guided.weight and len(task.sides) == 1:
            raise ValueError(
                "training.guided teaches a head to align source and target, and a "
                f"{task.called} has no source: set training.guided.weight = 0"
            )
        if self.training.guided.weight:
            self.training.guided.place(model.cross_heads)
        if self.data.moses and any(corpus.links for corpus in self.data.train):
            raise ValueError(
                "links count words of the text as it stands, and data.moses cuts it into others: "
                "leave them out, and they are learned"
            )
        if len(task.sides) == 1:
            self._check_windows()
        if task.symbols and self.data.moses:
            raise ValueError(
                f"a {task.called} fills blanks in text as it stands: set data.moses = false"
            )
        if task.target == "tree":
            self._check_trees()
        elif not self.text.shared and self.model.shares_vocabulary:
            raise ValueError(
                "two vocabularies cannot share one matrix: with text.shared = false, set "
                'model.tie = "target" or "none"'
            )
        return self

    def _check_labelling(self, task: Task) -> None:
        stacks = [kind for kind, (known, _) in KINDS.items() if not (known.reads and known.writes)]
        if self.model.kind not in stacks:
            raise ValueError(
                f'model.kind = "{self.model.kind}" reads one text and writes another, and a '
                f"{task.name} reads alone: choose one of {', '.join(stacks)}"
            )
        if self.text.sampling:
            raise ValueError(
                f"text.sampling cuts a text anew each time, and a {task.name} learns from fixed "
                "tokens: set text.sampling = 0"
            )

    def _check_trees(self) -> None:
        if self.model.shares_vocabulary:
            raise ValueError(
                'words and brackets cannot share one matrix: set model.tie = "target" or "none"'
            )
        if self.data.moses:
            raise ValueError(
                "data.moses is of texts and their translations: leave it out of a "
                f"{TASKS[self.task].called}"
            )
        self.check_search(self.search)

    def check_search(self, search: SearchSettings) -> None:
        """Errors: ``ValueError`` for what the outputs of the task do not allow."""
        if TASKS[self.task].target == "tree" and (search.min_length or search.no_repeat_ngram):
            raise ValueError(
                "a parse has its own rules, and search.min_length and search.no_repeat_ngram could "
                "leave nothing that obeys them: set both to 0"
            )

    def _check_windows(self) -> None:
        context, window = self.plan.context, self.evaluation.window or self.plan.context
        if (self.evaluation.stride or 1) > window:
            raise ValueError(
                f"evaluation.stride {self.evaluation.stride} is greater than the window of "
                f"{window} tokens (evaluation.window, plan.context)"
            )
        longest = self.model.longest
        if longest is not None and max(context, window) > longest:
            raise ValueError(
                f"windows of {max(context, window)} tokens (plan.context, evaluation.window) are "
                f"longer than the model's table of positions, {longest}: raise "
                "model.positions.maximum"
            )
        if self.text.sampling:
            raise ValueError(
                f"text.sampling cuts a text anew each time, and a {TASKS[self.task].called} learns "
                "from fixed windows of tokens: set text.sampling = 0"
            )

    @classmethod
    def load(cls, source: str | Path, changes: Sequence[str] = ()) -> Recipe:
        """Read a recipe file, or one that ships by its name ("multi30k-en-de").

        ``changes`` are ``section.key=value`` and are merged before anything is checked.
        Errors: ``RecipeError`` naming the file, the key and what is allowed.
        """
        path = Path(source)
        if path.suffix == ".toml" or path.is_file():
            text, base, where = read_text(path), path.resolve().parent, str(path)
        else:
            text, base, where = shipped(str(source)), Path.cwd(), f"recipe {source}"
        try:
            values = tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            if path.suffix == ".toml":
                raise RecipeError(f"{where} is not valid TOML: {error}") from error
            raise RecipeError(
                f"{where} is no recipe. If it is text to train on: two files are named together "
                "(dragoman train my.en my.de), one that holds both sides ends in .tsv or .jsonl. "
                f"(Read as a recipe it is not valid TOML: {error})"
            ) from error
        return cls.parse(
            map_paths(values, lambda p: os.path.normpath(os.path.join(base, p))), changes, where
        )

    @classmethod
    def parse(
        cls, values: Mapping[str, Any], changes: Sequence[str] = (), where: str = "the recipe"
    ) -> Recipe:
        """Check plain values, as TOML has them, after merging ``changes``."""
        version = values.get("format", FORMAT)
        if isinstance(version, int) and version > FORMAT:
            raise RecipeError(
                f"{where} has format {version}; this program reads up to {FORMAT}. "
                "It was written by a newer dragoman: upgrade with pip install -U dragoman"
            )
        merged = dict(values)
        for change in changes:
            merged = merge(merged, change)
        try:
            return cls.model_validate(merged)
        except ValidationError as error:
            raise RecipeError(explain(error, cls, where)) from None

    def change(self, changes: Sequence[str]) -> Recipe:
        """The same recipe with ``section.key=value`` merged in, checked again."""
        return self.parse(self.model_dump(mode="json", exclude_none=True), changes)

    def to_toml(self, base: Path) -> str:
        """The whole recipe as TOML, defaults included; paths are relative to ``base``."""
        values = self.model_dump(mode="json", exclude_none=True)
        return tomli_w.dumps(map_paths(values, lambda p: os.path.relpath(p, base)))

    def save(self, path: Path) -> None:
        """Write ``to_toml`` for the folder of ``path``, whole or not at all."""
        write_text(path, self.to_toml(path.resolve().parent))
