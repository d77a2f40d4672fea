"""The settings of recordings as a source: their frames, and the model's front end for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from dragoman.sources.shared.settings import FrontEndKind, RowsSource

COEFFICIENTS = 13
"""The numbers in a frame of CMU Sphinx."""


class FramesSource(RowsSource):
    """Recordings, as the energy in the mel bands of their spectrum, frame by frame."""

    kind: Literal["frames"] = "frames"
    """The kind of input. text: text; frames: sound, as mel bands of its spectrum; picture:
    pictures, as patches; line: a line of text in a picture, as columns of pixels."""
    features: Literal["log-mel", "mfcc"] = "log-mel"
    """The content of a frame. log-mel: the logarithm of the energy in each band; mfcc: the 13
    cepstral coefficients of CMU Sphinx, for corpora that come as its feature files (.mfc), which
    such a model reads instead of recordings. For mfcc, rate, bands, window_ms and hop_ms keep their
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
    """The way in which a recording is normalised to mean 0 and standard deviation 1. bands: each
    band separately, which removes the effect of the microphone and everything that does not change
    over time; recording: all bands together, which keeps both. Use bands for speech, and recording
    for sounds that differ in pitch or timbre."""
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
    listed_as: ClassVar[str | None] = "spoken"
    without_groups: ClassVar[str] = (
        "warning: the speakers are not known, so a speaker may be in training and in test, and "
        "scores may be too high. Set --groups PATTERN to find the speaker in the file name"
    )
    varied_by: ClassVar[frozenset[str]] = frozenset({"spec_augment", "synthetic_voices"})
    allows_ctc: ClassVar[bool] = True
    drawn_for: ClassVar[frozenset[bool]] = frozenset({True})
    of_front_end: ClassVar[frozenset[str]] = frozenset({"subsample", "channels", "band_heads"})
    hub_tags: ClassVar[Mapping[bool, str]] = {
        True: "automatic-speech-recognition",
        False: "audio-classification",
    }

    @property
    def row_width(self) -> int:
        return self.bands if self.has_bands else COEFFICIENTS

    @property
    def has_bands(self) -> bool:
        return self.features == "log-mel"

    def tells(self, source: str, target: str) -> bool:
        return True

    @property
    def takes(self) -> Mapping[str, int]:
        return {"rate": self.rate}

    def most_rows(self, longest: int, seconds: float) -> int:
        """Return the rows of all these seconds, because a header may be wrong."""
        return 1 + int(seconds * 1000 / self.hop_ms)

    @property
    def shortens(self) -> int:
        return self.subsample

    @property
    def front_end(self) -> FrontEndKind:
        sizes = {"channels": self.channels, "subsample": self.subsample, "heads": self.band_heads}
        return FrontEndKind("frames", {"row_width": self.row_width, **sizes})

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.hop_ms > self.window_ms:
            raise ValueError(
                f"frames of {self.window_ms:g} ms every {self.hop_ms:g} ms skip sound between "
                "them. Set hop_ms to at most window_ms"
            )
        if self.band_heads and self.features == "mfcc":
            raise ValueError(
                'band_heads needs bands, which features = "mfcc" does not have. Set it to 0, or '
                'features to "log-mel"'
            )
        if self.band_heads and self.bands % self.band_heads:
            raise ValueError(
                f"{self.bands} bands cannot be divided among {self.band_heads} heads. Set "
                "band_heads to a number that divides bands"
            )
        for name in ("rate", "bands", "window_ms", "hop_ms"):
            default = type(self).model_fields[name].default
            if self.features == "mfcc" and getattr(self, name) != default:
                raise ValueError(
                    f'{name} has no effect with features = "mfcc", which CMU Sphinx defines. '
                    "Leave it out"
                )
        return self
