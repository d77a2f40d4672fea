"""The front end for lines of text: that of frames, over columns of pixels, in which paper is
zero."""

from __future__ import annotations

from torch import Tensor

from dragoman.sources.frames.front_end import FramesFrontEnd
from dragoman.sources.shared.front_end import WHITE


class LineFrontEnd(FramesFrontEnd):
    """Columns of pixels, of which two, four or eight become one row: bytes from paper (0) to ink
    (255), which become 0 to 2."""

    def scaled(self, values: Tensor) -> Tensor:
        return values * (2 / WHITE)
