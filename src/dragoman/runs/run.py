"""A run folder: everything about one model, and how it is opened.

    recipe.toml          complete and resolved
    model.safetensors    the weights to use; its metadata say which they are
    shared.model         the vocabulary of both sides, or source.model and target.model
    labels.json          of a classifier, instead of a target vocabulary: all its labels
    tags.txt             of a tagger, instead of a target vocabulary: its tags, and known words
    target.json          of a parser or detector, instead of a target vocabulary: brackets and tags,
                         or labels
    metrics.jsonl        one line per update and per validation
    ways.json            how fast each way of the machine was at this training, if it was measured
    data.json            what preparing the data found: cleaning report, hashes, overlap
    scores.json          what the last evaluation found
    verdict.json         whether it has hardly learned its task, in words
    tuning.json          how it and the run that it tunes score on the new and the old text
    test.jsonl           a copy of the test set, for where the text is not
    learned/             hashes of what it, and the runs it was begun from, learned from
    lexicon.txt          the words of the training sources, and how often each was read
    example.*            of a run that reads files: one that it was validated on
    shortlist.safetensors  which target tokens a source token can lead to, if that was learned
    report.html card.md  for people
    steps/               of a run that learns from the translations of other runs: what it needs
    film/                thin snapshots from update 0 on, if the run has them
                         (training/checkpoint.py)
    training/            resumable state; without it the model still works
    .lock                there, and locked, while a process changes the folder

Opening a run executes nothing from it: TOML, safetensors, SentencePiece, JSON. It needs no torch;
only a model that torch holds does (``model.py``).
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from dragoman.base.errors import RunError
from dragoman.base.task import Side
from dragoman.base.tensor_file import files_by_update, open_tensors
from dragoman.data.files.corpus_settings import CORPUS_FILES
from dragoman.data.length_ratio import LengthRatio
from dragoman.forms.form import Form
from dragoman.forms.languages import shortest_code
from dragoman.forms.lexicon import Lexicon
from dragoman.forms.sides import Forms
from dragoman.forms.subwords.text import Text
from dragoman.forms.text_form import MosesText, TextForm
from dragoman.models.catalogue.packed_models import HeldWeights
from dragoman.models.shortlist import Shortlist
from dragoman.runs.files import Notes, ScoresFile, TuningFile, VerdictFile, read_file, read_metrics
from dragoman.runs.lock import LOCK
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.recipe.spec import Spec
from dragoman.runs.user_cache import cache_folder
from dragoman.sources.file_examples import rows_form

if TYPE_CHECKING:
    from dragoman.models.interface import Network

RECIPE = "recipe.toml"
WEIGHTS = "model.safetensors"
SCORES = "scores.json"
VERDICT = "verdict.json"
TUNING = "tuning.json"
TUNED = "training/tuned.safetensors"
"""The weights that a tuning begins with, if it keeps old text (``data.old``)."""
NOTES = "data.json"
METRICS = "metrics.jsonl"
FILM = "film"
WAYS = "ways.json"
"""The file with the speed of each way of the machine at this training, if it was measured."""
SHORTLIST = "shortlist.safetensors"
LEXICON = "lexicon.txt"
EXAMPLE = "example"
"""The name, without its ending, of a file that a run reads."""
MOST_EXAMPLE = 1 << 20
"""The most bytes of such a file."""
TEST = "test.jsonl"
STEPS = "steps"
"""The folder with what a run that learns from the translations of other runs needs first: these
translations, and runs that were trained for them."""
LENGTHS = "lengths"
"""Among the notes: how long the translations of the training text are."""
LONGEST_WORDS = "longest_words"
"""Among the notes: words that all but one in a thousand of the training sources have at most."""

_LONGEST_WRITTEN = 1000
"""Tokens of a text that a language model writes at once, unless a search says otherwise."""

SEVERAL_SENTENCES = "several_sentences"
"""Among a run's notes: the share of its training sources that have more than one sentence."""


class Run:
    """A run folder, opened. Parts are read when first asked for. ``Run.open`` is of the class in
    ``tasks/catalogue.py``, whose recipes know all tasks."""

    recipes: ClassVar[type[Recipe]] = Recipe

    def __init__(self, folder: Path, recipe: Recipe, weights: str = WEIGHTS) -> None:
        """``weights``: the file in the folder that holds the weights."""
        self.folder = folder
        self.recipe = recipe
        self._weights = weights

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """Errors: ``RunError`` if this is no run folder, or one that is not complete."""
        path = Path(folder)
        if path.is_file():
            is_of_run = (path.parent / RECIPE).is_file()
            hint = f"such as {path.parent}" if is_of_run else "which dragoman train or demo creates"
            raise RunError(f"{path} is a file; a run is a folder, {hint}")
        if not path.is_dir():
            raise RunError(f"there is no run folder {path}. Create one with dragoman train or demo")
        if not (path / RECIPE).is_file():
            raise RunError(f"{path} is not a run folder: it has no {RECIPE}")
        return cls(path, cls.recipes.load(path / RECIPE))

    @property
    def languages(self) -> tuple[str, ...]:
        """The language code of each side that is a text, source before target, as the recipe
        names them."""
        return tuple(getattr(self.recipe.languages, side) for side in self.recipe.spec.texts)

    @property
    def task(self) -> Spec:
        """The task that the model was trained for."""
        return self.recipe.spec

    @property
    def quoted(self) -> str:
        """Its folder, as a shell takes it."""
        return shlex.quote(str(self.folder))

    @property
    def use(self) -> str:
        """A line for a shell that shows how the run is asked."""
        verb, rest = self.task.verbs[0]
        return f"dragoman {verb} {self.quoted} {rest}"

    def open_predictor(self, settings: Any = None, ensemble: Sequence[Run] = ()) -> Any:
        """Ready to be asked, as ``catalogue.Run`` has it: see ``Runtime.open``."""
        raise NotImplementedError

    def predictor(self, settings: Any = None) -> Any:
        """The predictor of its task, as ``catalogue.Run`` has it."""
        raise NotImplementedError

    def require_task(self, name: str, other: str) -> None:
        """Errors: ``RunError`` for a run that is of another task, ``other`` in words, and does
        something else."""
        if name not in (self.task.name, self.task.purpose):
            raise RunError(f"{self.folder} is a {self.task.called}, {other}: {self.use}")

    @property
    def writes_no_text(self) -> str:
        """The message for a run that cannot write text."""
        return f"{self.folder} is a {self.task.called}, which writes no text. To use it: {self.use}"

    @property
    def source_text(self) -> Text:
        """The vocabulary of the source. Errors: as ``source``, or that nothing is read."""
        vocabulary = self.source.vocabulary
        if vocabulary is None:
            raise RunError(f"{self.folder} is a {self.task.called}{self._of}: it reads no text")
        return vocabulary

    @property
    def _of(self) -> str:
        return f" of {self.task.noun}" if self.task.reads_files else ""

    @property
    def target_text(self) -> Text:
        """The vocabulary of the target; the same object where both sides share one. Errors: as
        ``target``, or that no text is written."""
        vocabulary = self.target.vocabulary
        if vocabulary is None:
            raise RunError(self.writes_no_text)
        return vocabulary

    @property
    def source(self) -> Form:
        """The form of the model's input. Errors: ``RunError`` for a vocabulary that is missing or
        damaged; ``DataError`` without sacremoses, where the run needs it."""
        return self.forms.source

    @property
    def target(self) -> Form:
        """The form of the model's output. Errors: as ``source``, or that it writes no text."""
        if self.task.has_head:
            raise RunError(self.writes_no_text)
        return self.forms.target

    @cached_property
    def weights_hash(self) -> str:
        """SHA-256 of the weights file: what derived files are keyed by."""
        return self.held_weights().digest

    def held_weights(self) -> HeldWeights:
        """The weights file as it is now, whatever takes its place. Errors: ``RunError``."""
        return HeldWeights(self._weights_path, cache_folder("packed"))

    def metadata(self) -> dict[str, str]:
        """The texts in the header of the weights file: which weights, of which update."""
        with open_tensors(self._weights_path, "F32") as file:
            return dict(file.metadata)

    @property
    def weights_summary(self) -> str:
        """Which weights the file holds: "last, update 2,400"; "unknown" where it does not say."""
        metadata = self.metadata()
        held = metadata.get("weights", "unknown")
        update = metadata.get("update", "")
        update = f"{int(update):,}" if update.isdecimal() and len(update) < 20 else update
        return f"{held}, update {update}" if update else held

    def model(self, weights: Path | None = None) -> Network:
        """The trained model, in evaluation mode; from another weights file if given.

        Errors: ``RunError`` for missing, truncated or foreign weights.
        """
        from dragoman.runs.model import fill_model, hollow_model

        model = hollow_model(self.recipe, *self.forms)
        path, recipe = weights or self._weights_path, str(self.folder / RECIPE)
        fill_model(model, path, recipe, assign=True, filmed=weights is not None)
        return model.eval()

    def model_of(self, weights: Mapping[str, npt.NDArray[np.float32]]) -> Network:
        """``model`` with weights that ``HeldWeights`` gave, in their memory."""
        import torch

        from dragoman.runs.model import hollow_model

        model = hollow_model(self.recipe, *self.forms)
        tensors = {name: torch.from_numpy(array) for name, array in weights.items()}
        model.load_state_dict(tensors, assign=True)
        return model.eval()

    def require_text(self, *sides: str) -> None:
        """Checks that the files of "train", "dev" or "test" are where the recipe says.

        Errors: ``RunError`` that names the line of the recipe, for a file that is missing.
        """
        data, place = self.recipe.data, self.folder / RECIPE
        prepared = data.prepared
        if prepared is not None and "://" not in prepared and not Path(prepared).is_dir():
            raise RunError(
                f"{data.prepared} does not exist. {place} sets it as data.prepared, relative to "
                "that file. If the prepared text was moved, move it back or correct that line"
            )
        if "train" in sides and not (data.train or data.prepared or data.embedded):
            raise RunError(
                f"{self.folder} does not name its training text (maybe it was imported). Name "
                f'some in {place}: train = [{{ source = "FILE", target = "FILE" }}] below [data]'
            )
        for side in sides:
            if data.prepared is not None and (side == "train" or getattr(data, side) is None):
                continue
            named = {"dev": data.dev, "test": data.test}.get(side)
            held_out = side == "train" or getattr(data.split, side) > 0
            for corpus in (named,) if named else data.train if held_out else ():
                for key in CORPUS_FILES:
                    path = getattr(corpus, key)
                    if path is None or Path(path).exists():
                        continue
                    written = os.path.relpath(path, self.folder.resolve())
                    raise RunError(
                        f"{path} does not exist. {place} sets it under "
                        f'data.{side if named else "train"}, as {key} = "{written}", relative to '
                        "that file. If the run or the text was moved, correct that line, or use "
                        f"dragoman resume {self.quoted} --text FILE"
                    )

    def scores(self) -> dict[str, Any]:
        """The result of the last evaluation, or nothing."""
        return read_file(self.folder / SCORES, ScoresFile)

    def verdict(self) -> list[str]:
        """The sentences of the last report that say that the run has hardly learned its task; empty
        for any other run, or if none were written."""
        said: list[str] = read_file(self.folder / VERDICT, VerdictFile).get("said", [])
        return said

    def tuning(self) -> dict[str, Any]:
        """The scores before and after tuning, or nothing for a run that keeps no old text."""
        return read_file(self.folder / TUNING, TuningFile)

    def notes(self) -> dict[str, Any]:
        """The notes made while the data was prepared, or nothing."""
        return read_file(self.folder / NOTES, Notes)

    def lexicon(self) -> Lexicon | None:
        """The words of its training sources; None where they were not written down (scripts
        without spaces, Moses tokens). Errors: ``RunError`` if damaged."""
        return Lexicon.load(self.folder / LEXICON)

    def length_ratio(self) -> LengthRatio | None:
        """The ratio of lengths of translations and sources in its training text; None if it was not
        written down. Errors: ``RunError`` if damaged."""
        note = self.notes().get(LENGTHS)
        return None if note is None else LengthRatio(note["ratio"], note["least"], note["greatest"])

    def longest_words(self) -> int | None:
        """Words that all but one in a thousand of its training sources have at most; None where
        that was not written down. Errors: ``RunError`` if damaged."""
        words: int | None = self.notes().get(LONGEST_WORDS)
        return words

    def metrics(self) -> Iterator[dict[str, Any]]:
        """Yields the records of training, update by update."""
        return read_metrics(self.folder / METRICS)

    def sources_while_learning(self) -> list[str]:
        """The sources of the samples of the last validation during training."""
        samples: list[dict[str, str]] = []
        for record in self.metrics():
            if record["kind"] == "validation":
                samples = record.get("samples", [])
        return [sample["source"] for sample in samples]

    def example(self) -> Path | None:
        """A file that a run can read, kept in its folder; None if there is none."""
        files = sorted(self.folder.glob(f"{EXAMPLE}.*"))
        return next((path for path in files if path.is_file() and not path.is_symlink()), None)

    @property
    def last_update(self) -> int:
        """The last update in the log of the training; 0 without a log."""
        return max((record["update"] for record in self.metrics()), default=0)

    def film(self) -> list[tuple[int, Path]]:
        """The update and the weights file of each snapshot of its film, for ``model``; the first
        ones first. Empty for a run that has none."""
        return files_by_update(self.folder / FILM)

    def snapshots(self) -> list[tuple[int, Path]]:
        """The update and the weights file of each snapshot that is kept, for ``model``; the first
        ones first."""
        return files_by_update(self.folder / "training" / "snapshots")

    @property
    def written(self) -> int:
        """When its weights were written, in seconds since 1970; 0 for a run that lost them."""
        path = self.folder / self._weights
        return int(path.stat().st_mtime) if path.is_file() else 0

    @property
    def _weights_path(self) -> Path:
        path = self.folder / self._weights
        if not path.is_file():
            raise RunError(
                f"{self.folder} has no {self._weights}: the training has not reached its first "
                "validation, or the file was removed. To continue, or to choose the weights "
                f"again: dragoman resume {self.folder}"
            )
        return path

    @cached_property
    def forms(self) -> Forms:
        """The forms of both sides. Errors: as ``source``."""
        return load_forms(self.recipe, self.folder)

    def with_tag(self, given: str | None) -> Self:
        """Return the run with another tag of a target language (``languages.tag``), which is given
        as it is or by the code of its language; the same run for None. Errors: ``RunError``."""
        if given is None:
            return self
        tag = self.forms.tag_meant(given)
        named = {"tag": tag, "target": shortest_code(tag)}
        run = type(self)(self.folder, self.recipe.override(languages=named))
        run.forms = self.forms.with_tag(tag)
        return run

    @property
    def lacks_tag(self) -> str:
        """The message for a model of several target languages of which none is chosen, or ""."""
        if not self.forms.tags or self.source.before:
            return ""
        first = self.forms.tags[0]
        return (
            f"{self.folder} translates into several languages: {self.forms.tags_shown}. Choose one "
            f'with --tag {first}, or write tag = "{first}" below [languages] in its {RECIPE}'
        )


def refuse_run(folder: Path) -> None:
    """Errors: ``RunError`` if there is a run in the folder already, or it is a file."""
    if (folder / RECIPE).exists():
        raise RunError(
            f"{folder} is already a run. Resume it with dragoman resume {folder}, or set another "
            "folder with --to FOLDER"
        )
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder} is a file. Set a folder with --to FOLDER")


def refuse_occupied(folder: Path) -> None:
    """Errors: as ``refuse_run``, and ``RunError`` for a folder with other things in it. What a
    process that was killed has left of a run that it began is none."""
    refuse_run(folder)
    if not folder.is_dir() or (folder / LOCK).exists():
        return
    others = (path for path in folder.iterdir() if path.name != STEPS)
    if (other := next(others, None)) is not None:
        raise RunError(
            f"{folder} is not a run and contains other files, such as {other.name}. Set an empty "
            "folder with --to FOLDER"
        )


def load_shortlist(run: Run) -> Shortlist:
    """The shortlist that was learned for the weights of ``run``.

    Errors: ``RunError`` if there is none, or only one for other weights.
    """
    path = run.folder / SHORTLIST
    target = run.target_text
    learned = Shortlist.load(path, run.weights_hash, run.source_text.size, target.size, target.eos)
    if learned is None:
        what = "is for other weights" if path.exists() else "does not exist"
        raise RunError(f"{path} {what}. Learn one with: dragoman shortlist {run.folder}")
    return learned


def vocabulary_name(recipe: Recipe, side: str) -> str:
    """The file of the vocabulary of ``side``, "source" or "target"."""
    shared = recipe.text.shared and len(recipe.spec.texts) > 1
    return "shared.model" if shared else f"{side}.model"


def load_forms(recipe: Recipe, folder: Path, *, prepared: bool = False) -> Forms:
    """The forms of a recipe, whose vocabularies are in ``folder``.

    ``prepared``: of text that Moses has prepared already, where the recipe says so.
    Errors: ``RunError`` for a vocabulary that is missing or damaged.
    """

    def form(vocabulary: Text, language: str) -> TextForm:
        moses = MosesText(language) if recipe.data.moses and not prepared else None
        return TextForm(vocabulary, language, moses)

    by_name: dict[str, Text] = {}
    for side in recipe.spec.texts:
        name = vocabulary_name(recipe, side)
        if name not in by_name:
            by_name[name] = Text.load(folder / name)
    known: dict[Side, Form] = {
        side: form(by_name[vocabulary_name(recipe, side)], getattr(recipe.languages, side))
        for side in recipe.spec.texts
    }
    if (written := known.get("target")) is not None and written.vocabulary is not None:
        tags = [corpus.tag for corpus in recipe.data.train if corpus.tag]
        written.forbidden = (*written.forbidden, *written.vocabulary.symbols_of(tags))
    if (rows := rows_form(recipe.source)) is not None:
        known["source"] = rows
    # What is written at once is what the model reads at once, and no book.
    longest = min(recipe.evaluation.window or recipe.plan.context, _LONGEST_WRITTEN)
    forms = recipe.spec.forms(known, folder, longest)
    tag = recipe.languages.tag
    return forms if tag is None else forms.with_tag(forms.tag_meant(tag))
