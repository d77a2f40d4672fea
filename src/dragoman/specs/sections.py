"""Sections of a recipe that belong to no component: languages, data, evaluation."""

from __future__ import annotations

from typing import Literal, Protocol

from pydantic import Field, model_validator

from dragoman.data.cleaning import CleaningSettings
from dragoman.data.corpus_settings import CorpusSettings
from dragoman.data.masking import MaskingSettings
from dragoman.data.plan import PlanSettings
from dragoman.data.split import SplitSettings
from dragoman.forms.rows.settings import SourceSettings
from dragoman.forms.text_settings import TextSettings
from dragoman.forms.tree_symbols import TreeSettings
from dragoman.models.settings import ModelSettings
from dragoman.search.settings import SearchSettings
from dragoman.settings import Settings
from dragoman.training.settings import TrainingSettings


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
    """The text to validate on; held out of ``train`` if not given."""
    test: CorpusSettings | None = None
    """The text for the final score; held out of ``train`` if not given."""
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
    """How many sentences of dev are translated at each validation. The loss is over all of dev."""
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


class Sections(Protocol):
    """What a spec reads of a recipe (``recipe.Recipe``)."""

    @property
    def languages(self) -> LanguageSettings: ...
    @property
    def data(self) -> DataSettings: ...
    @property
    def source(self) -> SourceSettings: ...
    @property
    def text(self) -> TextSettings: ...
    @property
    def trees(self) -> TreeSettings: ...
    @property
    def model(self) -> ModelSettings: ...
    @property
    def plan(self) -> PlanSettings: ...
    @property
    def masking(self) -> MaskingSettings: ...
    @property
    def training(self) -> TrainingSettings: ...
    @property
    def search(self) -> SearchSettings: ...
    @property
    def evaluation(self) -> EvaluationSettings: ...
