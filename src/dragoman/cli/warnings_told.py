"""How ``translate --warn`` tells what is doubtful: the count first, where all of the input is
there from the beginning."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from tempfile import TemporaryFile
from types import TracebackType
from typing import IO, TYPE_CHECKING, Self

from dragoman.plural import plural

if TYPE_CHECKING:
    from dragoman.tasks.translation.proofreading.warning import ProofWarning


class WarningsTold:
    """To standard error, how many lines have warnings, and the warnings line by line.

    ``held``: of files, until the last line is translated, so that the count comes first; they wait
    on disk. Of what is typed or piped, each warning comes with its line, and the count at the end.
    What is known is told also where an error ends the work.
    """

    def __init__(self, *, held: bool) -> None:
        self._held = held
        self._out: IO[str] = sys.stderr
        self._lines = self._doubted = 0
        self._codes: Counter[str] = Counter()

    def __enter__(self) -> Self:
        if self._held:
            self._out = TemporaryFile("w+", encoding="utf-8", errors="surrogatepass", newline="")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        sys.stderr.write(f"{self.summary}\n")
        if self._held:
            with self._out as held:
                held.seek(0)
                shutil.copyfileobj(held, sys.stderr)

    def take(self, warnings: Sequence[ProofWarning]) -> None:
        """Those of the next line."""
        self._lines += 1
        self._doubted += bool(warnings)
        for warning in warnings:
            where = f", sentence {warning.sentence}" if warning.sentence else ""
            self._out.write(f"line {self._lines}{where}: {warning}\n")
            self._codes[warning.code] += 1

    @property
    def summary(self) -> str:
        """3 of 40 lines have warnings: omitted 2, cut off 1."""
        lines = plural(self._lines, "line")
        if not self._doubted:
            return f"no warnings about {lines}"
        told = plural(self._doubted, f"of {lines} has warnings", f"of {lines} have warnings")
        kinds = ", ".join(f"{c.replace('_', ' ')} {n:,}" for c, n in self._codes.most_common())
        return f"{told}: {kinds}"
