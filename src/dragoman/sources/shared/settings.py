"""What a model reads, as the section ``source`` of a recipe says it: text, frames of sound,
pictures in patches, or a line of text in a picture.

Of what is no text the section also says how the model's front end makes rows of the model's width
of it (``models/front_ends.py``).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from dragoman.settings import Settings

COEFFICIENTS = 13
"""Of a frame of CMU Sphinx."""


class SourceSettings(Settings):
    """What is read."""

    kind: str
    """The kind of input. text: text; frames: sound, as mel bands of its spectrum; picture:
    pictures, as patches; line: a line of text in a picture, as columns of pixels."""

    is_text: ClassVar[bool] = False
    units: ClassVar[str] = "rows"
    """What is counted of it."""


class TextSource(SourceSettings):
    """Text, as tokens of a vocabulary."""

    kind: Literal["text"] = "text"
    """The kind of input. text: text; frames: sound, as mel bands of its spectrum; picture:
    pictures, as patches; line: a line of text in a picture, as columns of pixels."""

    is_text: ClassVar[bool] = True
    units: ClassVar[str] = "tokens"


class RowsSource(SourceSettings):
    """Rows of numbers."""

    noun_of_row: ClassVar[str] = "row"
    """What one of its rows is called."""
    raws: ClassVar[str] = "files"
    """What its examples are called, several of them."""
    hub_tags: ClassVar[Mapping[bool, str]] = {}
    """What model hubs call a model that writes, and one that labels."""
    of_front_end: ClassVar[frozenset[str]] = frozenset()
    """The settings of the model's front end alone: rows are the same whatever they are."""

    @property
    @abstractmethod
    def row_width(self) -> int:
        """F, the numbers of a row."""

    @property
    def shortens(self) -> int:
        """How many rows the front end makes one of."""
        return 1


class FramesSource(RowsSource):
    """Recordings, as the energy in the mel bands of their spectrum, frame by frame."""

    kind: Literal["frames"] = "frames"
    """The kind of input. text: text; frames: sound, as mel bands of its spectrum; picture:
    pictures, as patches; line: a line of text in a picture, as columns of pixels."""
    features: Literal["log-mel", "mfcc"] = "log-mel"
    """What a frame is. log-mel: the logarithm of the energy in each band; mfcc: the 13 cepstral
    coefficients of CMU Sphinx, for corpora that come as its feature files (.mfc), which such a
    model reads in place of recordings. For mfcc, rate, bands, window_ms and hop_ms keep their
    defaults."""
    rate: int = Field(16_000, ge=1_000, le=192_000)
    """The sample rate of the recordings, in Hz."""
    bands: int = Field(80, ge=4, le=512)
    """The number of bands, evenly spaced on the mel scale; each frame has one number per band."""
    window_ms: float = Field(25.0, ge=1, le=1_000)
    """The length of a frame, in milliseconds."""
    hop_ms: float = Field(10.0, ge=1, le=1_000)
    """The distance between the beginnings of two frames, in milliseconds."""
    normalise: Literal["bands", "recording"] = "bands"
    """How a recording is normalised to mean 0 and standard deviation 1. bands: each band
    separately, which removes the effect of the microphone and everything that does not change over
    time; recording: all bands together, which keeps both. Use bands for speech, and recording for
    sounds that differ in pitch or timbre."""
    subsample: Literal[2, 4] = 4
    """The number of frames that are combined into one row of the model, by one convolution for each
    factor of two."""
    channels: int = Field(32, ge=1, le=1_024)
    """The number of channels of these convolutions."""
    band_heads: int = Field(0, ge=0, le=64)
    """Heads of an attention over the frames, before the convolutions. Each head reads its own slice
    of the bands: with 80 bands and 4 heads, 20 bands. Its memory grows with the square of the
    frames of a recording. 0: there is none."""

    units: ClassVar[str] = "frames"
    noun_of_row: ClassVar[str] = "frame"
    raws: ClassVar[str] = "recordings"
    of_front_end: ClassVar[frozenset[str]] = frozenset({"subsample", "channels", "band_heads"})
    hub_tags: ClassVar[Mapping[bool, str]] = {
        True: "automatic-speech-recognition",
        False: "audio-classification",
    }

    @property
    def row_width(self) -> int:
        return self.bands if self.features == "log-mel" else COEFFICIENTS

    @property
    def shortens(self) -> int:
        return self.subsample

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.hop_ms > self.window_ms:
            raise ValueError(
                f"frames of {self.window_ms:g} ms every {self.hop_ms:g} ms leave sound between "
                "them unread: set hop_ms to window_ms at most"
            )
        if self.band_heads and self.features == "mfcc":
            raise ValueError(
                'band_heads divides bands, and features = "mfcc" has none: set it to 0, or '
                'features to "log-mel"'
            )
        if self.band_heads and self.bands % self.band_heads:
            raise ValueError(
                f"{self.bands} bands cannot be divided among {self.band_heads} heads: set "
                "band_heads to a number that divides bands"
            )
        for name in ("rate", "bands", "window_ms", "hop_ms"):
            default = type(self).model_fields[name].default
            if self.features == "mfcc" and getattr(self, name) != default:
                raise ValueError(
                    f'{name} cannot be set for features = "mfcc", which are as CMU Sphinx has '
                    "them: leave it out"
                )
        return self


class PictureSource(RowsSource):
    """Pictures of one size, cut into square patches, row by row."""

    kind: Literal["picture"] = "picture"
    """The kind of input. text: text; frames: sound, as mel bands of its spectrum; picture:
    pictures, as patches; line: a line of text in a picture, as columns of pixels."""
    height: int = Field(28, ge=1, le=4_096)
    """The height of a picture, in pixels."""
    width: int = Field(28, ge=1, le=4_096)
    """The width of a picture, in pixels."""
    channels: Literal[1, 3] = 1
    """The number of colour channels: 1 for grey, 3 for colour."""
    patch: int = Field(4, ge=1, le=1_024)
    """The side length of a patch, in pixels."""
    stem: Literal["linear", "convolutions"] = "linear"
    """What turns a patch into a row of the model. linear: one linear map of its pixels (Vision
    Transformer); convolutions: one 3 x 3 convolution for each factor of two in the side length of
    the patch, which also sees pixels above and to the left of it (Xiao et al., 2021). Such a model
    learns faster."""
    stem_channels: int = Field(32, ge=1, le=1_024)
    """The number of channels of these convolutions."""

    of_front_end: ClassVar[frozenset[str]] = frozenset({"stem", "stem_channels"})
    units: ClassVar[str] = "patches"
    noun_of_row: ClassVar[str] = "patch"
    raws: ClassVar[str] = "pictures"
    hub_tags: ClassVar[Mapping[bool, str]] = {
        True: "image-to-text",
        False: "image-classification",
    }

    @property
    def row_width(self) -> int:
        return self.patch * self.patch * self.channels

    @property
    def patches(self) -> int:
        """Of one picture."""
        down, across = self.grid
        return down * across

    @property
    def grid(self) -> tuple[int, int]:
        """How many patches there are from top to bottom, and from left to right."""
        return self.height // self.patch, self.width // self.patch

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.height % self.patch or self.width % self.patch:
            raise ValueError(
                f"a picture of {self.height} x {self.width} pixels cannot be cut into patches of "
                f"{self.patch} x {self.patch}: set patch to a number that divides both"
            )
        if self.stem == "convolutions" and self.patch not in (2, 4, 8, 16, 32):
            raise ValueError(
                'stem = "convolutions" halves a picture until a patch is one row: set patch to 2, '
                f"4, 8, 16 or 32 (it is {self.patch})"
            )
        return self


class DrawingSettings(Settings):
    """How the program draws the texts of a corpus with ``holds = "drawn"``. Each text is drawn the
    same way each time; what varies from text to text is drawn at random, between these limits."""

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
            raise ValueError('fonts names none: write fonts = [""] for the one of Pillow')
        if self.smallest > self.largest:
            raise ValueError("the largest size is smaller than the smallest: set largest too")
        return self


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
    of_front_end: ClassVar[frozenset[str]] = frozenset({"subsample", "channels"})
    hub_tags: ClassVar[Mapping[bool, str]] = {
        True: "image-to-text",
        False: "image-classification",
    }

    @property
    def row_width(self) -> int:
        return self.height

    @property
    def shortens(self) -> int:
        return self.subsample


SOURCES: dict[str, type[SourceSettings]] = {
    "text": TextSource,
    "frames": FramesSource,
    "picture": PictureSource,
    "line": LineSource,
}
"""By the kind that a recipe names."""


def _kind_of(given: Any) -> Any:
    kind = given.get("kind", "text") if isinstance(given, dict) else getattr(given, "kind", "")
    return kind if isinstance(kind, str) else ""


if TYPE_CHECKING:
    AnySource = SourceSettings
else:
    AnySource = Annotated[
        Annotated[TextSource, Tag("text")]
        | Annotated[FramesSource, Tag("frames")]
        | Annotated[PictureSource, Tag("picture")]
        | Annotated[LineSource, Tag("line")],
        Discriminator(
            _kind_of,
            custom_error_type="unknown_kind",
            custom_error_message=f"there is no such kind of source; kinds are {', '.join(SOURCES)}",
        ),
    ]
"""A field that holds what is read, told by its ``kind``."""
