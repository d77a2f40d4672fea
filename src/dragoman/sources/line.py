"""Pictures of one line of text as a source: the settings, and the form. A raw example is the path
of a file, or a text to be drawn, ``drawn:A dog runs.``. Its rows are the columns of pixels, from
left to right.

Models can learn from drawn texts if there are no pictures. Pillow draws the same text the same
way each time: font, size, place, slant, blur and speckle are drawn by a generator that is seeded
with a hash of the text and of the recipe's seed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from dragoman.base.errors import DataError
from dragoman.base.settings import Settings
from dragoman.base.wording import plural, shorten
from dragoman.sources.picture.form import PictureFilesForm
from dragoman.sources.picture.idx import Bytes
from dragoman.sources.picture.picture_file import library, line_of
from dragoman.sources.shared.files import File, file_of
from dragoman.sources.shared.rows import MOST_ROWS, FrontEndKind, Rows, RowsSource

if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont

_PAPER = 128
"""A picture whose median is darker than this has light letters on dark paper."""
_WIDEST = 2_048
"""The most columns of a picture that is displayed."""


class DrawingSettings(Settings):
    """The drawing of texts of a corpus with ``holds = "drawn"``. Each text is drawn the same way
    each time; the properties that vary from text to text are drawn at random, between these
    limits."""

    fonts: tuple[str, ...] = ("",)
    """The fonts, as files (.ttf, .otf) or as names that the system knows. An empty name stands for
    the font that comes with Pillow, which has Latin letters alone."""
    smallest: float = Field(0.6, ge=0.2, le=1)
    """The smallest size of the letters, as a share of ``source.height``."""
    largest: float = Field(0.85, ge=0.2, le=1)
    """The largest size of the letters."""
    slant: float = Field(0.2, ge=0, le=1)
    """The largest slant, to the right or to the left, as a share of the height."""
    blur: float = Field(0.5, ge=0, le=10)
    """The largest radius of a Gaussian blur, in pixels."""
    speckle: float = Field(0.0, ge=0, le=0.5)
    """The largest share of pixels that become black or white."""
    seed: int = Field(1, ge=0, lt=2**63)
    """The seed of what is drawn at random."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if not self.fonts:
            raise ValueError('fonts is empty. Set fonts = [""] for Pillow\'s own font')
        if self.smallest > self.largest:
            raise ValueError("largest is smaller than smallest. Set both")
        return self


LINE = 4_096
"""At least this many columns of a line are read, even if the training had shorter ones."""


class LineSource(RowsSource):
    """Pictures of one line of text, as columns of pixels from left to right (Salesky et al., 2021,
    "Robust Open-Vocabulary Translation from Visual Text Representations")."""

    kind: Literal["line"] = "line"
    """The kind of input. text: text; frames: sound, as mel bands of its spectrum; picture:
    pictures, as patches; line: a line of text in a picture, as columns of pixels."""
    height: int = Field(24, ge=8, le=256)
    """The height to which a picture is scaled, in pixels. Its width follows."""
    subsample: Literal[2, 4, 8] = 8
    """The number of columns that are combined into one row of the model, by one convolution for
    each factor of two."""
    channels: int = Field(32, ge=1, le=1_024)
    """The number of channels of these convolutions."""
    drawing: DrawingSettings = DrawingSettings()

    units: ClassVar[str] = "columns"
    noun_of_row: ClassVar[str] = "column"
    raws: ClassVar[str] = "pictures"
    draws: ClassVar[bool] = True
    allows_ctc: ClassVar[bool] = True
    of_front_end: ClassVar[frozenset[str]] = frozenset({"subsample", "channels"})

    @property
    def row_width(self) -> int:
        return self.height

    def tells(self, source: str, target: str) -> bool:
        return source == target

    @property
    def takes(self) -> Mapping[str, int]:
        return {"height": self.height, "channels": 1}  # of any width

    def most_rows(self, longest: int, seconds: float) -> int:
        """Return at least ``LINE``; columns beyond the longest are ignored."""
        return max(LINE, longest)

    @property
    def shortens(self) -> int:
        return self.subsample

    @property
    def front_end(self) -> FrontEndKind:
        """The front end of frames, over columns of bytes from paper (0) to ink (255)."""
        sizes = {"channels": self.channels, "subsample": self.subsample, "scale": 2 / 255}
        return FrontEndKind("frames", {"row_width": self.height, **sizes})


class LinesForm(PictureFilesForm):
    """The form of columns of pixels: paper is 0, ink 255."""

    settings: LineSource

    def __init__(self, settings: LineSource) -> None:
        self.settings = settings

    def rows(self, raw: str) -> Rows:
        if not raw.startswith(DRAWN):
            return self._of_file(file_of(raw))
        text = raw.removeprefix(DRAWN)
        return _columns(draw_text(text, self.settings.height, self.settings.drawing))

    def in_turns(self, file: File, most: int | None = None) -> Iterator[Rows | None]:
        yield self._of_file(file, most)

    def _of_file(self, file: File, most: int | None = None) -> Rows:
        return _columns(line_of(file, self.settings.height, MOST_ROWS if most is None else most))

    def picture(self, rows: Rows) -> Bytes:
        """Return the line as it is read, dark on light; a very long one is cut off."""
        return np.ascontiguousarray(255 - rows[:_WIDEST].T[:, :, None].astype(np.uint8))

    def row_labels(self, values: Sequence[int] | Rows, count: int) -> list[str]:
        """Return the pixel column at which each of ``count`` rows of the model begins, as words."""
        return [f"▁{n * self.settings.subsample}px" for n in range(count)]


def _columns(pixels: Bytes) -> Bytes:
    """Turn (H, W) of light and dark into (W, H) of paper and ink."""
    is_dark = np.median(pixels) < _PAPER
    return np.ascontiguousarray((pixels if is_dark else 255 - pixels).T)


DRAWN = "drawn:"
"""The beginning of a raw example that is a text to be drawn."""

MOST_LETTERS = 4_000
"""The most letters of a text."""
_NO_CHARACTER = "\uffff"
"""A character that no font has: it is drawn as the box of missing letters."""
_SHOWN = 60


def draw_text(text: str, height: int, settings: DrawingSettings) -> Bytes:
    """Draw a text as (height, W) pixels, black on white.

    Errors: ``DataError`` for a text without a letter or with too many, for a missing font, and
    for a font with less than half of the letters.
    """
    text = " ".join(text.split())
    if not text:
        raise DataError("an empty text cannot be drawn")
    if len(text) > MOST_LETTERS:
        raise DataError(f"a text has {len(text):,} letters; at most {MOST_LETTERS:,} can be drawn")
    draws = _generator(text, settings.seed)
    name = settings.fonts[int(draws.integers(len(settings.fonts)))]
    size = max(1, round(height * draws.uniform(settings.smallest, settings.largest)))
    font = _font(name, size)
    _check_letters(text, font)
    left, top, right, bottom = font.getbbox(text)
    while bottom - top > height and size > 1:  # signs above and below letters need room
        size -= 1
        font = _font(name, size)
        left, top, right, bottom = font.getbbox(text)
    if left >= right or top >= bottom:
        raise DataError(f"{text!r} has no visible letter and cannot be drawn")
    slant = draws.uniform(-settings.slant, settings.slant)
    blank = height // 4
    lean = abs(slant) * height
    above = draws.uniform(0.25, 0.75) * (height - (bottom - top))
    width = int(np.ceil(right - left + 2 * blank + lean))
    from PIL import ImageDraw, ImageFilter

    image = library().new("L", (width, height), 255)
    place = (blank + (lean if slant < 0 else 0) - left, above - top)
    ImageDraw.Draw(image).text(place, text, font=font, fill=0)
    if slant:
        across = (1, slant, -slant * height, 0, 1, 0)  # the foot of a letter stays
        image = image.transform(
            image.size,
            library().Transform.AFFINE,
            across,
            library().Resampling.BILINEAR,
            fillcolor=255,
        )
    if radius := draws.uniform(0, settings.blur):
        image = image.filter(ImageFilter.GaussianBlur(radius))
    pixels = np.array(image, np.uint8)
    if share := draws.uniform(0, settings.speckle):
        hit = draws.random(pixels.shape) < share
        pixels[hit] = draws.choice(np.array([0, 255], np.uint8), int(hit.sum()))
    return pixels


def _generator(text: str, seed: int) -> np.random.Generator:
    key = f"{seed} {text}".encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(key, digest_size=16).digest()
    return np.random.default_rng(int.from_bytes(digest, "big"))


@lru_cache(maxsize=256)
def _font(name: str, size: int) -> FreeTypeFont:
    """Return a font. Errors: ``DataError`` if it does not exist."""
    library()
    from PIL import ImageFont

    try:
        font = ImageFont.truetype(name, size) if name else ImageFont.load_default(size)
    except OSError as error:
        raise DataError(
            f"there is no font {name} that can be read. Set a file (.ttf, .otf) in "
            "source.drawing.fonts"
        ) from error
    if not isinstance(font, ImageFont.FreeTypeFont):
        raise DataError(
            "this Pillow was built without FreeType and cannot draw text. Install a Pillow wheel"
        )
    return font


def _check_letters(text: str, font: FreeTypeFont) -> None:
    """Raise ``DataError`` if the font has less than half of the letters."""
    letters = text.replace(" ", "")
    missing = [letter for letter in letters if not _has(font, letter)]
    if 2 * len(missing) > len(letters):
        name, style = font.getname()
        raise DataError(
            f"{shorten(text, _SHOWN)}: the font {name} {style} has "
            f"{plural(len(letters) - len(missing), 'letter')} of {len(letters):,}, and lacks "
            f"{missing[0]!r}. Set a font that has them in source.drawing.fonts"
        )


@lru_cache(maxsize=1 << 16)
def _has(font: FreeTypeFont, letter: str) -> bool:
    return bytes(font.getmask(letter)) != bytes(font.getmask(_NO_CHARACTER))
