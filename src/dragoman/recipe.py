"""A recipe: one TOML file that says everything about a run.

Each section is the settings of one component, defined beside it; here they are only composed,
read, merged with ``--set``, checked and written. Paths in a recipe file are relative to that file;
in a recipe that ships with the program, to the folder in which the program is run.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Self, Union, get_args, get_origin

import tomli_w
from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator

from dragoman.atomic import write_text
from dragoman.data.cleaning import CleaningSettings
from dragoman.data.corpora import CorpusSettings
from dragoman.data.masking import MaskingSettings
from dragoman.data.plan import PlanSettings
from dragoman.data.split import SplitSettings
from dragoman.errors import RecipeError, RunError
from dragoman.forms.text import TextSettings
from dragoman.forms.tree_symbols import TreeSettings
from dragoman.models.kinds import KINDS, AnyModel
from dragoman.models.settings import TransformerSettings
from dragoman.reading import read_bytes
from dragoman.search.settings import SearchSettings
from dragoman.settings import Settings
from dragoman.task import TASKS, Task
from dragoman.training.settings import TrainingSettings

_MOST = 1 << 20
"""Bytes of a recipe file."""

_TOLD, _SHOWN = 20, 200
"""Mistakes of a recipe that are told at once, and characters that are shown of each."""

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
        if self.training.guided.weight and len(task.sides) == 1:
            raise ValueError(
                "training.guided teaches a head to align source and target, and a "
                f"{task.called} has no source: set training.guided.weight = 0"
            )
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
        if self.training.guided.weight or self.data.moses:
            raise ValueError(
                "training.guided and data.moses are of texts and their translations: leave them "
                f"out of a {TASKS[self.task].called}"
            )
        if self.search.min_length or self.search.no_repeat_ngram:
            raise ValueError(
                "a parse has its own rules: set search.min_length = 0, search.no_repeat_ngram = 0"
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
            text, base, where = _shipped(str(source)), Path.cwd(), f"recipe {source}"
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
            _map_paths(values, lambda p: os.path.normpath(os.path.join(base, p))), changes, where
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
            merged = _merge(merged, change)
        try:
            return cls.model_validate(merged)
        except ValidationError as error:
            raise RecipeError(_explain(error, where)) from None

    def change(self, changes: Sequence[str]) -> Recipe:
        """The same recipe with ``section.key=value`` merged in, checked again."""
        return self.parse(self.model_dump(mode="json", exclude_none=True), changes)

    def to_toml(self, base: Path) -> str:
        """The whole recipe as TOML, defaults included; paths are relative to ``base``."""
        values = self.model_dump(mode="json", exclude_none=True)
        return tomli_w.dumps(_map_paths(values, lambda p: os.path.relpath(p, base)))

    def save(self, path: Path) -> None:
        """Write ``to_toml`` for the folder of ``path``, whole or not at all."""
        write_text(path, self.to_toml(path.resolve().parent))


def shipped_recipes() -> list[str]:
    """Names of the recipes that come with the program."""
    folder = resources.files("dragoman") / "recipes"
    return sorted(
        f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml")
    )


def read_text(path: Path) -> str:
    """The text of a recipe file. Errors: ``RecipeError`` if it cannot be read as text."""
    if not path.exists():
        raise RecipeError(
            f"there is no recipe {path}. Recipes that ship: {', '.join(shipped_recipes())}"
        )
    try:
        return read_bytes(path, _MOST).decode("utf-8")
    except (RunError, UnicodeDecodeError) as error:
        raise RecipeError(f"recipe {path}: {error}") from error


def _shipped(name: str) -> str:
    names = shipped_recipes()
    if name not in names:
        near = difflib.get_close_matches(name, names, 1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise RecipeError(
            f"{name!r} is neither a file nor a recipe that ships ({', '.join(names)}).{hint}"
        )
    return (resources.files("dragoman") / "recipes" / f"{name}.toml").read_text(encoding="utf-8")


def _map_paths(values: Mapping[str, Any], change: Any) -> dict[str, Any]:
    """``change`` applied to every path under ``data``: the only section that names files."""
    data = values.get("data")
    if not isinstance(data, Mapping):
        return dict(values)

    def corpus(entry: Any) -> Any:
        if not isinstance(entry, Mapping):
            return entry
        return {
            key: change(value)
            if key in ("source", "target", "links") and isinstance(value, str)
            else value
            for key, value in entry.items()
        }

    mapped = dict(data)
    if isinstance(mapped.get("train"), list):
        mapped["train"] = [corpus(entry) for entry in mapped["train"]]
    for key in ("dev", "test"):
        if key in mapped:
            mapped[key] = corpus(mapped[key])
    return {**values, "data": mapped}


def _merge(values: Mapping[str, Any], change: str) -> dict[str, Any]:
    """``section.key=value`` merged into ``values``; the value is TOML, or else a plain string."""
    key, equals, raw = change.partition("=")
    if not equals or not key.strip():
        raise RecipeError(f"--set {change!r} is not of the form section.key=value")
    try:
        value = tomllib.loads(f"value = {raw}")["value"]
    except (ValueError, RecursionError):
        value = raw
    merged = dict(values)
    inner = merged
    *sections, last = key.strip().split(".")
    for section in sections:
        below = inner.get(section, {})
        if not isinstance(below, Mapping):
            raise RecipeError(f"--set {change}: {section!r} is a value, not a section")
        inner[section] = dict(below)
        inner = inner[section]
    inner[last] = value
    return merged


def _explain(error: ValidationError, where: str) -> str:
    """One line per mistake: the key, what is wrong, and the nearest key or what is allowed."""
    lines = []
    for problem in error.errors()[:_TOLD]:
        location = [part for part in problem["loc"] if isinstance(part, str | int)]
        # pydantic names the kind of model behind the section that holds it.
        has_kind = location[:1] == ["model"] and len(location) > 1 and location[1] in KINDS
        written = location[:1] + location[2:] if has_kind else location
        key = _short(".".join(str(part) for part in written))
        if problem["type"] == "extra_forbidden":
            known = sorted(_section(Recipe, location[:-1]))
            near = difflib.get_close_matches(str(location[-1]), known, 1, 0.5)
            hint = f"did you mean {near[0]!r}?" if near else "known are " + ", ".join(known)
            lines.append(f"unknown key {key!r}; {hint}")
        elif problem["type"] == "missing":
            lines.append(f"{key!r} is missing")
        else:
            message = problem["msg"].removeprefix("Value error, ")
            given = problem["input"]
            is_simple = not isinstance(given, dict | list | tuple)
            shown = f" (given: {_short(repr(given))})" if is_simple else ""
            lines.append(f"{key}: {message}{shown}" if key else f"{message}{shown}")
    return f"{where}: " + "\n  ".join(lines)


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _section(model: type[BaseModel], location: Sequence[str | int]) -> list[str]:
    """The field names of the settings at ``location`` within ``model``."""
    for part in location:
        if part in KINDS:
            model = KINDS[str(part)][0]
        if isinstance(part, int) or part not in model.model_fields:
            continue
        found = _settings_in(model.model_fields[part].annotation)
        if found is not None:
            model = found
    return list(model.model_fields)


def _settings_in(annotation: Any) -> type[BaseModel] | None:
    """The settings class inside an annotation such as ``CorpusSettings | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (Union, UnionType, tuple, list):
        for inner in get_args(annotation):
            found = _settings_in(inner)
            if found is not None:
                return found
    return None
