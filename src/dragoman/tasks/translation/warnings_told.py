"""How ``translate --warn`` tells what is doubtful: the count first, where all of the input is
there from the beginning."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from dragoman.base.wording import plural

if TYPE_CHECKING:
    from dragoman.tasks.translation.proofreading.plain import ProofWarning


class WarningsTold:
    """To standard error, how many lines have warnings, and the warnings line by line.

    ``held``: of files, until the last line is translated, so that the count comes first. Of what is
    typed or piped, each warning comes with its line, and the count at the end. What is known is
    told also where an error ends the work.
    """

    def __init__(self, *, held: bool) -> None:
        self._held: list[str] | None = [] if held else None
        self._lines = self._doubted = 0
        self._codes: Counter[str] = Counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        sys.stderr.write(f"{self.summary}\n")
        sys.stderr.writelines(self._held or ())

    def take(self, warnings: Sequence[ProofWarning]) -> None:
        """Those of the next line."""
        self._lines += 1
        self._doubted += bool(warnings)
        for warning in warnings:
            where = f", sentence {warning.sentence}" if warning.sentence else ""
            line = f"line {self._lines}{where}: {warning}\n"
            if self._held is None:
                sys.stderr.write(line)
            else:
                self._held.append(line)
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
