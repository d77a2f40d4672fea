"""The predictor of pictures: it reads captions and paints pictures.

    painter = dragoman.Painter(dragoman.Run.open("runs/shapes"))
    (picture,) = painter.paint("a small red circle above a large blue square")
    picture.save("circle.png", scale=8)

A search writes the codes of a picture, from left to right and from top to bottom; the network that
has learned the codes decodes them.

    judge = dragoman.Judge(dragoman.Run.open("runs/captions"))
    best, *others = painter.paint("a small red circle", count=8, sampling=draw, judge=judge)

A judge is another run, which reads a picture and writes its caption, or has a label for each
caption. The best of several pictures of a caption is the one for which the caption is the most
probable to the judge (Ramesh et al., 2021, "Zero-Shot Text-to-Image Generation", section 2.6, with
a model of captions instead of CLIP).
"""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dragoman.base.atomic import write_bytes
from dragoman.base.errors import DataError, RunError
from dragoman.base.wording import plural, shorten
from dragoman.engine.predictor import SearchingPredictor, parts
from dragoman.engine.settings import TranslatorSettings, with_beams
from dragoman.forms.lexicon import Lexicon, words_in
from dragoman.pictures.bitmaps import png_of
from dragoman.runs.run import Run
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.request import Request
from dragoman.search.settings import SamplingSettings, SearchSettings
from dragoman.sources.picture.codes_form import CodesForm

MOST = 64
"""The most pictures of one caption."""
LARGEST_SCALE = 64

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class PaintedPicture:
    """A picture and its codes. ``str(picture)`` gives its caption."""

    caption: str
    pixels: Bytes = field(repr=False, compare=False)
    """The pixels (H, W, C), with one channel or three."""
    ids: tuple[int, ...]
    """The symbols that the model wrote: codes as numbers of the vocabulary."""
    codes: tuple[int, ...]
    """The codes of these symbols, from 0."""
    score: float
    """The log-probability of the symbols, in nats."""
    token_log_probabilities: tuple[float, ...] = field(repr=False)
    """The log-probability of each code, in nats."""

    @property
    def text(self) -> str:
        """The codes as numbers, separated by spaces."""
        return " ".join(map(str, self.codes))

    def png(self, scale: int = 1) -> bytes:
        """Return the picture as a PNG file in which each pixel is a square of ``scale`` x ``scale``
        pixels. Errors: ``DataError`` for a scale that is not from 1 to 64."""
        return png_of(enlarge(self.pixels, scale))

    def save(self, path: str | Path, scale: int = 1) -> None:
        """Write ``png`` to a file. Errors: ``FileError`` if that fails."""
        write_bytes(Path(path), self.png(scale))

    def __str__(self) -> str:
        return self.caption


class Painter(SearchingPredictor[list[PaintedPicture], list[PaintedPicture]]):
    """A trained painter. Do not use it from several threads at once."""

    asked_of: ClassVar[tuple[str, str]] = ("painting", "which does not paint")

    @property
    def form(self) -> CodesForm:
        """The form that converts between pictures and their codes."""
        return CodesForm.of(self.engine.target)

    def paint(self, caption: str, **options: Any) -> list[PaintedPicture]:
        """Return the pictures of one caption. The options are those of ``each``."""
        return self(caption, **options)

    def each(
        self,
        given: Iterable[str],
        *,
        count: int = 1,
        beam: int | None = None,
        sampling: SamplingSettings | None = None,
        judge: Judge | None = None,
    ) -> Iterator[list[PaintedPicture]]:
        """Yield the most probable picture of each caption, or the ``count`` most probable ones;
        with ``sampling``, ``count`` pictures drawn at random. A ``judge`` sorts them, best first.
        Errors: ``DataError`` for a caption that cannot be read, ``RecipeError`` for a beam that the
        search refuses."""
        settings = painting_settings(self.engine.search_settings, count, beam, sampling)
        return self.stream(given, settings, judge)

    def stream(
        self,
        given: Iterable[str],
        settings: SearchSettings | None = None,
        judge: Judge | None = None,
    ) -> Iterator[list[PaintedPicture]]:
        """Yield the pictures of each caption, in the order of the captions. The most probable
        picture is first, or the one that the ``judge`` rates best. If pictures are drawn at random,
        a repeated caption gets new pictures."""
        anew = Anew(settings or self.engine.search_settings)
        for part in parts(given, self.together):
            pictures = self.answers(part, (self.ask(caption, anew(caption)) for caption in part))
            yield from pictures if judge is None else by_judge(list(pictures), judge)

    def ask(self, given: str, settings: SearchSettings | None = None) -> Request:
        """Make the search request for a caption. Errors: ``DataError`` if it is empty or too
        long."""
        shown, longest = repr(shorten(given, 60)), self.engine.longest
        if not given.strip():
            raise DataError("the caption is empty. Describe the picture")
        (values,) = self.engine.source.read([given])
        if len(values) > longest:
            raise DataError(
                f"{shown} has {plural(len(values), 'token')}, and the model reads {longest:,} at "
                "most. Shorten it"
            )
        return self.engine.request(values, settings, raw=given)

    def answer(self, given: str, hypotheses: Sequence[Hypothesis]) -> list[PaintedPicture]:
        """Return the picture of each hypothesis."""
        pixels = self.form.pictures([output.tokens for output in hypotheses])
        first = self.form.symbols.first
        return [
            PaintedPicture(
                given, picture, output.tokens, tuple(token - first for token in output.tokens),
                output.log_probability, output.token_log_probabilities[: len(output.tokens)],
            )
            for output, picture in zip(hypotheses, pixels, strict=True)
        ]  # fmt: skip

    # ---- looking

    def own_output(self, text: str, prefix: str = "") -> PaintedPicture:
        """Return the picture of the caption ``text``, for figures. Errors: ``DataError`` for a
        prefix."""
        if prefix:
            raise DataError("pictures cannot have a prefix. Leave it out")
        return self(text)[0]


def unknown_words(lexicon: Lexicon | None, captions: Sequence[str]) -> list[str]:
    """Return the words of ``captions`` that are not in the ``lexicon`` of the training captions,
    each once: the model does not know what to paint for them. The list is empty without a
    lexicon."""
    if lexicon is None:
        return []
    words = (caption[slice(*span)] for caption in captions for span in words_in(caption))
    return list(dict.fromkeys(word for word in words if not lexicon.has(word)))


def painting_settings(
    own: SearchSettings, count: int, beam: int | None, sampling: SamplingSettings | None
) -> SearchSettings:
    """Return the search settings ``own`` of a run, changed for ``count`` pictures of a caption.
    With ``sampling``, the pictures are drawn at random; otherwise ``beam``, if given, replaces the
    run's own.

    Errors: ``DataError`` for too many pictures, ``RecipeError`` for settings that contradict each
    other.
    """
    if not 1 <= count <= MOST:
        raise DataError(f"{count:,} pictures of a caption were requested. Use 1 to {MOST}")
    if sampling is not None:
        return own.model_copy(update={"sampling": sampling, "n_best": count})
    return with_beams(own.model_copy(update={"sampling": None, "n_best": 1}), beam, count)


class Anew:
    """Gives the search settings for one caption after another. A random picture depends on the seed
    and the caption, so a repeated caption gets the next seed."""

    def __init__(self, settings: SearchSettings) -> None:
        self._settings = settings
        self._times: Counter[str] = Counter()

    def __call__(self, caption: str) -> SearchSettings:
        """Return the search settings for the next caption."""
        own, times = self._settings, self._times[caption]
        self._times[caption] += 1
        if own.sampling is None or not times:
            return own
        seed = (own.sampling.seed + times) % 2**63
        return own.model_copy(update={"sampling": own.sampling.model_copy(update={"seed": seed})})


def by_judge(
    painted: Sequence[Sequence[PaintedPicture]], judge: Judge
) -> list[list[PaintedPicture]]:
    """Sort the pictures of each caption by their score from a judge, best first. ``painted``: the
    pictures of each caption. Errors: ``DataError`` for a caption that the judge cannot read."""
    every = [picture for pictures in painted for picture in pictures]
    pixels = [picture.pixels for picture in every]
    captions = [picture.caption for picture in every]
    liked = iter(judge.log_probabilities(pixels, captions))
    ranked = []
    for pictures in painted:
        own = list(islice(liked, len(pictures)))
        order = sorted(range(len(pictures)), key=lambda number: -own[number])
        ranked.append([pictures[number] for number in order])
    return ranked


def enlarge(pixels: Bytes, scale: int) -> Bytes:
    """Repeat each pixel ``scale`` x ``scale`` times. Errors: ``DataError`` for a wrong scale."""
    if not 1 <= scale <= LARGEST_SCALE:
        raise DataError(f"the scale is {scale}. Use 1 to {LARGEST_SCALE}")
    return pixels.repeat(scale, axis=0).repeat(scale, axis=1)


def in_a_row(pictures: Sequence[Bytes], gap: int = 2) -> Bytes:
    """Join pictures of the same height side by side, with ``gap`` white pixels between them."""
    height, _, channels = pictures[0].shape
    white = np.full((height, gap, channels), 255, np.uint8)
    return np.concatenate([part for picture in pictures for part in (picture, white)][:-1], axis=1)


class Judge:
    """A finished run that reads pictures, and says how well captions fit them. Do not use it from
    several threads at once."""

    def __init__(self, run: Run, precision: str = "auto") -> None:
        """Errors: ``RunError``, also for a run that does not read pictures."""
        self.run = run
        task, patches = self.run.task, self.run.recipe.source.patches
        if task.name not in ("translation", "classification") or not patches:
            raise RunError(
                f"{self.run.folder} cannot judge pictures. Use a run that reads pictures and "
                "writes their captions or labels"
            )
        self._labels = task.name == "classification"
        settings = TranslatorSettings.model_validate({"precision": precision})
        self._reads = run.open_predictor(None if self._labels else settings)

    def captions(self, pictures: Sequence[Bytes]) -> list[str]:
        """Return the caption that the judge gives each picture (H, W, C)."""
        with tempfile.TemporaryDirectory() as folder:
            files = _write_pictures(pictures, Path(folder))
            if self._labels:
                return [guess.label for guess in self._reads(files)]
            return [translation.text for translation in self._reads.stream(files)]

    def log_probabilities(self, pictures: Sequence[Bytes], captions: Sequence[str]) -> list[float]:
        """Return, for each picture (H, W, C), log P of its caption, in nats. It is minus infinity
        if the judge has labels and the caption is not one of them. Errors: ``DataError`` for a
        caption that cannot be read."""
        with tempfile.TemporaryDirectory() as folder:
            files = _write_pictures(pictures, Path(folder))
            if not self._labels:
                scored = self._reads.score(zip(files, captions, strict=True))
                return [math.fsum(hypothesis.token_log_probabilities) for hypothesis in scored]
            labels = {name: number for number, name in enumerate(self._reads.labels.names)}
            return [
                float(guess.log_probabilities[labels[caption]]) if caption in labels else -math.inf
                for guess, caption in zip(self._reads(files), captions, strict=True)
            ]


def _write_pictures(pictures: Sequence[Bytes], folder: Path) -> list[str]:
    """Write pictures into files, from which a run reads them. Returns the names of the files."""
    files = []
    for number, picture in enumerate(pictures):
        file = folder / f"{number}.png"
        file.write_bytes(png_of(picture))
        files.append(str(file))
    return files
