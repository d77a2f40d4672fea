"""A run that tags words and is served, and its endpoint."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dragoman.metrics.tagging import is_iob, spans_of
from dragoman.plural import plural
from dragoman.runs.run import Run
from dragoman.serving.http.refusals import Refusal
from dragoman.serving.operate.settings import ServeSettings
from dragoman.serving.queue.cost import READING
from dragoman.serving.service.endpoints import Endpoints
from dragoman.serving.service.knowledge import measured_on, short
from dragoman.serving.service.served_run import ServedRun
from dragoman.serving.service.service import Service
from dragoman.serving.tag.schema import (
    TagAnswer,
    TagChoice,
    TaggedSpan,
    TaggedText,
    TaggedWord,
    TagRequest,
)
from dragoman.tasks.tagging.tagger import ScoredWords, Tagger, most_probable

TOGETHER = 1024
"""Tokens that are read in one turn, or one part of a text: others wait no longer than it takes."""
MOST = 100_000
"""Tags in one answer, those of all words together."""

_WORD = re.compile(r"\S+")

TaggedPart = tuple[int, int, list[TaggedWord]]
"""Number of the text, number of the part's first word, and its words."""


class ServedTagger(ServedRun):
    """A run that tags and is served."""

    task, does, path = "tagging", "tags words", "/v1/tag"
    trained = "dragoman train my.tsv --task tagging"
    has_figures = False

    def __init__(self, name: str, tagger: Tagger, settings: ServeSettings) -> None:
        super().__init__(name, tagger.engine, settings, tagger.run, tagger)
        self.tagger = tagger
        self.tagging = self.executor("tag")
        """Where texts are tagged."""
        self._has_spans = is_iob(tagger.tags.counts)

    @classmethod
    def open(cls, run: Run, settings: ServeSettings, name: str) -> ServedTagger:
        return cls(name, Tagger(run, settings), settings)

    @staticmethod
    def examples(run: Run) -> list[str]:
        return sorted(short(measured_on(run)), key=len)

    def tag(self, texts: Sequence[str], top: int) -> Iterator[TaggedPart]:
        """Parts of texts as they come: a turn's worth is read at once. Raises Refusal 400 for more
        tags than one answer holds, and for what costs too much."""
        found = [list(_WORD.finditer(text)) for text in texts]
        count = sum(map(len, found))
        self._check_tags(count, min(top, self.tagger.tags.size))
        parts = self.tagger.cut([[word[0] for word in words] for words in found])
        tokens = self.tagger.tokens_read(parts)
        self.check_cost(
            tokens * READING,
            "tags",
            f"{plural(count, 'word')} of {plural(len(texts), 'text')}; {tokens:,} tokens are read",
            "Send fewer or shorter texts at once.",
        )
        for scored in self.tagger.scored(parts, TOGETHER):
            text, words = texts[scored.sentence], found[scored.sentence]
            yield scored.sentence, scored.first, list(self._words(text, words, scored, top))

    def _check_tags(self, words: int, each: int) -> None:
        if words * each > MOST:
            raise Refusal(
                "too_many_tags",
                f"{plural(each, 'tag')} of each of {words:,} words are {words * each:,}; this "
                f"server gives {MOST:,} at once. Ask for fewer of each (top), or send less text.",
                each=each,
                words=words,
                total=words * each,
                most=MOST,
            )

    def _words(
        self, text: str, words: Sequence[re.Match[str]], scored: ScoredWords, top: int
    ) -> Iterator[TaggedWord]:
        names = self.tagger.tags.labels.names
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

    def answer(self, texts: int, found: Sequence[TaggedPart]) -> TagAnswer:
        """The parts of so many texts, as the API tells them."""
        words: list[list[TaggedWord]] = [[] for _ in range(texts)]
        parts = [0] * texts
        for text, _, some in sorted(found, key=lambda part: part[:2]):
            words[text] += some
            parts[text] += 1
        return TagAnswer(
            run=self.name,
            longest=self.tagger.longest,
            texts=[
                TaggedText(words=some, spans=self._spans(some), parts=count)
                for some, count in zip(words, parts, strict=True)
            ],
        )

    def _spans(self, words: Sequence[TaggedWord]) -> list[TaggedSpan] | None:
        if not self._has_spans:
            return None
        return [
            TaggedSpan(kind=kind, first=first, count=behind - first)
            for kind, first, behind in spans_of([word.tag for word in words])
        ]


def endpoints(service: Service) -> Endpoints:
    """The endpoint of a run that tags words."""
    routes = Endpoints(service)

    @routes.answers("/tag", TagRequest, TagAnswer, "Give each word of a text its tag")
    async def tag(request: TagRequest, client: str) -> bytes:
        """With the probability of the tag; with `top` also the next most probable ones. Where the
        tags are B-X, I-X and O, the spans that they make as well."""
        texts = service.check_texts(request.text, client)
        run = service.catalogue.of(ServedTagger, request.run)
        found = await run.tagging.all(client, run.tag(texts, request.top))
        service.meters.count_characters(run.name, client, sum(map(len, texts)))
        return await service.written(client, lambda: run.answer(len(texts), found))

    return routes
