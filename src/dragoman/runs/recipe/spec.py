"""The base class of the specifications of tasks, without torch. Each task has its own in
``tasks/NAME/runtime.py``.

A task specifies the sections of its recipe, the settings that it refuses, the forms of both
sides of an example, and its examples in the demo's corpora. The code that needs a model is in
the same folder.

Several tasks share two subclasses. ``WithHead`` is for models that read with one stack of layers
and choose labels with a head; ``OneText`` is for examples that are single texts, read in windows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from dragoman.base.errors import DataError
from dragoman.base.task import Side, Task
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.data.store_writer import store_key
from dragoman.forms.form import Form, Pair
from dragoman.forms.labels import Labels
from dragoman.forms.languages import base
from dragoman.forms.sides import Forms
from dragoman.models.settings import KINDS, EncoderSettings, ModelSettings
from dragoman.runs.recipe.sections import Sections
from dragoman.search.settings import SearchSettings
from dragoman.sources.shared.rows import RowsSource, SourceSettings, input_of

if TYPE_CHECKING:
    from dragoman.models.interface import Network

ABLE = {
    (True, True): "reads a source and writes",
    (False, True): "writes and reads nothing",
    (True, False): "reads and writes nothing",
    (False, False): "turns pictures into codes and back",
}
"""The abilities of a model or a task, by whether it reads and whether it writes."""

Examples = Callable[[], Iterator[tuple[str, Pair]]]
"""A function that reads the training examples again at each call, each with the name of its
corpus."""


@dataclass(frozen=True)
class Spec(Task):
    """A task without torch. Methods that raise ``ValueError`` are called while a recipe is
    checked, and their message becomes the recipe's."""

    sections: ClassVar[frozenset[str]] = frozenset()
    """The sections of its recipe that only some tasks have: ``OPTIONAL`` of
    ``runs/recipe/recipe.py``."""
    demo: ClassVar[str] = "demo"
    """The corpus that the program generates for it (``data.embedded``)."""
    never_generated: ClassVar[str] = ""
    """The name of its examples, if the program generates no corpus of them."""
    target_file: ClassVar[str | None] = None
    """The file of a run folder with the form of a target that is no text."""
    keeps_order: ClassVar[bool] = False
    """True if outputs keep the order of the words that are read (``model.next_word``)."""
    fixed_tokens: ClassVar[bool] = False
    """True if a text is always cut into the same tokens (``text.sampling`` = 0)."""
    fixed_words: ClassVar[bool] = False
    """True if words are learned from unchanged (``data.moses`` = false)."""
    fixed_pictures: ClassVar[bool] = False
    """True if pictures are learned from unchanged (``training.picture_augment``)."""
    mixes_labels: ClassVar[bool] = False
    """True if examples may be mixed with their labels (``training.picture_augment.mixup``)."""
    reads_rows: ClassVar[bool] = False
    """True if the source may be rows: frames of sound, patches of pictures."""
    search_rules: ClassVar[str] = ""
    """The rules of outputs that a search with lengths and forbidden n-grams could break."""
    overlaps_by_source: ClassVar[bool] = False
    """True if the overlap of dev and test with training is found from the source alone."""
    has_head: ClassVar[bool] = False
    """True if its model is one stack that reads, with a head that chooses among labels."""

    def of(self, source: SourceSettings) -> Self:
        """Return the task with such a source; recordings and pictures are not read as text."""
        return source.of_task(self)

    # --- checks of a recipe -----------------------------------------------------------------------

    def check(self, recipe: Sections) -> None:
        """Check that the sections of a recipe fit the task and each other. Errors:
        ``ValueError``."""
        data, guided = recipe.data, recipe.training.guided
        if self.never_generated and data.embedded is not None:
            raise ValueError(
                f"the program cannot generate {self.never_generated}. Set files in data.train"
            )
        self.check_source(recipe)
        for corpus in data.corpora:
            self.check_corpus(corpus)
        if data.embedded not in (None, self.demo):
            raise ValueError(
                f'data.embedded = "{data.embedded}" is not a corpus for a {self.called}; use '
                f'"{self.demo}"'
            )
        self.check_model(recipe)
        self.check_fit(recipe)
        if guided.weight:
            guided.place(recipe.model.cross_heads)
        if data.moses and any(corpus.links for corpus in data.train):
            raise ValueError(
                "links count words of the original text, but data.moses splits it into other "
                "words. Leave the links out; they are then learned"
            )
        if data.synthetic_voices:
            check_voices(recipe)
        self.check_search(recipe.search)
        self.check_rest(recipe)
        self.check_vocabularies(recipe)

    def check_fit(self, recipe: Sections) -> None:
        """Check that the active settings fit the task, the source and the model. Errors:
        ``ValueError``."""
        for name, fits, why in _FITS:
            value: Any = recipe
            for part in name.split("."):
                value = getattr(value, part, None)
            if getattr(value, "is_on", value) and not fits(self, recipe):
                kind = f'source.kind = "{recipe.source.kind}"'
                raise ValueError(f"{name} {why.format(kind=kind, called=self.called)}")

    def check_source(self, recipe: Sections) -> None:
        """Check that task, model and corpora fit the source. Errors: ``ValueError``."""
        source, kind = recipe.source, f'source.kind = "{recipe.source.kind}"'
        for corpus in recipe.data.corpora:
            source.check_corpus(corpus.name, corpus.holds, names_files=corpus.names_files)
        self.check_patches(recipe)
        if not isinstance(source, RowsSource):
            return
        if not self.reads_rows:
            raise ValueError(f"{kind} is not text, which a {self.called} needs. Leave it out")
        if not recipe.model.reads:
            raise ValueError(
                f"{kind} needs a model that reads a source, but model.kind = "
                f'"{recipe.model.kind}" reads only tokens. Set model.kind = "encoder"'
            )
        if recipe.model.shares_vocabulary:
            raise ValueError(
                f'{kind} has no tokens to share a matrix with: set model.tie = "target" or "none"'
            )

    def check_patches(self, recipe: Sections) -> None:
        """Check that the encoder's settings for patches fit the source. Errors: ``ValueError``."""
        model, source = recipe.model, recipe.source
        if not isinstance(model, EncoderSettings):
            return
        if not source.patches and model.positions.kind == "sinusoidal-2d":
            raise ValueError(
                'model.positions.kind = "sinusoidal-2d" is for the patches of pictures, but '
                f'source.kind = "{source.kind}" has none: leave it out'
            )
        longest = model.longest or source.patches
        if source.patches and model.class_token and longest < source.patches:
            raise ValueError(
                f"model.positions.maximum = {model.positions.maximum}: a picture has "
                f"{source.patches} patches, and the class token needs a position too. Set it to "
                f"{source.patches + 1}"
            )

    def check_corpus(self, corpus: CorpusSettings) -> None:
        """Check that a corpus has the sides of the task's examples. Errors: ``ValueError``."""
        if (corpus.layout.by is not None) != (len(self.sides) == 1):
            alone = "text, documents or file"
            raise ValueError(
                f"{corpus.name}: a {self.called} learns only from texts. Set format = {alone}"
                if len(self.sides) == 1
                else f"{corpus.name}: a {self.called} has two sides; format {corpus.format} "
                f"has one, as {alone} have"
            )
        self.check_format(corpus)
        if corpus.links is not None and not self.translates:
            raise ValueError(
                f"{corpus.name}: links ({corpus.links}) align words with those of a translation, "
                f"which a {self.called} does not have. Leave links out{self.instead_of_links}"
            )

    only_format: ClassVar[tuple[str, str]] = ("", "")
    """The only format of its corpora, and its content; empty if there are several."""
    instead_of_links: ClassVar[str] = ""
    """The advice that is added where links are refused."""

    def check_format(self, corpus: CorpusSettings) -> None:
        """Check that the task can use the format of a corpus. Errors: ``ValueError``."""
        only, holds = self.only_format
        if only and corpus.format != only:
            raise ValueError(f"{corpus.name}: a {self.called} needs {holds}. Set format {only}")
        if corpus.layout.task not in (None, self.name):
            raise ValueError(
                f"{corpus.name}: format {corpus.format} is for {corpus.layout.task}, not for a "
                f"{self.called}"
            )

    def check_model(self, recipe: Sections) -> None:
        """Check that the task can use a model of that kind. Errors: ``ValueError``."""
        asked, model = (self.reads, self.writes), recipe.model
        if (model.reads, model.writes) != asked:
            kinds = [kind for kind, about in KINDS.items() if (about.reads, about.writes) == asked]
            raise ValueError(
                f'model.kind = "{model.kind}" {ABLE[model.reads, model.writes]}, but a '
                f"{self.called} needs a model that {ABLE[asked]}: choose one of {', '.join(kinds)}"
            )

    def check_search(self, search: SearchSettings) -> None:
        """Check that the task's outputs allow such a search. Errors: ``ValueError``."""
        if self.search_rules and (search.min_length or search.no_repeat_ngram):
            raise ValueError(
                f"{self.search_rules}, and search.min_length and search.no_repeat_ngram could "
                "leave nothing to write: set both to 0"
            )

    def check_rest(self, recipe: Sections) -> None:
        """Check the other conditions of the task. Errors: ``ValueError``."""

    def check_vocabularies(self, recipe: Sections) -> None:
        """Check that vocabularies are shared if a matrix is. Errors: ``ValueError``."""
        if not recipe.text.shared and recipe.model.shares_vocabulary:
            raise ValueError(
                "with text.shared = false, two vocabularies cannot share one matrix: set "
                'model.tie = "target" or "none"'
            )

    # --- what examples are made of ----------------------------------------------------------------

    def forms(self, given: Mapping[Side, Form], folder: Path, longest: int) -> Forms:
        """Return the forms of both sides, from those of the sides that are texts or rows.
        ``folder``: the folder of ``target_file``; ``longest``: the most tokens of an output
        without a source. Errors: ``RunError`` for a file that is missing or damaged."""
        return Forms(given["source"], given["target"])

    def learn_target(self, recipe: Sections, examples: Examples, folder: Path) -> list[str]:
        """Learn and save the form of a target that is no text; return messages for people.

        Errors: ``DataError`` for examples that nothing can be learned from.
        """
        return []

    def check_target(self, recipe: Sections, examples: Examples, learned: Forms, run: Path) -> None:
        """Check that a run with the forms ``learned`` can continue with other examples, by a
        recipe.

        Errors: ``DataError`` with the first line that it cannot use.
        """

    def check_held(
        self, recipe: Sections, held: Mapping[str, Sequence[Pair]], learned: Forms
    ) -> list[str]:
        """Return messages for people about the examples of "dev" and "test", before the
        training.

        Errors: ``DataError`` for a set on which nothing could be measured.
        """
        return []

    def as_learned(self, pair: Pair) -> Pair:
        """Return an example in the form in which runs remember their training examples."""
        return pair

    def for_overlap(self, pair: Pair) -> Pair:
        """Return the part of an example that is compared when dev and test are looked for in
        training."""
        return Pair(pair.line, "", pair.source, pair.whole) if self.overlaps_by_source else pair

    def embedded_pairs(self, recipe: Sections, part: str) -> Iterator[Pair]:
        """Yield one part ("train", "dev" or "test") of the demo's corpus."""
        return pairs_of_demo(part)

    def all_embedded_pairs(self) -> Iterable[Pair]:
        """Return all parts of the demo's corpus in a row, with both sides."""
        return pairs_of_demo("train", "dev", "test")

    def embedded_fingerprint(self) -> str:
        """Return the fingerprint of the demo's training corpus."""
        pairs = [(pair.source, pair.target) for pair in pairs_of_demo("train")]
        return store_key(json.dumps(pairs))

    # --- models -----------------------------------------------------------------------------------

    def new_network(self, settings: ModelSettings, forms: Forms) -> Network:
        """Return a network with fresh weights, drawn from torch's generator."""
        from dragoman.models.catalogue.networks import new_network

        return new_network(settings, input_of(forms.source), forms.target.size)


def check_voices(recipe: Sections) -> None:
    """Check that synthetic voices can speak the text that is written. Errors: ``ValueError``."""
    source, target = recipe.languages.source, recipe.languages.target
    if len({base(code) for code in (source, target)} - {"und"}) > 1:
        raise ValueError(
            f"data.synthetic_voices speaks what is written, which is {target!r} here, and "
            f"recordings are in {source!r}. Leave it out"
        )


def pairs_of_demo(*parts: str) -> Iterator[Pair]:
    """Return the demo's sentences with their translations."""
    from dragoman.demo.corpus import demo_corpus

    corpus = demo_corpus()
    every = (pair for part in parts for pair in getattr(corpus, part))
    return (Pair(line, pair.source, pair.target) for line, pair in enumerate(every, 1))


_Fits = Callable[[Spec, Sections], bool]
_FOR_TEXT = "is for text, not {kind}: leave it out"
_FOR_SPEECH = 'is for transcriptions (task translation, source.kind = "frames"): leave it out'


def _reads_text(task: Spec, recipe: Sections) -> bool:
    return not task.reads_files


def _varies_by(name: str) -> _Fits:
    """Return a check that the settings of that name can vary the source."""
    return lambda task, recipe: name in recipe.source.varied_by


_FITS: tuple[tuple[str, _Fits, str], ...] = (
    ("data.embedded", _reads_text, _FOR_TEXT),
    ("data.moses", _reads_text, _FOR_TEXT),
    ("data.moses", lambda task, recipe: not task.fixed_words, (
        "splits words, which a {called} must not do: leave it out"
    )),
    ("data.synthetic_voices", _varies_by("synthetic_voices"), _FOR_SPEECH),
    ("data.synthetic_voices", lambda task, recipe: task.writes, _FOR_SPEECH),
    ("text.sampling", lambda task, recipe: not task.fixed_tokens, (
        "splits a text differently each time, but a {called} learns from fixed tokens: set "
        "text.sampling = 0"
    )),
    ("model.next_word", lambda task, recipe: task.keeps_order, (
        "is for outputs in the order of the source words, not for a {called}: leave it out"
    )),
    ("model.class_token", lambda task, recipe: bool(recipe.source.patches), (
        "is for the patches of pictures, not {kind}: leave it out"
    )),
    ("training.guided.weight", _reads_text, _FOR_TEXT),
    ("training.guided.weight", lambda task, recipe: len(task.sides) > 1, (
        "teaches a head to align source and target, but a {called} has no source: set "
        "training.guided.weight = 0"
    )),
    ("training.ctc_weight", lambda task, recipe: recipe.source.allows_ctc and task.writes, (
        'is for recordings and lines of text (task translation, source.kind = "frames" or '
        '"line"): leave it out'
    )),
    ("training.ctc_weight", lambda task, recipe: recipe.model.kind != "convolutional", (
        "needs the rows of an encoder, but a convolutional encoder has keys and values: set "
        'model.kind = "transformer" or "recurrent"'
    )),
    ("data.teachers", lambda task, recipe: task.name == "translation", (
        "are for translators, not for a {called}: leave them out"
    )),
    ("training.consistency", lambda task, recipe: task.name == "translation", (
        "is for translators, not for a {called}: set training.consistency = 0"
    )),
    ("training.consistency", lambda task, recipe: not recipe.data.teachers, (
        "works without teachers (data.teachers): set training.consistency = 0"
    )),
    *((name, lambda task, recipe: not (
        recipe.training.ctc_weight or recipe.training.guided.weight
    ), "works without training.ctc_weight and training.guided.weight: set both to 0")
        for name in ("data.teachers", "training.consistency")),
    ("training.noise", lambda task, recipe: task.name == "translation" and not task.reads_files, (
        "is for translators of text, not for a {called} of {kind}: leave it out"
    )),
    ("training.noise", lambda task, recipe: not recipe.training.guided.weight, (
        "changes the words that training.guided aligns: set training.guided.weight = 0"
    )),
    ("training.spec_augment", _varies_by("spec_augment"), (
        "hides parts of recordings, not of {kind}: leave it out"
    )),
    ("training.spec_augment.band_masks", lambda task, recipe: recipe.source.has_bands, (
        "hides bands, which cepstral coefficients do not have: set it to 0, and mask only time"
    )),
    ("training.picture_augment", _varies_by("picture_augment"), (
        "varies pictures, not {kind}: leave it out"
    )),
    ("training.picture_augment", lambda task, recipe: not task.fixed_pictures, (
        "varies pictures, but a {called} must learn from unchanged pictures: leave it out"
    )),
    ("training.picture_augment.mixup", lambda task, recipe: task.mixes_labels, (
        "mixes labels with their pictures, but a {called} has no labels: leave it out"
    )),
    ("search.ctc_weight", lambda task, recipe: bool(recipe.training.ctc_weight), (
        "works only with CTC: set training.ctc_weight = 0.3 too, or leave it out"
    )),
)  # fmt: skip
"""The settings that only some recipes may have: the condition, and the reason for a refusal, in
which ``{kind}`` is the kind of source and ``{called}`` a run of the task."""


@dataclass(frozen=True)
class WithHead(Spec):
    """A task that reads a text and chooses a label for it, or for each of its words."""

    has_head: ClassVar[bool] = True
    overlaps_by_source: ClassVar[bool] = True

    def check_model(self, recipe: Sections) -> None:
        stacks = [kind for kind, known in KINDS.items() if known.reads != known.writes]
        if recipe.model.kind not in stacks:
            raise ValueError(
                f'model.kind = "{recipe.model.kind}" reads one text and writes another, which a '
                f"{self.called} does not. Choose one of {', '.join(stacks)}"
            )

    def check_known(self, labels: Labels, label: str, line: str, run: Path, noun: str) -> None:
        """Raise ``DataError`` for a label, called ``noun``, that a run has not learned."""
        if labels.value(label) is None:
            raise DataError(
                f"{line}: {label[:60]!r} is not a {noun} of {run}, which has {labels.summary()}. "
                f"To start from its weights with your own {noun}s, use --init-part encoder or "
                "--init-part decoder, whichever its model is"
            )


@dataclass(frozen=True, kw_only=True)
class OneText(Spec):
    """A task whose examples are single texts."""

    sides: tuple[Side, ...] = ("target",)
    texts: tuple[Side, ...] = ("target",)
    noun: str = "texts"
    fixed_tokens: ClassVar[bool] = True

    def check_rest(self, recipe: Sections) -> None:
        context, window = recipe.plan.context, recipe.evaluation.window or recipe.plan.context
        if (recipe.evaluation.stride or 1) > window:
            raise ValueError(
                f"evaluation.stride {recipe.evaluation.stride} is greater than the window of "
                f"{window} tokens (evaluation.window, plan.context)"
            )
        longest = recipe.model.longest
        if longest is not None and max(context, window) > longest:
            raise ValueError(
                f"windows of {max(context, window)} tokens (plan.context, evaluation.window) are "
                f"longer than the model's {longest} positions. Raise model.positions.maximum"
            )

    def embedded_pairs(self, recipe: Sections, part: str) -> Iterator[Pair]:
        return texts_of_demo(part, recipe.languages.target)


def texts_of_demo(part: str, language: str) -> Iterator[Pair]:
    """Return the demo's sentences without translations: English, or else German."""
    from dragoman.demo.corpus import demo_corpus

    corpus = demo_corpus()
    of = "source" if language == "en" else "target"
    # Two English sentences may have the same German translation, and the reverse; sentences that
    # are held out must not be trained on.
    trained = {getattr(pair, of) for pair in corpus.train} if part != "train" else set()
    texts = ((line, getattr(pair, of)) for line, pair in enumerate(getattr(corpus, part), 1))
    return (Pair(line, "", text) for line, text in texts if text not in trained)
