"""Numbers and texts as messages, tables and pictures show them: 1 text, 2 texts; 0.00 and never
-0.00; 54 %."""

from __future__ import annotations

import math


def plural(number: float, single: str, more: str | None = None) -> str:
    """A number and what it counts: ``single`` of it, or ``more``, by itself ``single`` with an s.
    Both may go on with a verb: ``plural(3, "text has", "texts have")`` is "3 texts have"."""
    digits = f"{number:,}" if isinstance(number, int) else f"{number:,.10g}"
    return f"{digits} {single if number == 1 else more or single + 's'}"


def shorten(text: str, most: int) -> str:
    """At most ``most`` characters of a text; where there are more, the last is an ellipsis."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def decimals(value: float, digits: int) -> str:
    """A number with this many decimal places. What rounds to zero has no sign: log P of what
    is all but certain is a little below 0, and -0.00 would look like a fault."""
    return f"{value:z.{digits}f}"


def enough(greatest: float, least: int) -> int:
    """The number of decimal places that shows the first two digits of ``greatest``, at least
    ``least``, so that a small value is not shown as 0."""
    return max(least, min(9, 1 - math.floor(math.log10(greatest)))) if greatest else least


def percent(share: float, digits: int = 0, *, korean: bool = False) -> str:
    """A share of one as both languages write it: 54 % with a space that does not break, and 54%.
    Where something is left it is not 100 %, and where there is something it is not 0 %."""
    least = 10.0**-digits
    sign = "%" if korean else "\N{NO-BREAK SPACE}%"
    if 0 < 100 * share < least:
        return f"<\N{NO-BREAK SPACE}{least:.{digits}f}{sign}"
    if 100 - least < 100 * share < 100:
        return f">\N{NO-BREAK SPACE}{100 - least:.{digits}f}{sign}"
    return f"{100 * share:.{digits}f}{sign}"


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def power(value: float, digits: int = 0) -> str:
    """A very small or large number as a multiple of a power of ten: 2 × 10⁻⁷, and not 2e-07. Its
    spaces do not break."""
    if not value:
        return "0"
    factor, exponent = f"{value:.{digits}e}".split("e")
    return f"{factor}\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}10{str(int(exponent)).translate(_RAISED)}"
