"""A parser that is served, and its endpoint."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from pydantic import Field

from dragoman.base.errors import DataError, TooLongError
from dragoman.engine.alignment_head import Alignment, TokenPair, by_words
from dragoman.forms.tree import Tree
from dragoman.forms.tree_form import words_of
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.request import Request
from dragoman.search.settings import SearchSettings
from dragoman.serving.http.messages import KeyedMessage, Message, Texts
from dragoman.serving.http.refusals import Refusal, check_total, too_long
from dragoman.serving.service.endpoints import asks
from dragoman.serving.service.served_run import AskedRun
from dragoman.serving.service.service import Service
from dragoman.tasks.parsing.parser import Parse, Parser


class ParseRequest(KeyedMessage):
    """A request to parse sentences: `POST /v1/parse`."""

    text: Texts
    """The sentence to parse, or a list of sentences. Separate words by spaces, as in the training
    treebank."""
    run: str | None = None
    """The name of the run. Default: the first run that parses."""
    beam: int | None = Field(default=None, ge=1)
    """The number of hypotheses kept at each step of the search. Default: the run's setting."""
    n_best: int = Field(default=1, ge=1)
    """The number of trees of each sentence to return, best first."""
    attention: bool = False
    """Return the attention of each bracket of the best tree to the words of the sentence."""


class TreeWord(Message):
    """A word of a tree, and its place."""

    text: str
    """The word as treebanks write it, such as -LRB- for a parenthesis."""
    tag: str | None = None
    """The part of speech. Absent if the run was trained without tags."""
    parent: int
    """The number of the bracket that contains the word, from 0."""


class Bracket(Message):
    """A bracket of a tree, and its words."""

    label: str
    """The label of the bracket, such as NP."""
    parent: int | None = None
    """The number of the bracket that contains it, from 0. Absent for the outermost bracket."""
    first: int
    """The number of its first word, from 0."""
    count: int
    """The number of words that it contains."""
    attention: list[float] | None = None
    """The attention to each word of the sentence when the bracket was opened, from 0 to 1; the rest
    was on the end symbol. Present only in the best tree, if `attention` was set."""


class ParsedTree(Message):
    """A tree of a sentence, and its score."""

    text: str
    """The tree in brackets, on one line."""
    score: float
    """The log-probability divided by the length penalty. A higher score is better."""
    log_probability: float
    """The log-probability of the tree, in nats."""
    words: list[TreeWord]
    """The words of the tree, in order."""
    brackets: list[Bracket]
    """The brackets of the tree, from left to right, each before those that it contains."""


class ParsedSentence(Message):
    """The trees that were found for one sentence."""

    trees: list[ParsedTree]
    """The trees of the sentence, best first."""


class ParseAnswer(Message):
    """The trees that were found for the sentences."""

    run: str
    """The name of the run that parsed."""
    sentences: list[ParsedSentence]
    """The trees of each sentence, in the order of the request."""


Looks = npt.NDArray[np.float64]
"""(T, W): the attention of each symbol of a tree to each word, when the symbol was chosen."""


class ServedParser(AskedRun[Parser]):
    """A parser that the server has loaded."""

    task, does, path = "parsing", "parses", "/v1/parse"
    trained = "dragoman train my.mrg --task parsing"
    sent, gives = ParseRequest, ParseAnswer
    opens, work = Parser, "parse"
    has_figures = False

    def search_settings(self, sentences: int, request: ParseRequest) -> SearchSettings:
        """The search settings of a request. Raises Refusal 400."""
        chosen = self.beam_search(request.beam, request.n_best)
        self.check_search(chosen)
        check_total(
            "too_many_trees",
            (chosen.n_best, "tree"),
            (sentences, "sentences"),
            self.settings.limits.translations,
            "Ask for fewer, or send fewer sentences.",
        )
        return chosen

    def sentences(
        self, texts: Sequence[str], settings: SearchSettings
    ) -> Iterator[tuple[str, Request]]:
        """Each sentence, in the words of treebanks, and its search. Raises Refusal 400."""
        for number, text in enumerate(texts):
            which = "text" if len(texts) == 1 else f"text, number {number} from 0"
            if not text.strip():
                raise Refusal("no_words", f"{which}: it has no words, and so no tree.", text=number)
            try:
                request = self.predictor.ask(text, settings)
            except TooLongError as error:
                raise too_long(
                    error, f"{which}: it {error}. Give one sentence in each text."
                ) from None
            except DataError as error:
                raise Refusal("bad_text", f"{which}: {error}.", problem=str(error)) from None
            yield " ".join(words_of(text)), request

    # ---- what was found

    def pair(self, sentence: str, best: Hypothesis) -> TokenPair:
        """The source and target tokens whose alignment is computed."""
        ((tokens, _),) = self.engine.source.tokens_of_words([sentence])
        return tokens, best.tokens

    def to_schema(
        self, sentence: str, hypotheses: Sequence[Hypothesis], alignment: Alignment | None
    ) -> ParsedSentence:
        """The trees of a sentence. ``alignment``: that of the best tree, by source tokens."""
        looks = None
        if alignment is not None:
            ((_, numbers),) = self.engine.source.tokens_of_words([sentence])
            looks = by_words(alignment, numbers, len(sentence.split()))
        return ParsedSentence(
            trees=[
                self._tree(result, looks if number == 0 else None)
                for number, result in enumerate(self.predictor.answer(sentence, hypotheses))
            ]
        )

    def _tree(self, result: Parse, looks: Looks | None) -> ParsedTree:
        words: list[TreeWord] = []
        brackets: list[Bracket] = []
        self._write(result.tree, None, words, brackets)
        if looks is not None:
            opening = self.predictor.form.symbols.opening
            opened = [number for number, symbol in enumerate(result.ids) if symbol in opening]
            for bracket, place in zip(brackets, opened, strict=True):
                bracket.attention = [round(share, 4) for share in looks[place].tolist()]
        return ParsedTree(
            text=result.text,
            score=result.score,
            log_probability=math.fsum(result.token_log_probabilities),
            words=words,
            brackets=brackets,
        )

    def _write(
        self, tree: Tree, parent: int | None, words: list[TreeWord], brackets: list[Bracket]
    ) -> None:
        """A tree as lists: its words, and its brackets, each before those that it holds."""
        if tree.word is not None:
            assert parent is not None, "each word is in a bracket"
            tag = None if tree.label == self.predictor.no_tag else tree.label
            words.append(TreeWord(text=tree.word, tag=tag, parent=parent))
            return
        number = len(brackets)
        own = Bracket(label=tree.label, parent=parent, first=len(words), count=0)
        brackets.append(own)
        for child in tree.children:
            self._write(child, number, words, brackets)
        own.count = len(words) - own.first


@asks(ServedParser, "Parse sentences")
async def parse(service: Service, request: ParseRequest, client: str) -> ParseAnswer:
    """Returns trees over exactly the given words: in brackets, and as lists of words and brackets.
    With `attention`, also the attention of the model when it opened each bracket."""
    texts = service.check_texts(request.text, client)
    run = service.catalogue.of(ServedParser, request.run)
    settings = run.search_settings(len(texts), request)
    both = await service.texts.all(client, run.sentences(texts, settings))
    sentences, requests = zip(*both, strict=True) if both else ((), ())
    run.check_searches(requests)
    hypotheses = await run.queue.search(requests, client)
    alignments: Sequence[Alignment | None] = [None] * len(texts)
    if request.attention:
        best = zip(sentences, (first for first, *_ in hypotheses), strict=True)
        pairs = await service.texts.all(client, (run.pair(*both) for both in best))
        alignments = await run.align(pairs, client)
    service.meters.count_characters(run.name, client, sum(map(len, texts)))
    every = zip(sentences, hypotheses, alignments, strict=True)
    trees = await service.texts.all(client, (run.to_schema(*parts) for parts in every))
    return ParseAnswer(run=run.name, sentences=trees)
