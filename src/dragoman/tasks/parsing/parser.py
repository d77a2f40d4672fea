"""The predictor of a parser: sentences in, trees over exactly their words out.

Words are what stands between spaces, cut as in the treebank that the run has learned from (the Penn
Treebank parts ``do n't`` and ``sleeps .``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from dragoman.engine.engine import Engine
from dragoman.engine.predictor import WritingPredictor
from dragoman.engine.settings import EngineSettings
from dragoman.engine.streaming import parts
from dragoman.errors import DataError, TooLongError
from dragoman.forms.tree_form import TreeForm, words_of
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.request import Request
from dragoman.search.settings import SearchSettings
from dragoman.tree import Tree

if TYPE_CHECKING:
    from dragoman.nn.probes import Probe
    from dragoman.pictures.records import AttentionRecord

MAX_TOKENS = 1000
"""Tokens of a sentence that are read, if the settings do not say otherwise: there is no half of a
parse, so it is not cut."""
_BATCH_SIZE = 1000


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


class Parser(WritingPredictor):
    """A trained parser, ready to parse. Not for several threads at once."""

    asked_of: ClassVar[tuple[str, str]] = ("parsing", "which does not parse")
    usual: ClassVar[EngineSettings] = EngineSettings(longest=MAX_TOKENS)

    @property
    def no_tag(self) -> str:
        """See ``TreeForm.no_tag``."""
        return TreeForm.of(self.engine.target).no_tag

    def stream(
        self, sentences: Iterable[str], settings: SearchSettings | None = None
    ) -> Iterator[list[Parse]]:
        """The n best trees of each sentence, in their order; none of a line without words.

        Errors: ``DataError`` that says which line (from 1) is too long, when all before it have
        been parsed.
        """
        for part in parts(_read(sentences, self.engine), _BATCH_SIZE):
            found = iter(parse_all(self.engine, list(filter(None, part)), settings))
            for sentence in part:
                yield next(found) if sentence else []

    def __call__(self, sentence: str, settings: SearchSettings | None = None) -> Parse:
        """The best tree of one sentence. Errors: ``DataError`` if it has no words or too many."""
        if not sentence.strip():
            raise DataError("an empty line has no tree")
        ((best, *_),) = parse_all(self.engine, list(_read([sentence], self.engine)), settings)
        return best

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
        form = TreeForm.of(self.engine.target)
        return replace(record, target=form.shown_for(source, [*target_ids, form.eos]))


def _read(lines: Iterable[str], engine: Engine) -> Iterator[str]:
    """The sentence of each line, as a treebank writes it; "" of a line without words. Errors:
    ``DataError`` that says which is too long."""
    for number, line in enumerate(lines, 1):
        try:
            sentence = read_sentence(line, engine)[0] if line.strip() else ""
        except DataError as error:
            raise DataError(
                f"line {number} {error}. One line is one sentence, its words between spaces: cut "
                "it into sentences"
            ) from error
        yield sentence


def read_sentence(text: str, engine: Engine) -> tuple[str, list[int]]:
    """A sentence as a treebank writes it, and what the model reads of it.

    Errors: ``TooLongError``, whose message goes on from the sentence's name ("line 3")."""
    if engine.source.far_too_long(text, engine.longest):
        told = f"has {len(text):,} characters, and {engine.longest:,} tokens are read at once"
        raise TooLongError(told, len(text), "characters", engine.longest)
    sentence = " ".join(words_of(text))
    (values,) = engine.source.values([sentence])
    if len(values) > engine.longest:
        told = f"has {len(values):,} tokens, and {engine.longest:,} are read at once"
        raise TooLongError(told, len(values), "tokens", engine.longest)
    return sentence, values


def parse_all(
    engine: Engine, sentences: Sequence[str], settings: SearchSettings | None = None
) -> list[list[Parse]]:
    """The n best trees of each sentence, which has words: whatever the model would rather write,
    each is a tree over exactly these. Errors: ``DataError`` for one that is too long."""
    form = TreeForm.of(engine.target)

    def request(sentence: str, values: Sequence[int]) -> Request:
        return engine.request(values, settings, raw=sentence)

    def parses(number: int, found: list[Hypothesis]) -> list[Parse]:
        return [
            Parse(
                form.tree(one.tokens, sentences[number]),
                one.score,
                one.token_log_probabilities,
                one.tokens,
            )
            for one in found
        ]

    values = engine.source.values(sentences)
    requests = (request(*both) for both in zip(sentences, values, strict=True))
    return list(engine.each(requests, parses))
