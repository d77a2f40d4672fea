"""Word alignment of given sentence pairs: by a run's attention, or by statistics of its training
text.

Words are separated by spaces. ``engine/alignment_head.py`` computes links from attention, and
``alignment.py`` from statistics.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from time import monotonic

import numpy as np

from dragoman.alignment import MAX_CELLS, ROUNDS, StatisticalAligner
from dragoman.base.errors import DragomanError, RunError
from dragoman.base.wording import plural
from dragoman.data.store_writer import store_key
from dragoman.engine.alignment_head import AligningHead, AlignmentScores, HeadLinks
from dragoman.engine.engine import Engine
from dragoman.engine.settings import EngineSettings
from dragoman.forms.form import Form
from dragoman.metrics.alignment import AlignmentQuality, Gold, Links, check_gold
from dragoman.runs.corpora import plain_pairs, token_pairs
from dragoman.runs.prepare import Say, training_key
from dragoman.runs.run import Run
from dragoman.runs.user_cache import cache_folder

logger = logging.getLogger("dragoman")

MAX_TOKENS = 1000
"""The most tokens of a sentence that is aligned: the cost of attention, and of an HMM, grows with
its square."""

TextPair = tuple[str, str]
"""A source sentence and its translation."""

Side = tuple[list[int], list[int]]
"""The tokens of a sentence, and the number of the word that each token belongs to."""


@dataclass(frozen=True)
class MeasuredAligner:
    """Links of some pairs, and their quality compared with human-made links."""

    links: list[Links]
    """The word links of each pair."""
    quality: AlignmentQuality
    how: str
    """The method, how it was chosen, and the pairs on which it was measured."""

    def __str__(self) -> str:
        return f"{self.quality}: {self.how}"


class Aligner:
    """Aligns the words of given pairs by the attention of a run."""

    def __init__(self, engine: Engine, head: AligningHead | None = None) -> None:
        """Prepare alignment by one head, or a mean of heads, of ``engine``. ``head`` defaults to
        the head that was trained to align. If there is none, each pair is aligned by the mean of
        the heads of the layer with the sharpest attention. Errors: ``DragomanError`` for a head
        that the model does not have, or a model without attention to a source."""
        self._engine = engine
        layers = engine.network.attentions_of("cross")
        if not layers:
            raise DragomanError(
                f"a {engine.network.settings.kind} model has no attention over a source, so it "
                "cannot align"
            )
        places = engine.network.settings.longest  # some positions hold end symbols
        self._longest = MAX_TOKENS if places is None else min(MAX_TOKENS, places - 1)
        self.head = head or engine.attention.taught
        if self.head is not None:
            self.head.check(layers)

    @classmethod
    def open(cls, run: Run, head: AligningHead | None = None) -> Aligner:
        """Open the aligner of a run. Errors: those of the constructor, and ``RunError``."""
        return cls(Engine.open(run, EngineSettings(precision="fp32")), head)

    @property
    def description(self) -> str:
        """One line that names the attention that aligns."""
        if self.head is not None:
            return str(self.head)
        return (
            "the mean of the heads of the layer with the sharpest attention, which is a guess. "
            "Set another with --head, or choose by links made by people with --gold"
        )

    def __call__(self, pairs: Sequence[TextPair]) -> Iterator[Links]:
        """Yield the links of each pair, in order."""
        return (links.by(self.head or links.guess) for links in self.look(pairs))

    def measure(
        self, pairs: Sequence[TextPair], gold: Sequence[Gold], development: int
    ) -> MeasuredAligner:
        """Align ``pairs`` and measure the error against ``gold``, the links made by people. If a
        head is given, it is measured on all pairs. Otherwise, the head that does best on the first
        ``development`` pairs is measured on the remaining ones; with 0, the head is chosen and
        measured on all pairs, as an oracle.

        Errors: ``DataError`` for links that do not fit the pairs.
        """
        looked = list(self.look(pairs))
        scores = AlignmentScores.of(looked, gold)
        if self.head is not None:
            best, rest = self.head, scores
            how = f"{best}, on {plural(len(gold), 'pair')}"
        elif not development:
            best, rest = scores.best, scores
            how = f"{best}; an oracle, chosen with the same links of {plural(len(gold), 'pair')}"
        else:
            best, rest = scores.part(0, development).best, scores.part(development)
            how = (
                f"{best}; chosen on the first {development} pairs, measured on the other "
                f"{rest.sentences}. To use it: {best.option}"
            )
        return MeasuredAligner([links.by(best) for links in looked], rest.quality(best), how)

    def look(self, pairs: Sequence[TextPair]) -> Iterator[HeadLinks]:
        """Yield, for each pair and every head, the source word that each target word attends to
        most."""
        sides = _tokenise(self._engine.source, self._engine.target, pairs, self._longest)
        weights = chain.from_iterable(
            self._engine.attention.cross([(s[0], t[0]) for s, t in sides])
        )
        for pair, (source, target), cross in zip(pairs, sides, weights, strict=True):
            yield HeadLinks.of(cross, source[1], target[1], _sizes(pair))


class TextAligner:
    """Aligns the words of given pairs by statistics of a run's training text: an HMM over its
    tokens in both directions (``alignment.py``)."""

    description = "an HMM over the tokens of the training text, both directions joined"

    def __init__(self, run: Run, say: Say = lambda _: None, *, short: bool = False) -> None:
        """Read the HMM of the run from the user's cache, or learn it. ``say`` receives messages;
        with ``short``, the HMM is learned in some seconds, from less text in fewer rounds.

        Errors: ``RunError`` if the training text is no longer available.
        """
        run.require_text("train")
        self._run = run
        rounds, most = (SHORT_ROUNDS, SHORT_CELLS) if short else (ROUNDS, MAX_CELLS)
        sizes = run.source_text.size, run.target_text.size
        key = store_key(training_key(run), f"HMM {rounds} {most}")
        folder = cache_folder("aligners")
        path = None if folder is None else folder / f"{key}.safetensors"
        if path is not None and path.exists():
            try:
                self._aligner = StatisticalAligner.load(path, *sizes)
                os.utime(path)  # the most recently used are kept
                return
            except (RunError, OSError) as error:
                say(f"{error}; it is learned again")
        say(
            f"learning {'a short' if short else 'the whole'} HMM from the training text"
            + ("" if short else ", which may take minutes")
            + "; --head LAYER.HEAD (such as --head 1.1) aligns by the model's attention at once"
        )
        self._aligner = StatisticalAligner.learn(
            token_pairs(run.recipe, run.source_text, run.target_text), *sizes,
            rounds=rounds, most=most, watch=_progress(rounds, say),
        )  # fmt: skip
        if path is None:
            return
        try:
            self._aligner.save(path)
            # Reload it: a later call, which reads the file, then gives the same links.
            self._aligner = StatisticalAligner.load(path, *sizes)
            tables = sorted(path.parent.glob("*.safetensors"), key=os.path.getmtime)
            for old in tables[:-MAX_KEPT]:
                old.unlink(missing_ok=True)
        except (OSError, DragomanError) as error:
            say(f"the HMM cannot be saved: {error}")

    def __call__(self, pairs: Sequence[TextPair]) -> Iterator[Links]:
        """Yield the links of each pair, in order. Words are linked if any of their tokens are."""
        sides = _tokenise(self._run.source, self._run.target, pairs, MAX_TOKENS)
        token_links = self._aligner.align([(np.array(s[0]), np.array(t[0])) for s, t in sides])
        for links, (source, target) in zip(token_links, sides, strict=True):
            yield frozenset((source[1][s], target[1][t]) for s, t in links)

    def directions(self, pairs: Sequence[TextPair]) -> Iterator[tuple[Links, Links]]:
        """Yield the links of each pair from source to target alone, and those from target to source
        alone."""
        sides = _tokenise(self._run.source, self._run.target, pairs, MAX_TOKENS)
        token_links = self._aligner.directions([(np.array(s[0]), np.array(t[0])) for s, t in sides])
        for both, (source, target) in zip(token_links, sides, strict=True):
            forward, backward = (
                frozenset((source[1][s], target[1][t]) for s, t in links) for links in both
            )
            yield forward, backward

    def measure(self, pairs: Sequence[TextPair], gold: Sequence[Gold]) -> MeasuredAligner:
        """Align ``pairs`` and measure the error against ``gold``, the links made by people. Errors:
        ``DataError`` for links that do not fit the pairs."""
        check_gold(gold, map(_sizes, pairs))
        links = list(self(pairs))
        how = f"{self.description}, on {plural(len(gold), 'pair')}"
        return MeasuredAligner(links, AlignmentQuality.of(links, gold), how)


SHORT_ROUNDS, SHORT_CELLS = 3, 2_000_000
"""The rounds and cells of a short HMM, which serves only for comparison: its AER is 0.021 and
0.080, that of the whole HMM 0.023 and 0.072 (docs/experiments.md)."""
MAX_KEPT = 8
"""The most HMMs in the cache; the least recently used are deleted."""
_TOLD_AFTER = 5.0
"""The least number of seconds between progress messages."""


def _progress(rounds: int, say: Say) -> Callable[[int], None]:
    """Return a function that is called after each round and says through ``say`` how long the
    remaining rounds will take."""
    began = last = monotonic()

    def watch(done: int) -> None:
        nonlocal began, last
        now = monotonic()
        if not done:
            began = now
        elif done < rounds and now - last >= _TOLD_AFTER:
            last = now
            left = (now - began) / done * (rounds - done)
            say(f"round {done} of {rounds}, about {plural(max(1, round(left)), 'second')} left")

    return watch


def better_aligner(run: Run, say: Say = lambda _: None) -> Aligner | TextAligner:
    """Choose the method, attention or statistics, that aligns the dev pairs of a run better, as far
    as this can be judged without human-made links. A head that was trained to align is always
    chosen. ``say`` receives messages about the choice.

    An alignment from source to target and one from target to source agree where both are right (Och
    and Ney, 2003). Only the head that agrees best with the statistics of a short HMM is compared.
    The whole HMM is learned only if statistics are chosen.

    Errors: those of ``Aligner``.
    """
    by_head = Aligner.open(run)
    if by_head.head is not None:
        return by_head
    try:
        run.require_text("train")
        run.require_text("dev")
        pairs = [(pair.source, pair.target) for pair in plain_pairs(run.recipe, "dev")]
    except RunError as error:
        say(f"the HMM, which usually aligns better, cannot be used: {error}")
        return by_head
    pairs = pairs[:: max(1, -(-len(pairs) // MAX_COMPARED))]
    if not pairs:
        say("it has no dev pairs to compare both by")
        return TextAligner(run, say)
    statistics = TextAligner(run, say, short=True)
    looked = list(by_head.look(pairs))
    scores = AlignmentScores.of(looked, [Gold(links, links) for links in statistics(pairs)])
    head = scores.best
    of_head = agreement((links.by(head), links.back_by(head)) for links in looked)
    of_text = agreement(statistics.directions(pairs))
    say(
        f"aligned {plural(len(pairs), 'dev pair')} from source to target and back, to choose the "
        f"method whose two directions agree more: they agree on {100 * of_text:.0f} % of links by "
        f"the HMM, on {100 * of_head:.0f} % by the model's attention ({head}), so "
        f"{'attention' if of_head > of_text else 'the HMM'} aligns"
    )
    if of_text >= of_head:
        return TextAligner(run, say)
    by_head.head = head
    return by_head


MAX_COMPARED = 200
"""The most dev pairs on which the methods are compared."""


def agreement(both: Iterable[tuple[Links, Links]]) -> float:
    """Return the share of links that both directions have in common, relative to their average
    number. ``both``: the links of each pair from source to target, and from target to source."""
    common = every = 0
    for forward, backward in both:
        common += 2 * len(forward & backward)
        every += len(forward) + len(backward)
    return common / max(1, every)


def _tokenise(
    source: Form, target: Form, pairs: Sequence[TextPair], most: int
) -> list[tuple[Side, Side]]:
    """Tokenise both sides of each pair, with the word of each token. A pair with more than ``most``
    tokens on a side gets no tokens and is logged; one that is too long by its characters is not
    tokenised at all (``Form.far_too_long``)."""
    forms = source, target

    def is_far(pair: TextPair) -> bool:
        return any(form.far_too_long(text, most) for form, text in zip(forms, pair, strict=True))

    read = [("", "") if is_far(pair) else pair for pair in pairs]
    cut = (form.tokens_of_words([pair[n] for pair in read]) for n, form in enumerate(forms))
    sides = list(zip(*cut, strict=True))
    for number, pair in enumerate(pairs):
        longest = max(len(tokens) for tokens, _ in sides[number])
        if read[number] is not pair:
            how = f"{max(map(len, pair)):,} characters, more than {most:,} tokens"
        elif longest > most:
            how = f"{longest:,} tokens, more than {most:,}"
        else:
            continue
        logger.warning("a pair of %s, gets no links: %r", how, pair[0][:40])
        sides[number] = ([], []), ([], [])
    return sides


def _sizes(pair: TextPair) -> tuple[int, int]:
    return len(pair[0].split()), len(pair[1].split())
