"""What one run does with sentences that want trees: for threads beside the event loop."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dragoman.engine.alignment_head import Alignment, TokenPair
from dragoman.engine.engine import Engine
from dragoman.engine.search_settings import with_beams
from dragoman.errors import DataError, RecipeError, TooLongError
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.request import Request
from dragoman.search.settings import SearchSettings
from dragoman.serving.http.refusals import Refusal, too_long
from dragoman.serving.parse.schema import (
    Bracket,
    ParsedSentence,
    ParsedTree,
    ParseRequest,
    TreeWord,
)
from dragoman.tasks.parsing.parser import read_sentence, tree_form
from dragoman.tree import Tree

Looks = npt.NDArray[np.float64]
"""(T, W): how much each symbol of a tree looked at each word when it was chosen."""


@dataclass(frozen=True)
class Sentence:
    """One that is to be parsed."""

    text: str
    """Its words, as treebanks write them."""
    request: Request


class Bracketing:
    """A parser that is served."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._form = tree_form(engine)
        self._no_tag = tree_form(engine).no_tag

    def settings(self, request: ParseRequest) -> SearchSettings:
        """How it is searched. Raises Refusal 400."""
        try:
            chosen = with_beams(self._engine.search_settings, request.beam, request.n_best)
        except RecipeError as error:
            raise Refusal("bad_search", str(error), problem=str(error)) from None
        return chosen.model_copy(update={"sampling": None, "alternatives": False})

    def sentences(self, texts: Sequence[str], settings: SearchSettings) -> Iterator[Sentence]:
        """One after another, cut and ready to be searched for. Raises Refusal 400."""
        for number, text in enumerate(texts):
            which = "text" if len(texts) == 1 else f"text, number {number} from 0"
            if not text.strip():
                raise Refusal(
                    "no_words", f"{which}: there are no words in it, and so no tree.", text=number
                )
            try:
                sentence, values = read_sentence(text, self._engine)
            except TooLongError as error:
                raise too_long(
                    error, f"{which}: it {error}. One text is one sentence: cut it into sentences."
                ) from None
            try:
                request = self._engine.request(values, settings, raw=sentence)
            except DataError as error:
                raise Refusal("bad_text", f"{which}: {error}.", problem=str(error)) from None
            yield Sentence(sentence, request)

    # ---- what was found

    def pair(self, sentence: Sentence, found: Hypothesis) -> TokenPair:
        """What is asked where the model looked."""
        ((tokens, _),) = self._engine.source.tokens_of_words([sentence.text])
        return tokens, found.tokens

    def told(
        self, sentence: Sentence, found: Sequence[Hypothesis], alignment: Alignment | None
    ) -> ParsedSentence:
        """The trees of a sentence; ``alignment``: of the best, by tokens of the source."""
        looks = None if alignment is None else self._by_words(sentence, alignment)
        return ParsedSentence(
            trees=[
                self._tree(sentence, one, looks if number == 0 else None)
                for number, one in enumerate(found)
            ]
        )

    def _by_words(self, sentence: Sentence, alignment: Alignment) -> Looks:
        ((_, numbers),) = self._engine.source.tokens_of_words([sentence.text])
        looks = np.zeros((len(alignment), len(sentence.text.split())))
        np.add.at(looks.T, numbers, alignment.T)
        return looks

    def _tree(self, sentence: Sentence, found: Hypothesis, looks: Looks | None) -> ParsedTree:
        tree = self._form.tree(found.tokens, sentence.text)
        words: list[TreeWord] = []
        brackets: list[Bracket] = []
        self._write(tree, None, words, brackets)
        if looks is not None:
            opened = [n for n, one in enumerate(found.tokens) if one in self._form.symbols.opening]
            for bracket, place in zip(brackets, opened, strict=True):
                bracket.attention = [round(share, 4) for share in looks[place].tolist()]
        return ParsedTree(
            text=str(tree),
            score=found.score,
            log_probability=math.fsum(found.token_log_probabilities),
            words=words,
            brackets=brackets,
        )

    def _write(
        self, tree: Tree, parent: int | None, words: list[TreeWord], brackets: list[Bracket]
    ) -> None:
        """A tree as lists: its words, and its brackets, each before those that it holds."""
        if tree.word is not None:
            assert parent is not None, "a word stands in a bracket"
            tag = None if tree.label == self._no_tag else tree.label
            words.append(TreeWord(text=tree.word, tag=tag, parent=parent))
            return
        number = len(brackets)
        own = Bracket(label=tree.label, parent=parent, first=len(words), count=0)
        brackets.append(own)
        for child in tree.children:
            self._write(child, number, words, brackets)
        own.count = len(words) - own.first
