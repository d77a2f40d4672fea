"""A table as plain text, for terminals and logs."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.pictures.labels import cells


def plain_table(header: Sequence[str], rows: Sequence[Sequence[str | int | float]]) -> str:
    """A line of names, then a line a row; columns two spaces apart, numbers to the right."""
    lines = [list(header), *([cell_text(cell) for cell in row] for row in rows)]
    widths = [max(cells(line[i]) for line in lines) for i in range(len(header))]
    right = [bool(rows) and all(_is_number(row[i]) for row in rows) for i in range(len(header))]

    def padded(text: str, i: int) -> str:
        space = " " * (widths[i] - cells(text))
        return space + text if right[i] else text + space

    return "\n".join(
        "  ".join(padded(text, i) for i, text in enumerate(line)).rstrip() for line in lines
    )


def cell_text(cell: str | int | float) -> str:
    """Whole numbers with thousands set apart, others with four digits, words as they are."""
    match cell:
        case str():
            return cell
        case int():
            return f"{cell:,}"
        case _:
            return f"{cell:,.4g}"


def _is_number(cell: str | int | float) -> bool:
    if not isinstance(cell, str):
        return True
    return not cell or cell.lstrip("+-−")[:1].isdigit()
