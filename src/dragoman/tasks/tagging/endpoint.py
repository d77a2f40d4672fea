"""A run that tags words and is served, and its endpoint."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from pydantic import Field

from dragoman.base.wording import plural
from dragoman.serving.http.limits import READING
from dragoman.serving.http.messages import KeyedMessage, Message, Texts, json_in_parts
from dragoman.serving.http.refusals import check_total
from dragoman.serving.service.endpoints import asks
from dragoman.serving.service.served_run import AskedRun
from dragoman.serving.service.service import Service
from dragoman.tasks.tagging.metrics import has_spans, spans_of
from dragoman.tasks.tagging.tagger import ScoredWords, Tagger, most_probable


class TagRequest(KeyedMessage):
    """A request to tag the words of texts: `POST /v1/tag`."""

    text: Texts
    """The text to tag, or a list of texts. Separate words by spaces, as in the training text."""
    run: str | None = None
    """The name of the run. Default: the first run that tags."""
    top: int = Field(default=1, ge=1)
    """The number of tags to return for each word, the most probable first."""


class TagChoice(Message):
    """A possible tag of a word."""

    tag: str
    """The name of the tag, as in the training data."""
    probability: float
    """The probability of the tag, from 0 to 1."""


class TaggedWord(Message):
    """A word of a text with its tag. All `before` and `text`, joined, are the text up to its last
    word."""

    before: str
    """The white space before the word."""
    text: str
    """The word without the white space around it."""
    tag: str
    """The tag with the highest probability."""
    probability: float
    """The probability of `tag`, from 0 to 1."""
    tags: list[TagChoice] | None = None
    """The most probable tags, best first. Present only if `top` is above 1."""


class TaggedSpan(Message):
    """Consecutive words that their tags mark as a unit, such as a name."""

    kind: str
    """The kind of the span: X for the tags B-X and I-X."""
    first: int
    """The number of its first word, from 0."""
    count: int
    """The number of words in the span."""


class TaggedText(Message):
    """The words of one text with their tags."""

    parts: int
    """The number of parts in which the text was read. A text of more than `longest` tokens is
    split, and each part is tagged without the others."""
    spans: list[TaggedSpan] | None = None
    """The spans that the tags mark. Present only if the tags of the run have the form B-X, I-X and
    O."""
    words: list[TaggedWord]
    """The words of the text, in order."""


class TagAnswer(Message):
    """The tags of the words of all texts."""

    run: str
    """The name of the run that tagged."""
    longest: int
    """The maximum number of tokens that the run reads at once, including one special symbol."""
    texts: list[TaggedText]
    """The tags of each text, in the order of the request."""


TOKENS_AT_ONCE = 1024
"""Tokens that are read in one turn, or one part of a text: the longest that others wait."""
WORDS_AT_ONCE = 64
"""Words that are answered in one turn: the longest that other requests wait."""
MAX_PROBABILITIES = 100_000
"""The most tags in one answer, those of all words together."""

_WORD = re.compile(r"\S+")


class TaggedPart(NamedTuple):
    """Some words of a text, as many as are answered in one turn."""

    text: int
    """The number of the text in the request."""
    first: int
    """The number of the first of these words in the text."""
    tags: list[str]
    written: str
    """The words as JSON, separated by commas."""
    begins: bool
    """True for the first words of a part that was read together."""


class ServedTagger(AskedRun[Tagger]):
    """A tagging run that is served."""

    task, does, path = "tagging", "tags words", "/v1/tag"
    trained = "dragoman train my.tsv --task tagging"
    sent, gives = TagRequest, TagAnswer
    opens, work = Tagger, "tag"
    has_figures = False

    @cached_property
    def _has_spans(self) -> bool:
        return has_spans(self.predictor.tags.counts)

    def tag(self, texts: Sequence[str], top: int) -> Iterator[TaggedPart]:
        """Yield parts of texts as they are tagged, one turn at a time. Raises Refusal 400 for more
        tags than one answer holds, and for a request that costs too much."""
        matches = [list(_WORD.finditer(text)) for text in texts]
        count = sum(map(len, matches))
        check_total(
            "too_many_tags",
            (min(top, self.predictor.tags.size), "tag"),
            (count, "words"),
            MAX_PROBABILITIES,
            "Ask for fewer of each (top), or send less text.",
        )
        parts = self.predictor.cut([[word[0] for word in words] for words in matches])
        tokens = self.predictor.tokens_read(parts)
        self.check_cost(
            tokens * READING,
            "tags",
            f"{plural(count, 'word')} of {plural(len(texts), 'text')}; {tokens:,} tokens are read",
            "Send fewer or shorter texts at once.",
        )
        for scored in self.predictor.score_parts(parts, TOKENS_AT_ONCE):
            words = self._words(texts[scored.sentence], matches[scored.sentence], scored, top)
            for first in range(0, len(scored.log_probabilities), WORDS_AT_ONCE):
                some = list(islice(words, WORDS_AT_ONCE))
                yield TaggedPart(
                    scored.sentence,
                    scored.first + first,
                    [word.tag for word in some],
                    ",".join(word.model_dump_json(exclude_none=True) for word in some),
                    begins=first == 0,
                )

    def _words(
        self, text: str, words: Sequence[re.Match[str]], scored: ScoredWords, top: int
    ) -> Iterator[TaggedWord]:
        names = self.predictor.tags.labels.names
        end = words[scored.first - 1].end() if scored.first else 0
        for word, scores in zip(words[scored.first :], scored.log_probabilities, strict=False):
            choices = [
                TagChoice(tag=name, probability=round(probability, 6))
                for name, probability in most_probable(names, scores, top)
            ]
            yield TaggedWord(
                before=text[end : word.start()],
                text=word[0],
                tag=choices[0].tag,
                probability=choices[0].probability,
                tags=choices if top > 1 else None,
            )
            end = word.end()

    def answer(self, texts: int, tagged: Iterable[TaggedPart]) -> Iterator[bytes]:
        """The answer for ``texts`` texts as JSON, in chunks."""
        of_texts: list[list[TaggedPart]] = [[] for _ in range(texts)]
        for part in sorted(tagged, key=lambda part: part[:2]):
            of_texts[part.text].append(part)
        texts_told = (
            json_in_parts(
                TaggedText(
                    parts=sum(part.begins for part in parts), spans=self._spans(parts), words=[]
                ),
                "words",
                ([part.written.encode()] for part in parts),
            )
            for parts in of_texts
        )
        answer = TagAnswer(run=self.name, longest=self.predictor.longest, texts=[])
        yield from json_in_parts(answer, "texts", texts_told)

    def _spans(self, parts: Sequence[TaggedPart]) -> list[TaggedSpan] | None:
        if not self._has_spans:
            return None
        tags = [tag for part in parts for tag in part.tags]
        return [
            TaggedSpan(kind=kind, first=first, count=behind - first)
            for kind, first, behind in spans_of(tags)
        ]


@asks(ServedTagger, "Tag the words of texts")
async def tag(service: Service, request: TagRequest, client: str) -> bytes:
    """Returns the most probable tag of each word and its probability; with `top`, also the next
    most probable tags. If the tags have the form B-X, I-X and O, also the spans that they mark."""
    texts = service.check_texts(request.text, client)
    run = service.catalogue.of(ServedTagger, request.run)
    parts = await run.asking.all(client, run.tag(texts, request.top))
    service.meters.count_characters(run.name, client, sum(map(len, texts)))
    return b"".join(await service.texts.all(client, run.answer(len(texts), parts)))
