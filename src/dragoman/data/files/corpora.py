"""This module reads examples from files: sentences and their translations, or single texts.

It reads two files with a sentence on each line, one file with both sides (tab-separated or JSON
Lines), single texts in a file or a folder (``lines.py``), trees (``annotated.py``), and files that
are examples themselves (``sources/file_examples.py``); plain or gzip. A line ends only at ``\\n``,
and one ``\\r`` before it is dropped, so that a U+2028 inside a sentence never shifts the sides
against each other. Bytes that are not UTF-8 become lone surrogates, which cleaning drops.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from dragoman.base.errors import DataError
from dragoman.data.files.annotated import read_examples, read_tagged
from dragoman.data.files.bilingual import (
    different_counts,
    jsonl_pairs,
    languages_in,
    read_csv,
    read_messages,
    read_tmx,
    tsv_pairs,
)
from dragoman.data.files.corpus_settings import SECTION, CorpusSettings, format_by_name
from dragoman.data.files.file_kinds import check_is_text
from dragoman.data.files.lines import LOOKED_AT, By, Check, Section, decode_lines, read_texts
from dragoman.forms.form import Pair
from dragoman.forms.tree import LABEL_ENDS
from dragoman.sources.file_examples import KINDS, content_of, files_in, group, read_folders
from dragoman.sources.frames.spoken import read_spoken
from dragoman.sources.line import DRAWN
from dragoman.sources.picture.coco import annotations_in, read_coco
from dragoman.sources.picture.idx import is_idx, read_idx_pairs
from dragoman.sources.shared.files import is_zip, unusable, visible_in, with_paths

_GZIP = b"\x1f\x8b"

_NAMED_BY = 1 << 16


def read_pairs(corpus: CorpusSettings) -> Iterator[Pair]:
    """Yield all pairs of a corpus, in order, in bounded memory.

    Raises DataError for a file that is missing, empty, damaged or not text, for two files with
    different numbers of lines (the message has both numbers), and for a line without two sides.
    """
    pairs = _read_pairs(corpus)
    if corpus.lists_files:
        pairs = with_paths(pairs, Path(corpus.source), KINDS.values())
    elif corpus.holds == "drawn":
        pairs = (pair._replace(source=DRAWN + pair.source) for pair in pairs)
    if corpus.names_files:
        pairs = group(pairs, Path(corpus.source), corpus.group_pattern, corpus.name)
    if corpus.holds == "captions":
        return (pair._replace(source=pair.target, target=pair.source) for pair in pairs)
    if corpus.exchanged:
        pairs = map(_exchange, pairs)
    if corpus.tag:
        return (_add_tag(pair, corpus.tag) for pair in pairs)
    return pairs


def _add_tag(pair: Pair, tag: str) -> Pair:
    return pair._replace(source=f"{tag} {pair.source}") if pair.source.strip() else pair


def _exchange(pair: Pair) -> Pair:
    """The pair with its sides exchanged. A split still goes by its old source."""
    group = pair.group or pair.source
    return pair._replace(source=pair.target, target=pair.source, group=group)


def _read_pairs(corpus: CorpusSettings) -> Iterator[Pair]:
    if (by := corpus.layout.by) is not None:
        return _read_alone(Path(corpus.source), by, corpus.section)
    name = corpus.source
    match format_of(corpus):
        case "lines":
            assert corpus.target is not None
            return _read_parallel(Path(corpus.source), Path(corpus.target))
        case "tsv":
            return _read_one(corpus, lambda file: tsv_pairs(decode_lines(file, name), corpus))
        case "csv":
            return _read_one(corpus, lambda file: read_csv(file, name, *corpus.columns[:2]))
        case "tmx":
            return _read_one(corpus, lambda file: read_tmx(file, name, *corpus.languages), None)
        case "xliff" | "po" as how:
            return _read_one(corpus, lambda file: read_messages(file, name, how), None)
        case "folders":
            return read_folders(Path(corpus.source))
        case "spoken":
            return read_spoken(Path(corpus.source), corpus.keys, corpus.columns, read_lines)
        case "coco":
            return read_coco(Path(corpus.source))
        case "idx":
            assert corpus.target is not None
            return read_idx_pairs(Path(corpus.source), Path(corpus.target))
        case "trees":
            return read_examples(_lines_of_files(corpus.source), corpus.label_ends)
        case "tags":
            columns = corpus.source_column, corpus.target_column
            files = _lines_of_files(corpus.source)
            return read_tagged(files, columns, corpus.label_ends)
        case _:
            return _read_one(corpus, lambda file: jsonl_pairs(decode_lines(file, name), corpus))


def read_lines(
    path: str | Path, check: Check | None = check_is_text, *, once: bool = False
) -> Generator[str]:
    """Yield the lines of one file without their ends, unless ``check`` refuses it; ``once`` allows
    a pipe, which can be read only once. Raises DataError as ``read_pairs`` does."""
    path = Path(path)
    with _open(path, check, once=once) as file:
        yield from decode_lines(file, str(path))


def corpus_fingerprint(corpus: CorpusSettings) -> str:
    """Return the SHA-256, in hex, of a corpus's content and format, independent of its folder."""
    digest = hashlib.sha256()
    if corpus.format == "folders" and not is_zip(corpus.source):  # where names are labels
        for path in files_in(Path(corpus.source)):
            digest.update(f"{path.relative_to(corpus.source)}\n".encode("utf-8", "surrogateescape"))
    pairs: Iterator[Pair] = iter(())
    sides: tuple[str | None, ...] = (corpus.source, corpus.target)
    if corpus.format == "spoken":
        pairs, sides = _read_pairs(corpus), ()
    elif corpus.format == "coco":
        pairs, sides = _read_pairs(corpus), (str(annotations_in(Path(corpus.source))),)
    elif corpus.lists_files:
        pairs = with_paths(_read_pairs(corpus), Path(corpus.source), KINDS.values())
    for pair in pairs:
        said = f" {pair.target}\n" if corpus.format == "spoken" else ""
        digest.update(f"{content_of(pair.source)}{said}".encode("utf-8", "surrogateescape"))
    for path in chain.from_iterable(map(files_of, sides)):
        with _open(path, packed=True) as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())  # type: ignore[arg-type]
    if corpus.links is not None:
        for line in read_lines(corpus.links):
            digest.update(line.encode("utf-8", "surrogateescape") + b"\n")
    how: list[str | int] = [format_of(corpus), corpus.source_key, corpus.target_key]
    if corpus.layout.by is not None and corpus.section != SECTION:
        how.append(corpus.section)
    if (corpus.source_column, corpus.target_column) != (1, 2):
        how += [corpus.source_column, corpus.target_column]
    if corpus.label_ends != LABEL_ENDS:
        how.append(corpus.label_ends)
    if corpus.groups_by is not None:
        how.append(corpus.groups_by)
    if corpus.tag or corpus.exchanged:
        how += [corpus.tag, corpus.exchanged]
    if corpus.synthetic:
        how.append("synthetic")
    digest.update(json.dumps(how).encode())
    return digest.hexdigest()


def files_of(name: str | None) -> list[Path]:
    """Return a file, or the files of a folder and its subfolders, sorted by name, without hidden
    and empty ones."""
    if name is None:
        return []
    path = Path(name)
    if not path.is_dir():
        return [path]
    files = [file for file in sorted(visible_in(path)) if file.is_file() and file.stat().st_size]
    if not files:
        raise DataError(f"the folder {path} has no file with any content")
    return files


def format_of(corpus: CorpusSettings) -> str:
    """Return the format that the corpus names, or else that of its file names. Errors:
    ``DataError``."""
    if corpus.format != "auto":
        return corpus.format
    if corpus.target is not None:
        return "idx" if is_idx(corpus.source) else "lines"
    by_name = format_by_name(corpus.source)
    if by_name is None:
        raise DataError(
            f"{corpus.source}: one file for both sides must be .tsv, .csv, .jsonl, .tmx, .xliff or "
            ".po (set format if its name does not say so). If there are two files, set target too"
        )
    return by_name


def _read_alone(path: Path, by: By, longest: int) -> Iterator[Pair]:
    for inside in files_of(str(path)):
        with _open(inside) as file:
            yield from _name_sections(read_texts(file, by, longest), by)


def _name_sections(sections: Iterator[Section], by: By) -> Iterator[Pair]:
    """Yield the sections of texts, each with the name of its text: a hash of its first
    ``_NAMED_BY`` letters. No more of a text is held. A line that is not cut needs no name."""
    held: list[Section] = []
    letters: list[str] = []
    size, name = 0, ""

    def name_held() -> Iterator[Pair]:
        alone = by == "line" and len(held) == 1
        begun = "".join(letters)[:_NAMED_BY].encode("utf-8", "surrogatepass")
        whole = "" if alone else hashlib.blake2b(begun, digest_size=8).hexdigest()
        return (Pair(section.line, "", section.text, whole) for section in held)

    for section in sections:
        if section.begins:
            yield from name_held()
            held, letters, size, name = [], [], 0, ""
        if name:
            yield Pair(section.line, "", section.text, name)
            continue
        held.append(section)
        letters += section.text.casefold().split()
        size += len(section.text)
        if size > 2 * _NAMED_BY and sum(map(len, letters)) >= _NAMED_BY:
            for pair in name_held():
                name = pair.whole
                yield pair
            held = []
    yield from name_held()


def _lines_of_files(source: str) -> Iterator[tuple[Path, Iterator[str]]]:
    """Yield the path and the lines of a file, or of each file of a folder; read the lines before
    the next file."""
    for path in files_of(source):
        with _open(path) as file:
            yield path, decode_lines(file, str(path))


def languages_of(corpus: CorpusSettings) -> tuple[str, str] | None:
    """Return the languages as ``bilingual.languages_in`` does; None for another format."""
    if corpus.target is not None or (how := format_of(corpus)) not in ("tmx", "xliff", "po"):
        return None
    with _open(Path(corpus.source), None) as file:
        return languages_in(file, corpus.source, how, *corpus.languages)


def _read_one(
    corpus: CorpusSettings,
    pairs: Callable[[BinaryIO], Iterator[Pair]],
    check: Check | None = check_is_text,
) -> Iterator[Pair]:
    """Yield the pairs of one file; ``check`` is None for a file that names its encoding."""
    with _open(Path(corpus.source), check) as file:
        yield from pairs(file)


def _read_parallel(source: Path, target: Path) -> Iterator[Pair]:
    # Each side is read in its own frame, so that an error in one file names that file.
    with closing(read_lines(source)) as sources, closing(read_lines(target)) as targets:
        for line, text in enumerate(sources, start=1):
            translation = next(targets, None)
            if translation is None:
                raise different_counts(source, line + _count(sources), target, line - 1)
            yield Pair(line, text, translation)
        if more := _count(targets):
            raise different_counts(source, line, target, line + more)


def _count(lines: Iterator[str]) -> int:
    return sum(1 for _ in lines)


@contextmanager
def _open(
    path: Path, check: Check | None = check_is_text, *, packed: bool = False, once: bool = False
) -> Iterator[BinaryIO]:
    """Open a file that ``check`` accepts, unpacked if it is gzip and not ``packed``. Pipes and
    empty files are refused, unless the file is read ``once``.

    Errors become a DataError with the file's name.
    """
    try:
        if not once and path.exists() and not (path.is_file() or path.is_dir()):
            raise DataError(
                f"{path} is not a regular file: a pipe or a device can be read only once, but "
                "training reads its text several times. Write it to a file first"
            )
        with ExitStack() as stack:
            file: Any = stack.enter_context(path.open("rb", buffering=LOOKED_AT))
            inside = ""
            if file.peek(LOOKED_AT)[:2] == _GZIP and not packed:
                file, inside = stack.enter_context(gzip.open(file)), " inside"
            start = file.peek(LOOKED_AT)[:LOOKED_AT]
            if not start and not once:
                raise DataError(f"{path} is empty{inside}")
            if check is not None and not packed and start:
                check(start, str(path))
            yield file
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path} is damaged or cut off: {error}") from error
    except IsADirectoryError as error:
        raise DataError(f"{path} is a folder. Give a file") from error
    except OSError as error:
        raise unusable(path, error) from error


@contextmanager
def naming_lines(*corpora: CorpusSettings | None) -> Iterator[None]:
    """Add the line of the list to errors of the files that it names.

    Files are decoded long after a list was read, many at once, and only their names are known by
    then; so the lists are read again after an error. Its message must begin with the file.
    """
    try:
        yield
    except DataError as error:
        message = str(error)
        for corpus in corpora:
            if corpus is None or not corpus.lists_files:
                continue
            for pair in read_pairs(corpus):
                file = pair.target if corpus.holds == "captions" else pair.source
                if message.startswith((f"{file} ", f"{file}:")):
                    raise DataError(f"{corpus.name}, line {pair.line}: {message}") from error
        raise
