"""The predictor of a parser: sentences in, trees over exactly their words out.

Words are what stands between spaces, cut as in the treebank that the run has learned from (the Penn
Treebank parts ``do n't`` and ``sleeps .``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from dragoman.base.errors import DataError, TooLongError
from dragoman.engine.predictor import SearchingPredictor
from dragoman.engine.settings import EngineSettings
from dragoman.engine.streaming import parts
from dragoman.forms.tree import Tree
from dragoman.forms.tree_form import TreeForm, words_of
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.request import Request
from dragoman.search.settings import SearchSettings

if TYPE_CHECKING:
    from dragoman.nn.probes import Probe
    from dragoman.pictures.records import AttentionRecord

MAX_TOKENS = 1000
"""Tokens of a sentence that are read, if the settings do not say otherwise: there is no half of a
parse, so it is not cut."""


@dataclass(frozen=True)
class Parse:
    """One tree of a sentence. ``str(parse)`` is it, on one line."""

    tree: Tree
    score: float
    """Log-probability over length penalty (see ``search.hypothesis``), higher is better."""
    token_log_probabilities: tuple[float, ...]
    """log P of each symbol, in nats, and of the end symbol."""
    ids: tuple[int, ...] = ()
    """The symbols as ids."""

    @property
    def text(self) -> str:
        """The tree on one line."""
        return str(self.tree)

    def __str__(self) -> str:
        return self.text


class Parser(SearchingPredictor[Parse, list[Parse]]):
    """A trained parser, ready to parse. Not for several threads at once."""

    asked_of: ClassVar[tuple[str, str]] = ("parsing", "which does not parse")
    usual: ClassVar[EngineSettings] = EngineSettings(longest=MAX_TOKENS)
    together: ClassVar[int] = 1000

    @cached_property
    def form(self) -> TreeForm:
        """What a parser writes."""
        return TreeForm.of(self.engine.target)

    @property
    def no_tag(self) -> str:
        """See ``TreeForm.no_tag``."""
        return self.form.no_tag

    def each(self, given: Iterable[str], settings: SearchSettings | None = None) -> Iterator[Parse]:
        """The best tree of each sentence, in their order. ``settings`` replace the run's own.
        Errors: ``DataError`` for a sentence that has no words or too many."""
        for found in self.stream(given, settings):
            if not found:
                raise DataError("an empty line has no tree")
            yield found[0]

    def stream(
        self, given: Iterable[str], settings: SearchSettings | None = None
    ) -> Iterator[list[Parse]]:
        """The n best trees of each sentence, in their order; none of a line without words.

        Errors: ``DataError`` that says which line (from 1) is too long, when all before it have
        been parsed.
        """
        for part in parts(enumerate(given, 1), self.together):
            asked = [line for _, line in part if line.strip()]
            found = self.answers(asked, (self.ask(line, settings) for line in asked))
            for number, line in part:
                try:
                    trees = next(found) if line.strip() else []
                except TooLongError as error:
                    raise DataError(
                        f"line {number} {error}. One line is one sentence, its words between "
                        "spaces: cut it into sentences"
                    ) from error
                yield trees
            next(found, None)  # the search has ended, and its places serve the next one

    def ask(self, given: str, settings: SearchSettings | None = None) -> Request:
        """The search for the trees of a sentence: whatever the model would rather write, each is a
        tree over exactly its words. Errors: ``DataError`` for a sentence without words;
        ``TooLongError``, whose message goes on from the sentence's name ("line 3")."""
        longest = self.engine.longest
        if self.engine.source.far_too_long(given, longest):
            told = f"has {len(given):,} characters, and {longest:,} tokens are read at once"
            raise TooLongError(told, len(given), "characters", longest)
        values = self.source_ids(given)
        if len(values) > longest:
            told = f"has {len(values):,} tokens, and {longest:,} are read at once"
            raise TooLongError(told, len(values), "tokens", longest)
        return self.engine.request(values, settings, raw=given)

    def answer(self, given: str, hypotheses: Sequence[Hypothesis]) -> list[Parse]:
        """The tree of each hypothesis, over the words of the sentence."""
        return [
            Parse(
                self.form.tree(one.tokens, given),
                one.score,
                one.token_log_probabilities,
                one.tokens,
            )
            for one in hypotheses
        ]

    # ---- looking

    def shown(self, text: str, prefix: str = "") -> Parse:
        """Its best tree. Errors: ``DataError`` for a prefix."""
        if prefix:
            raise DataError("a tree is given no beginning: leave the prefix out")
        return self(text)

    def source_ids(self, text: str) -> list[int]:
        """What the model reads: the words as treebanks write them, the end symbol behind."""
        return self.engine.source.values([" ".join(words_of(text))])[0]

    def look(
        self, source: str, target_ids: Sequence[int], through: Probe | None = None
    ) -> AttentionRecord:
        """Every attention weight of a tree, whose symbols are shown with the words that stand
        there (``TreeForm.shown_for``)."""
        record = super().look(source, target_ids, through)
        shown = self.form.shown_for(source, [*target_ids, self.form.eos])
        return replace(record, target=shown)
