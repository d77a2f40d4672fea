"""The predictor of a parser: it reads sentences and gives trees over exactly their words.

Words must be separated by spaces as in the treebank of the run (the Penn Treebank writes ``do n't``
and ``sleeps .``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from dragoman.base.errors import DataError, TooLongError
from dragoman.engine.predictor import SearchingPredictor, parts
from dragoman.engine.settings import EngineSettings
from dragoman.forms.tree import Tree
from dragoman.forms.tree_form import TreeForm, words_of
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.request import Request
from dragoman.search.settings import SearchSettings

if TYPE_CHECKING:
    from dragoman.nn.probes import Probe
    from dragoman.pictures.records import AttentionRecord

MAX_TOKENS = 1000
"""The most tokens of a sentence, unless the settings give another limit. A longer sentence is
refused: half a parse would be useless."""


@dataclass(frozen=True)
class Parse:
    """One tree of a sentence. ``str(parse)`` gives it on one line."""

    tree: Tree
    score: float
    """Log-probability over length penalty (see ``search.hypothesis``), higher is better."""
    token_log_probabilities: tuple[float, ...]
    """log P of each symbol, in nats, and of the end symbol."""
    ids: tuple[int, ...] = ()
    """The numbers of its symbols in the vocabulary."""

    @property
    def text(self) -> str:
        return str(self.tree)

    def __str__(self) -> str:
        return self.text


class Parser(SearchingPredictor[Parse, list[Parse]]):
    """A trained parser. Do not use it from several threads at once."""

    asked_of: ClassVar[tuple[str, str]] = ("parsing", "which does not parse")
    usual: ClassVar[EngineSettings] = EngineSettings(longest=MAX_TOKENS)
    together: ClassVar[int] = 1000

    @cached_property
    def form(self) -> TreeForm:
        """The form of the parser's output: trees."""
        return TreeForm.of(self.engine.target)

    @property
    def no_tag(self) -> str:
        """The tag of words if no tags were learned (``TreeForm.no_tag``)."""
        return self.form.no_tag

    def each(self, given: Iterable[str], settings: SearchSettings | None = None) -> Iterator[Parse]:
        """The best tree of each sentence, in their order. ``settings`` replace those of the run.
        Errors: ``DataError`` for a sentence that has no words or too many."""
        for parses in self.stream(given, settings):
            if not parses:
                raise DataError("an empty line has no tree")
            yield parses[0]

    def stream(
        self, given: Iterable[str], settings: SearchSettings | None = None
    ) -> Iterator[list[Parse]]:
        """The n best trees of each sentence, in their order; a line without words has none.

        Errors: ``DataError`` with the number of a line (from 1) that is too long, after the results
        of all lines before it.
        """
        for part in parts(enumerate(given, 1), self.together):
            lines = [line for _, line in part if line.strip()]
            parses = self.answers(lines, (self.ask(line, settings) for line in lines))
            for number, line in part:
                try:
                    trees = next(parses) if line.strip() else []
                except TooLongError as error:
                    raise DataError(
                        f"line {number} {error}. Give one sentence on each line, with spaces "
                        "between words"
                    ) from error
                yield trees
            next(parses, None)  # end the search, which frees its places for the next one

    def ask(self, given: str, settings: SearchSettings | None = None) -> Request:
        """Make the search request for a sentence, limited to trees over exactly its words. Errors:
        ``DataError`` for a sentence without words; ``TooLongError``, whose message follows the name
        of the sentence ("line 3")."""
        longest = self.engine.longest
        if self.engine.source.far_too_long(given, longest):
            message = f"has {len(given):,} characters, and {longest:,} tokens are read at once"
            raise TooLongError(message, len(given), "characters", longest)
        values = self.source_ids(given)
        if len(values) > longest:
            message = f"has {len(values):,} tokens, and {longest:,} are read at once"
            raise TooLongError(message, len(values), "tokens", longest)
        return self.engine.request(values, settings, raw=given)

    def answer(self, given: str, hypotheses: Sequence[Hypothesis]) -> list[Parse]:
        """The tree of each hypothesis, over the words of the sentence."""
        return [
            Parse(
                self.form.tree(hypothesis.tokens, given),
                hypothesis.score,
                hypothesis.token_log_probabilities,
                hypothesis.tokens,
            )
            for hypothesis in hypotheses
        ]

    # ---- looking

    def own_output(self, text: str, prefix: str = "") -> Parse:
        """The best tree of a sentence. Errors: ``DataError`` for a prefix."""
        if prefix:
            raise DataError("trees cannot have a prefix. Leave it out")
        return self(text)

    def source_ids(self, text: str) -> list[int]:
        """The ids that the model reads: the words as treebanks write them, and the end symbol."""
        return self.engine.source.values([" ".join(words_of(text))])[0]

    def look(
        self, source: str, target_ids: Sequence[int], through: Probe | None = None
    ) -> AttentionRecord:
        """All attention weights of a tree. Its symbols are shown with the words that they stand for
        (``TreeForm.names_beside``)."""
        record = super().look(source, target_ids, through)
        shown = self.form.names_beside(source, [*target_ids, self.form.eos])
        return replace(record, target=shown)
