"""The sections of a recipe: those of its components, each defined next to the component, and
those of none, which are languages, data, painting and evaluation."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from dragoman.base.settings import Settings
from dragoman.data.cleaning import CleaningSettings
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.data.masking import MaskingSettings
from dragoman.data.plan import PlanSettings
from dragoman.data.split import SplitSettings
from dragoman.forms.boxes import BoxSettings
from dragoman.forms.subwords.text import TextSettings
from dragoman.forms.tree_form import TreeSettings
from dragoman.models.settings import AnyModel, TransformerSettings
from dragoman.search.settings import SearchSettings
from dragoman.sources.file_examples import AnySource
from dragoman.sources.shared.rows import TextSource
from dragoman.training.settings import TrainingSettings

FORMAT = 1
"""The version of recipe files that this program writes, and the newest that it reads."""


class LanguageSettings(Settings):
    """The languages, as BCP 47 codes such as "en", "de" and "ko". "und" means undetermined."""

    source: str = "und"
    """The source language as a code."""
    target: str = "und"
    """The target language. It determines BLEU's tokeniser (ko-mecab for "ko")."""
    tag: str | None = None
    """For imported models of several target languages: the tag that each source begins with, such
    as "deu" for >>deu<<."""

    @property
    def spoken(self) -> str:
        """The language of recordings and their transcripts, which either setting may give."""
        return self.source if self.target == "und" else self.target


class OldText(Settings):
    """The text of the run that is tuned (``--keep``), so that the run does not forget it."""

    train: tuple[CorpusSettings, ...] = ()
    """The old training corpora and their weights."""
    weight: float = Field(0.0, ge=0, le=10_000)
    """The number of times that each old pair is used per epoch, times the weight of its corpus. 0:
    nothing is learned from the old text, and the run is only measured on it."""
    dev: CorpusSettings | None = None
    """The old validation data. If it is not given, it is held out of the old ``train``."""
    test: CorpusSettings | None = None
    """The old test data. If it is not given, it is held out of the old ``train``."""
    split: SplitSettings = SplitSettings()
    """The number of old examples to hold out if dev or test is not given."""


class Teacher(Settings):
    """A run from which a student learns (``dragoman distil``)."""

    run: str = Field(min_length=1)
    """The folder of the run."""


class MonolingualText(Settings):
    """Text of one language, without translations."""

    source: str
    """The file, or a folder of files; each line is a text. May be compressed with gzip."""
    side: Literal["source", "target"] = "target"
    """The side of the pairs that has its language."""


class DataSettings(Settings):
    """The data for training, validation and testing."""

    embedded: Literal["demo", "demo-trees"] | None = None
    """A corpus that dragoman generates, instead of files. demo: sentences and their translations;
    demo-trees: sentences and their trees (task parsing)."""
    train: tuple[CorpusSettings, ...] = ()
    """The training corpora and their weights."""
    monolingual: tuple[MonolingualText, ...] = ()
    """Text of one language, from which the vocabulary is learned too. ``dragoman train
    --mono-target`` sets it; the translations of this text are corpora with a tag in ``train``."""
    prepared: str | None = None
    """A folder or bucket that dragoman prepare wrote. The text in it is used, and the files of
    ``train`` are not read."""
    synthetic_voices: int = Field(0, ge=0, le=100)
    """For transcription: the number of times that each training text is also spoken, each time by a
    different synthetic voice of espeak-ng or flite, if these are installed. 0: never. The row
    synthetic-voices of ``dragoman ablate`` measures what this gains."""
    dev: CorpusSettings | None = None
    """The validation data. If it is not given, it is held out of ``train``."""
    test: CorpusSettings | None = None
    """The test data for the final score. If it is not given, it is held out of ``train``."""
    split: SplitSettings = SplitSettings()
    """The number of examples to hold out if dev or test is not given."""
    moses: bool = False
    """Lower-case and tokenise all text as Moses does, as was usual in older papers. Translations
    are detokenised, but stay in lower case."""
    cleaning: CleaningSettings = CleaningSettings()
    """The rules for examples that are not worth training on."""
    old: OldText | None = None
    """The old text of a run that is tuned on new text."""
    teachers: tuple[Teacher, ...] = ()
    """The translators whose predictions this run learns. Its vocabularies are those of the first
    one. Several predict together, as an ensemble."""

    @property
    def learned(self) -> tuple[CorpusSettings, ...]:
        """The corpora that are learned from: the new ones, then the old ones."""
        if self.old is None or not self.old.weight:
            return self.train
        return (*self.train, *self.old.train)

    @property
    def corpora(self) -> tuple[CorpusSettings, ...]:
        """All corpora that the recipe names, in order."""
        old = self.old or OldText()
        held = (self.dev, self.test, old.dev, old.test)
        return (*self.train, *old.train, *filter(None, held))

    @model_validator(mode="after")
    def _one_of_both(self) -> DataSettings:
        if self.train and self.embedded:
            raise ValueError('give either corpora ("train") or "embedded", not both')
        return self


class EvaluationSettings(Settings):
    """The settings for evaluating a model."""

    dev_sentences: int = Field(500, ge=1, le=1_000_000)
    """The number of dev sentences that are translated at each validation. The loss is always
    computed on the whole dev set."""
    dev_beam: int = Field(1, ge=1, le=4096)
    """The beam for these translations. 1: greedy search, which is several times faster."""
    samples: int = Field(10, ge=0, le=1000)
    """The number of test sentences shown in the report."""
    markup: Literal["none", "restructuredtext"] = "none"
    """Count the test lines whose inline markup is the same in the output as in the input."""
    tokenised: bool = False
    """Also compute BLEU on lower-cased, Moses-tokenised text, as older papers do."""
    window: int | None = Field(None, ge=1, le=1_000_000)
    """For language models: the number of tokens in a window when a text is scored. Default:
    plan.context. An LSTM keeps its state and can use longer windows than in training."""
    stride: int | None = Field(None, ge=1, le=1_000_000)
    """For language models: each window starts this many tokens after the previous one, so every
    token has at least window - stride tokens of context. Default: half of the window. If the stride
    equals the window, windows do not overlap, and each starts without context."""

    @model_validator(mode="after")
    def _agree(self) -> EvaluationSettings:
        if self.window is not None and self.stride is not None and self.stride > self.window:
            raise ValueError(
                f"stride {self.stride} is greater than window {self.window}: tokens between two "
                "windows would be skipped"
            )
        return self


class PaintingSettings(Settings):
    """Which codes are painted (task painting)."""

    codes: str | None = None
    """The run folder whose codes are written (task codes). The painter's run keeps a copy of what
    it needs of it, so that the other run may be moved or removed after the training has begun."""


class Sections(Settings):
    """All settings of a recipe. Which a recipe of a task has, and what it refuses in them, its spec
    says (``spec.py``)."""

    format: int = Field(FORMAT, ge=1, le=FORMAT)
    """The version of the file format."""
    name: str = "translator"
    """The name of the run, which the server uses too."""
    task: str = "translation"
    """The task; ``dragoman train --help`` lists all tasks."""
    seed: int = Field(1, ge=0, lt=2**63)
    """The seed for all random numbers of the run."""
    languages: LanguageSettings = LanguageSettings()
    data: DataSettings = DataSettings()
    source: AnySource = TextSource()
    text: TextSettings = TextSettings()
    trees: TreeSettings = TreeSettings()
    boxes: BoxSettings = BoxSettings()
    painting: PaintingSettings = PaintingSettings()
    model: AnyModel = TransformerSettings()
    plan: PlanSettings = PlanSettings()
    masking: MaskingSettings = MaskingSettings()
    training: TrainingSettings = TrainingSettings()
    search: SearchSettings = SearchSettings()
    evaluation: EvaluationSettings = EvaluationSettings()


def writes_what_it_reads(recipe: Sections) -> bool:
    """Return True if the output must be the words of the input, so that wrong words can be
    counted: the words of a recording, or of a line of text in its own language."""
    languages = recipe.languages
    return recipe.source.tells(languages.source, languages.target)
