"""Marks tests of PNG files, which need a font: a machine without any says that it skips them."""

from __future__ import annotations

import pytest

from dragoman.pictures.figure import why_no_png

needs_png = pytest.mark.skipif(bool(why_no_png()), reason=why_no_png())
