"""What every task says of itself without torch, each in its ``tasks/NAME/spec.py``.

A task says which sections a recipe of it has, what it refuses in them, what both sides of an
example are made of, and what of the demo's corpora is an example. What needs a model stands in
``tasks/NAME/runtime.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from dragoman.base.task import Side, Task
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.forms.form import Form, Pair
from dragoman.forms.languages import base
from dragoman.forms.sides import Forms
from dragoman.models.settings import KINDS, EncoderSettings, TransformerSettings
from dragoman.recipe.demo import fingerprint_of_pairs, pairs_of_demo
from dragoman.recipe.sections import Sections
from dragoman.search.settings import SearchSettings
from dragoman.sources.shared.rows_form import input_of
from dragoman.sources.shared.settings import RowsSource, SourceSettings

if TYPE_CHECKING:
    from dragoman.models.interface import Network
    from dragoman.models.settings import ModelSettings

ABLE = {
    (True, True): "reads a source and writes",
    (False, True): "writes and reads nothing",
    (True, False): "reads and writes nothing",
    (False, False): "turns pictures into codes and back",
}
"""What a model or a task does, by whether it reads and whether it writes."""

Examples = Callable[[], Iterator[tuple[str, Pair]]]
"""The training examples, each with the name of its corpus; read anew at each call."""


@dataclass(frozen=True)
class Spec(Task):
    """A task without torch. Methods that raise ``ValueError`` are called while a recipe is checked,
    and their message becomes the recipe's."""

    sections: ClassVar[frozenset[str]] = frozenset()
    """The sections of a recipe that not every task has: ``OPTIONAL`` of ``recipe/recipe.py``."""
    demo: ClassVar[str] = "demo"
    """The corpus that the program generates for it (``data.embedded``)."""
    never_generated: ClassVar[str] = ""
    """What examples are made of, where the program generates no such corpus."""
    target_file: ClassVar[str | None] = None
    """Where the form of a target that is no text lies in a run folder."""
    keeps_order: ClassVar[bool] = False
    """Whether outputs keep the order of the words that were read (``model.next_word``)."""
    fixed_tokens: ClassVar[bool] = False
    """Whether a text is cut into the same tokens each time (``text.sampling`` = 0)."""
    reads_rows: ClassVar[bool] = False
    """Whether what is read may be rows: frames of sound, patches of pictures."""
    search_rules: ClassVar[str] = ""
    """The rules of outputs that a search with lengths and forbidden n-grams could break."""
    overlaps_by_source: ClassVar[bool] = False
    """Whether dev and test are looked for in training by what is read alone."""
    has_head: ClassVar[bool] = False
    """Whether its model is one stack that reads, with a head over it that chooses among labels."""

    def of(self, source: SourceSettings) -> Self:
        """The task with such a source: what is read of recordings and pictures is no text."""
        return source.of_task(self)

    # --- checks of a recipe -----------------------------------------------------------------------

    def check(self, recipe: Sections) -> None:
        """Whether the sections of a recipe fit the task and each other. Errors: ``ValueError``."""
        data, guided = recipe.data, recipe.training.guided
        if self.never_generated and data.embedded is not None:
            raise ValueError(
                f"the program generates no {self.never_generated}: name files in data.train"
            )
        self.check_source(recipe)
        for corpus in (*data.train, *filter(None, (data.dev, data.test))):
            self.check_corpus(corpus)
        if data.embedded not in (None, self.demo):
            raise ValueError(
                f'data.embedded = "{data.embedded}" is no corpus for a {self.called}: '
                f'"{self.demo}" is'
            )
        self.check_model(recipe)
        if guided.weight:
            if len(self.sides) == 1:
                raise ValueError(
                    "training.guided teaches a head to align source and target, and a "
                    f"{self.called} has no source: set training.guided.weight = 0"
                )
            guided.place(recipe.model.cross_heads)
        if data.moses and any(corpus.links for corpus in data.train):
            raise ValueError(
                "links count words of the text as it stands, and data.moses cuts it into others: "
                "leave them out, and they are learned"
            )
        if recipe.training.ctc_weight and not (recipe.source.allows_ctc and self.writes):
            raise ValueError(
                "training.ctc_weight is for recordings and lines of text (task translation, "
                'source.kind = "frames" or "line"): leave it out'
            )
        if data.synthetic_voices:
            self.check_voices(recipe)
        if recipe.search.ctc_weight and not recipe.training.ctc_weight:
            raise ValueError(
                "search.ctc_weight is for models that were trained with CTC: set "
                "training.ctc_weight = 0.3 as well, or leave it out"
            )
        varied_by = recipe.source.varied_by
        if recipe.training.spec_augment.is_on and "spec_augment" not in varied_by:
            raise ValueError(
                "training.spec_augment hides parts of recordings, and "
                f'source.kind = "{recipe.source.kind}" reads none: leave it out'
            )
        if recipe.training.picture_augment.is_on and "picture_augment" not in varied_by:
            raise ValueError(
                "training.picture_augment varies pictures, and "
                f'source.kind = "{recipe.source.kind}" reads none: leave it out'
            )
        if recipe.training.picture_augment.mixup and self.name != "classification":
            raise ValueError(
                "training.picture_augment.mixup mixes labels with their pictures, and a "
                f"{self.called} has none: leave it out"
            )
        if recipe.training.spec_augment.band_masks and not recipe.source.has_bands:
            raise ValueError(
                "training.spec_augment.band_masks hides bands, and cepstral coefficients are none: "
                "set it to 0, and mask time alone"
            )
        if recipe.training.ctc_weight and recipe.model.kind == "convolutional":
            raise ValueError(
                "training.ctc_weight says of each row of the encoder what is spoken there, and a "
                'convolutional encoder makes keys and values: choose model.kind = "transformer" or '
                '"recurrent"'
            )
        self.check_search(recipe.search)
        self.check_rest(recipe)
        self.check_vocabularies(recipe)

    def check_voices(self, recipe: Sections) -> None:
        """Whether synthetic voices can speak what is written. Errors: ``ValueError``."""
        if not ("synthetic_voices" in recipe.source.varied_by and self.writes):
            raise ValueError(
                "data.synthetic_voices is for transcriptions (task translation, source.kind = "
                '"frames"): leave it out'
            )
        source, target = recipe.languages.source, recipe.languages.target
        known = {base(one) for one in (source, target)} - {"und"}
        if len(known) > 1:
            raise ValueError(
                f"data.synthetic_voices speaks what is written, which is {target!r} here, and "
                f"recordings are in {source!r}: leave it out"
            )

    def check_source(self, recipe: Sections) -> None:
        """Whether task, model and corpora go with what is read. Errors: ``ValueError``."""
        source, data, kind = recipe.source, recipe.data, f'source.kind = "{recipe.source.kind}"'
        corpora = (*data.train, *filter(None, (data.dev, data.test)))
        for corpus in corpora:
            source.check_corpus(corpus.name, corpus.holds, names_files=corpus.names_files)
        self.check_patches(recipe)
        if not isinstance(source, RowsSource):
            return
        if not self.reads_rows:
            raise ValueError(f"{kind} is no text, and a {self.called} needs one: leave it out")
        if not recipe.model.reads:
            raise ValueError(
                f'{kind} needs a model that reads a source, and model.kind = "{recipe.model.kind}" '
                "goes over tokens alone: choose encoder"
            )
        if recipe.model.shares_vocabulary:
            raise ValueError(
                f'{kind} has no tokens to share a matrix with: set model.tie = "target" or "none"'
            )
        of_text = {
            "data.embedded": data.embedded, "data.moses": data.moses,
            "training.guided": recipe.training.guided.weight,
        }  # fmt: skip
        for name, is_set in of_text.items():
            if is_set:
                raise ValueError(f"{name} is for text, and {kind} is none: leave it out")

    def check_patches(self, recipe: Sections) -> None:
        """Whether what an encoder has for the patches of a picture goes with what is read. Errors:
        ``ValueError``."""
        model, source = recipe.model, recipe.source
        if not isinstance(model, EncoderSettings):
            return
        is_grid = model.positions.kind == "sinusoidal-2d"
        if not source.patches:
            for name, is_set in (
                ("model.class_token = true", model.class_token),
                ('model.positions.kind = "sinusoidal-2d"', is_grid),
            ):
                if is_set:
                    raise ValueError(
                        f'{name} is for the patches of pictures, and source.kind = "{source.kind}" '
                        "has none: leave it out"
                    )
        elif model.class_token and (model.longest or source.patches) < source.patches:
            raise ValueError(
                f"model.positions.maximum = {model.positions.maximum}: a picture has "
                f"{source.patches} patches, and the class token needs a position too: set it to "
                f"{source.patches + 1}"
            )

    def check_corpus(self, corpus: CorpusSettings) -> None:
        """Whether a corpus has the sides of the task's examples. Errors: ``ValueError``."""
        if corpus.is_alone != (len(self.sides) == 1):
            alone = "text, documents or file"
            raise ValueError(
                f"{corpus.name}: a {self.called} learns from texts alone: format = {alone}"
                if len(self.sides) == 1
                else f"{corpus.name}: a {self.called} has two sides; format {corpus.format} "
                f"has one, as {alone} have"
            )
        self.check_format(corpus)
        if corpus.links is not None and not self.translates:
            raise ValueError(
                f"{corpus.name}: links ({corpus.links}) lead from words to those of their "
                f"translation, and a {self.called} has none: leave links out{self.instead_of_links}"
            )

    only_format: ClassVar[tuple[str, str]] = ("", "")
    """The format that its corpora have, and what stands in it; nothing where there are several."""
    instead_of_links: ClassVar[str] = ""
    """What to add where links are refused."""

    def check_format(self, corpus: CorpusSettings) -> None:
        """Whether the task can use the format of a corpus. Errors: ``ValueError``."""
        only, holds = self.only_format
        if only and corpus.format != only:
            raise ValueError(f"{corpus.name}: a {self.called} learns from {holds}: format = {only}")
        if corpus.task not in (None, self.name):
            raise ValueError(
                f"{corpus.name}: format {corpus.format} is for {corpus.task}, and this is a "
                f"{self.called}"
            )

    def check_model(self, recipe: Sections) -> None:
        """Whether the task can use a model of that kind. Errors: ``ValueError``."""
        asked, model = (self.reads, self.writes), recipe.model
        if (model.reads, model.writes) != asked:
            kinds = [kind for kind, one in KINDS.items() if (one.reads, one.writes) == asked]
            raise ValueError(
                f'model.kind = "{model.kind}" {ABLE[model.reads, model.writes]}, and a '
                f"{self.called} asks for a model that {ABLE[asked]}: choose one of "
                f"{', '.join(kinds)}"
            )
        self.check_next_word(model)

    def check_next_word(self, model: ModelSettings) -> None:
        """Errors: ``ValueError`` where a decoder is told a next word that outputs do not have."""
        if isinstance(model, TransformerSettings) and model.next_word and not self.keeps_order:
            raise ValueError(
                "model.next_word is for outputs that keep the order of the words that were read, "
                f"and a {self.called} writes others: leave it out"
            )

    def check_search(self, search: SearchSettings) -> None:
        """Whether the task's outputs allow such a search. Errors: ``ValueError``."""
        if self.search_rules and (search.min_length or search.no_repeat_ngram):
            raise ValueError(
                f"{self.search_rules}, and search.min_length and search.no_repeat_ngram could "
                "leave nothing to write: set both to 0"
            )

    def check_rest(self, recipe: Sections) -> None:
        """What else the task refuses. Errors: ``ValueError``."""

    def check_vocabularies(self, recipe: Sections) -> None:
        """Whether vocabularies are shared where a matrix is. Errors: ``ValueError``."""
        if not recipe.text.shared and recipe.model.shares_vocabulary:
            raise ValueError(
                "two vocabularies cannot share one matrix: with text.shared = false, set "
                'model.tie = "target" or "none"'
            )

    # --- what examples are made of ----------------------------------------------------------------

    def forms(self, given: Mapping[Side, Form], folder: Path, longest: int) -> Forms:
        """The forms of both sides, for those of the sides that are texts or rows. ``folder``: where
        a ``target_file`` is; ``longest``: the most tokens that are written at once where nothing is
        read. Errors: ``RunError`` for a file that is missing or damaged."""
        return Forms(given["source"], given["target"])

    def learn_target(self, recipe: Sections, examples: Examples, folder: Path) -> list[str]:
        """Learn the form of a target that is no text, and save it -> what to tell people.
        Errors: ``DataError`` for examples of which nothing can be learned."""
        return []

    def check_target(self, recipe: Sections, examples: Examples, learned: Forms, run: Path) -> None:
        """Whether a run with the forms ``learned`` can go on with other examples, by a recipe.
        Errors: ``DataError`` naming the first line that it cannot."""

    def check_held(
        self, recipe: Sections, held: Mapping[str, Sequence[Pair]], learned: Forms
    ) -> list[str]:
        """What to tell people about the examples of "dev" and "test", before the training.
        Errors: ``DataError`` for a set on which nothing could be measured."""
        return []

    def as_learned(self, pair: Pair) -> Pair:
        """An example as runs keep in mind that they have learned from it."""
        return pair

    def for_overlap(self, pair: Pair) -> Pair:
        """What of an example counts when dev and test are looked for in training."""
        return Pair(pair.line, "", pair.source, pair.whole) if self.overlaps_by_source else pair

    def embedded_pairs(self, recipe: Sections, part: str) -> Iterator[Pair]:
        """One part ("train", "dev" or "test") of the demo's corpus."""
        return pairs_of_demo(part)

    def all_embedded_pairs(self) -> Iterable[Pair]:
        """All parts of the demo's corpus, one behind the other, with both sides."""
        return pairs_of_demo("train", "dev", "test")

    def embedded_fingerprint(self) -> str:
        """The fingerprint of the demo's training corpus."""
        return fingerprint_of_pairs()

    # --- models -----------------------------------------------------------------------------------

    def new_network(self, settings: ModelSettings, forms: Forms) -> Network:
        """A network with fresh weights, drawn from torch's generator."""
        from dragoman.models.catalogue.networks import new_network

        return new_network(settings, input_of(forms.source), forms.target.size)
