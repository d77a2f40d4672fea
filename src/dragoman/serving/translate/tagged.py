"""A translated text with the tags of its original: each in its sentence, or between two.

Sentences that have tags inside are aligned by the model; all others only keep theirs in front and
behind.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from dragoman.engine.alignment_head import Alignment, TokenPair
from dragoman.formats.html.document import Running, Tag
from dragoman.forms.passage import Passage
from dragoman.search.hypothesis import Hypothesis
from dragoman.serving.outputs.hypothesis import texts_of, words_in
from dragoman.serving.queue.fair_executor import FairExecutor
from dragoman.serving.service.served_run import ServedRun
from dragoman.serving.translate.tag_projection import project


@dataclass(frozen=True)
class Translated:
    """A running text, how it was cut into sentences, and the translation of each."""

    text: Running
    passage: Passage
    found: Sequence[Hypothesis]


Places: TypeAlias = list[tuple[int, int]]
"""Where each sentence begins and ends in its text."""


@dataclass(frozen=True)
class _Plan:
    """Where the sentences of a text stand, and which tags stand inside them."""

    one: Translated
    places: Places
    inside: dict[int, Sequence[Tag]]
    """By the number of the sentence."""
    pairs: list[TokenPair]
    """The sentences with tags inside, to be aligned."""


async def with_tags(
    run: ServedRun, translated: Sequence[Translated], texts: FairExecutor, client: str
) -> list[list[str]]:
    """Each translation, cut where the tags of its text stand: one part more than tags."""
    plans = await texts.all(client, map(_plan, translated))
    found = iter(await run.align([pair for plan in plans for pair in plan.pairs], client))
    alignments = [[next(found) for _ in plan.pairs] for plan in plans]
    answers = (_divided(run, *both) for both in zip(plans, alignments, strict=True))
    return await texts.all(client, answers)


def _plan(one: Translated) -> _Plan:
    places = _places(one)
    inside = _inside(one, places)
    pieces = one.passage.pieces
    pairs: list[TokenPair] = [(pieces[s].tokens, one.found[s].tokens) for s in inside]
    return _Plan(one, places, inside, pairs)


def _divided(run: ServedRun, plan: _Plan, alignments: Sequence[Alignment]) -> list[str]:
    one, source, target = plan.one, run.engine.source, run.engine.target
    spoken = [[text] for text in texts_of(target, one.found)]
    for (s, tags), alignment in zip(plan.inside.items(), alignments, strict=True):
        piece, begin = one.passage.pieces[s], plan.places[s][0]
        spoken[s] = project(
            [tag.moved(-begin) for tag in tags],
            piece.text,
            source.shown(piece.tokens),
            words_in(target, one.found[s], spoken[s][0]),
            alignment,
        )
    return _joined(one, plan.places, spoken)


def _places(one: Translated) -> Places:
    places, end = [], 0
    for piece in one.passage.pieces:
        # A part of a very long sentence may be written a little differently: then about here.
        begin = max(end, one.text.text.find(piece.text, end))
        end = min(len(one.text.text), begin + len(piece.text))
        places.append((begin, end))
    return places


def _inside(one: Translated, places: Places) -> dict[int, Sequence[Tag]]:
    """The tags that stand inside a sentence, by its number."""
    found: dict[int, Sequence[Tag]] = {}
    of_tags = [tag.place for tag in one.text.tags]
    for number, (begin, end) in enumerate(places):
        first, last = bisect_right(of_tags, begin), bisect_left(of_tags, end)
        if first < last:
            found[number] = one.text.tags[first:last]
    return found


def _joined(one: Translated, places: Places, spoken: Sequence[Sequence[str]]) -> list[str]:
    """Sentences, each cut at the tags inside it, and what stands between them."""
    parts = [""]
    tags, text = one.text.tags, one.text.text
    first, end = 0, 0  # the first tag that has no place yet; the end of the sentence before

    def put(pieces: Sequence[str]) -> None:
        parts[-1] += pieces[0]
        parts.extend(pieces[1:])

    gaps = [one.passage.before, *(piece.behind for piece in one.passage.pieces)]
    ends = [*places, (len(text), len(text))]
    for (begin, following_end), gap, sentence in zip(ends, gaps, [*spoken, [""]], strict=True):
        last = first
        while last < len(tags) and tags[last].place <= begin:
            last += 1
        put(_gap(gap, tags[first:last], text[end:begin], end))
        put(sentence)
        first = last + len(sentence) - 1
        end = following_end
    put([""] * (len(tags) - first + 1))
    return parts


def _gap(gap: str, tags: Sequence[Tag], source: str, begin: int) -> list[str]:
    """What stands between two sentences, cut at its tags. ``source``: what stood there before."""
    if gap == source:
        cuts = [tag.place - begin for tag in tags]
    else:
        # Another space than before: end tags keep to the sentence that they end.
        ended = next((n for n, tag in enumerate(tags) if not tag.closes), len(tags))
        cuts = [0 if n < ended else len(gap) for n in range(len(tags))]
    edges = [0, *cuts, len(gap)]
    return [gap[a:b] for a, b in pairwise(edges)]
