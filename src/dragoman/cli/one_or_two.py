"""Options of two values that may have one: ``--dev dev.en dev.de``, and ``--dev dev.tsv``."""

from __future__ import annotations

from collections.abc import Sequence


def filled(args: Sequence[str], names: Sequence[str]) -> list[str]:
    """``args`` with an empty second value behind each option that has one: where the next
    word is an option or none, or where the first names a file that holds all there is."""
    found: list[str] = []
    waiting = [word for arg in args for word in _parted(arg, names)]
    while waiting:
        word = waiting.pop(0)
        found.append(word)
        if word == "--":
            return found + waiting
        if word not in names or not waiting or _is_option(waiting[0]):
            continue
        first = waiting.pop(0)
        found.append(first)
        if not waiting or _is_option(waiting[0]) or _holds_all(first):
            found.append("")
    return found


def _parted(arg: str, names: Sequence[str]) -> list[str]:
    """``--dev=FILE`` as two words."""
    name, equals, value = arg.partition("=")
    return [name, value] if equals and name in names else [arg]


def _is_option(word: str) -> bool:
    return word.startswith("-") and len(word) > 1


def _holds_all(path: str) -> bool:
    from dragoman.data.files.corpora import is_one_file
    from dragoman.sizing.inputs import is_treebank

    return is_one_file(path) or is_treebank(path)
