"""The settings of a corpus: its files, their layout, and the places of examples in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from dragoman.base.settings import Settings
from dragoman.data.files.lines import By
from dragoman.forms.tree import LABEL_ENDS
from dragoman.sources.picture.idx import is_idx

SECTION = 20_000
"""The default length in characters of a section of a single text."""

CORPUS_FILES = ("source", "target", "links")
"""The settings of a corpus that name a file."""

Format = Literal[
    "auto", "lines", "tsv", "csv", "jsonl", "tmx", "xliff", "po", "text", "documents", "file",
    "trees", "tags", "folders", "spoken", "idx", "coco",
]  # fmt: skip
"""The layout of the files of a corpus."""


@dataclass(frozen=True)
class Layout:
    """The properties of a format of corpora."""

    endings: tuple[str, ...] = ()
    """The endings of names of files that contain both sides."""
    second: str = ""
    """The advice if the second file is missing; empty for a format of one file."""
    groups: tuple[str, ...] = ()
    """The settings that locate the group of an example."""
    are_files: bool = False
    """True if the examples are files themselves."""
    by: By | None = None
    """The end of a single text; None for examples with two sides."""
    task: str | None = None
    """The only task that learns from the format, if there is only one."""


LAYOUTS: dict[str, Layout] = {
    "lines": Layout(second="name target too"),
    "tsv": Layout((".tsv", ".tab"), groups=("group_column",)),
    "csv": Layout((".csv",)),
    "jsonl": Layout((".jsonl", ".ndjson", ".json"), groups=("group_key",)),
    "tmx": Layout((".tmx",)),
    "xliff": Layout((".xlf", ".xliff")),
    "po": Layout((".po",)),
    "text": Layout(by="line"),
    "documents": Layout(by="blank"),
    "file": Layout(by="file"),
    "trees": Layout(task="parsing"),
    "tags": Layout(task="tagging"),
    "folders": Layout(are_files=True),
    "spoken": Layout(are_files=True, groups=("group_column", "group_key")),
    "idx": Layout(are_files=True, second="name the labels as target"),
    "coco": Layout(are_files=True, task="detection"),
}
"""The layout of each format except "auto"."""
ALONE = tuple(name for name, layout in LAYOUTS.items() if layout.by is not None)
"""The names of formats that contain single texts."""
_BY_ENDING = {ending: name for name, layout in LAYOUTS.items() for ending in layout.endings}
_GROUPS = {"group_column": "tab-separated files", "group_key": "JSON Lines"}
"""The settings that locate a group, and the files that they are for."""


def format_by_name(path: str) -> str | None:
    """Return the format of one file with both sides from its name, which may end in .gz; None for
    another name."""
    return _BY_ENDING.get(Path(path.removesuffix(".gz")).suffix.lower())


class CorpusSettings(Settings):
    """One corpus: its files, their format, and its weight."""

    source: str
    """The file of source sentences, or the single file with both sides. May be compressed with
    gzip."""
    target: str | None = None
    """The file of target sentences. Leave it out if ``source`` contains both sides."""
    format: Format = "auto"
    """The format of the files. auto: lines for two files; for one file, tsv, csv, jsonl, tmx, xliff
    or po, depending on its name. tmx, xliff, po: only finished translations are used, not those
    that are fuzzy, await review or were made by a machine. text, documents, file: for tasks whose
    examples have a source but no target; each line is a text, blank lines separate texts, or each
    file is one text; ``source`` may be a folder of files. trees: bracketed trees, in a file or a
    folder of files (task parsing). tags: words and their tags, as columns, as ``word_TAG`` or as
    trees (task tagging). folders: ``source`` is a folder that has a subfolder of recordings or
    pictures for each label. spoken: recordings with transcripts; ``source`` is a folder with a .txt
    file next to each recording, a .tsv, .csv or .jsonl file that lists them, a folder with
    metadata.csv, or a Kaldi data folder. idx: ``source`` and ``target`` are IDX files of pictures
    and of their labels. coco: boxes in pictures, in COCO's JSON (task detection); a folder stands
    for the one JSON file in it."""
    section: int = Field(SECTION, ge=100, le=100_000_000)
    """For tasks whose examples have a source but no target: the maximum number of characters in a
    text. A longer text is split into several, at the end of a line or a word."""
    links: str | None = None
    """A file with the word alignment of each pair, for guided alignment (training.guided): one line
    per pair, in Pharaoh format (``0-0 1-2``). Words are separated by spaces."""
    weight: float = Field(1.0, gt=0, le=10_000)
    """The number of times that each pair is used per epoch. 0.5: in every second epoch."""
    tag: str = Field("", max_length=100, pattern=r"^\S*$")
    """A word that is put before each source of synthetic text, such as back-translations, so that
    the model can tell this text from real text. Add it to text.user_symbols. Nothing is held out of
    a corpus with a tag."""
    synthetic: bool = False
    """A model has written the targets. Nothing is held out of such a corpus, as of one with a
    tag."""
    exchanged: bool = False
    """Read the source as the target, and the target as the source. The split stays that of the
    corpus as it is."""
    label_ends: str = Field(LABEL_ENDS, max_length=20)
    """For trees: the characters at which a label is cut off. What follows them is a grammatical
    function or an index: ``NP-SBJ-1`` is learned as NP. With ``-=.``, ``grup.nom.ms`` is learned as
    grup; with an empty value, labels are kept whole.
    """
    source_key: str = "source"
    """For JSON Lines: the key of the source sentence. Use dots for nested keys:
    ``translation.en``. For the format spoken: the key or column that names the recording. For TMX:
    the source language, if entries have more than two languages."""
    target_key: str = "target"
    """For JSON Lines: the key of the target sentence. For the format spoken: the key or column of
    the transcript. For TMX: the target language."""
    source_column: int = Field(1, ge=1, le=1_000)
    """For tab-separated files: the column of the source sentence, numbered from 1."""
    target_column: int = Field(2, ge=1, le=1_000)
    """For tab-separated files: the column of the target sentence or the label."""
    holds: Literal["text", "files", "drawn", "captions"] = "text"
    """The content of the source file, column or key. text: the text itself; files (for
    tab-separated files and JSON Lines): the name of a file, such as a recording or a picture,
    relative to the folder of the corpus; drawn: text of which the program draws a picture
    (source.kind = line); captions: the name of a picture as for files, and the target is its
    caption, from which the picture is painted (task painting)."""
    group_column: int | None = Field(None, ge=1, le=1_000)
    """For tab-separated files: the column with the group of an example, such as its speaker or
    document. All examples of a group are put on the same side of a split."""
    group_key: str | None = None
    """For JSON Lines: the key of the group of an example; see ``group_column``. For the
    format spoken: the column that names the speaker; for a Kaldi data folder, the name of the
    file that lists the speakers, utt2spk."""
    group_pattern: str | None = Field(None, max_length=200)
    """For corpora of files: a regular expression that is matched against the file name. What its
    first capturing group matches is the group of the example; see ``group_column``. ``_([a-z]+)_``
    matches jackson in 7_jackson_32.wav. A pattern with / is matched against the path inside the
    folder of the corpus: ``^([^/]+)/`` takes the first folder."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        layout = self.layout
        if self.target is not None and self.format != "auto" and not layout.second:
            raise ValueError(f"format {self.format} is a single file. Leave out target")
        if self.target is None and layout.second:
            raise ValueError(f"format {self.format} needs two files: {layout.second}")
        if self.source_column == self.target_column:
            raise ValueError("source_column and target_column must be different columns")
        if self.holds == "drawn" and (layout.are_files or layout.by or layout.task):
            raise ValueError(f"format {self.format} has no text that could be drawn")
        self._check_groups()
        return self

    def _check_groups(self) -> None:
        if self.group_pattern is not None:
            if not self.names_files:
                raise ValueError(
                    "group_pattern works only with corpora of files. Set group_column or group_key"
                )
            try:
                groups = re.compile(self.group_pattern).groups
            except re.error as error:
                raise ValueError(f"group_pattern is not a regular expression: {error}") from error
            if groups != 1:
                raise ValueError(f"group_pattern has {groups} groups in parentheses. Use one")
        ways = (self.group_column, self.group_key, self.group_pattern)
        if sum(way is not None for way in ways) > 1:
            raise ValueError("give one of group_column, group_key and group_pattern")
        by_name = format_by_name(self.source) if self.format == "auto" else None
        layout = LAYOUTS[by_name] if by_name else self.layout
        for name, files in _GROUPS.items():
            fits = name in layout.groups and self.target is None
            if getattr(self, name) is not None and not fits:
                raise ValueError(f"{name} is only for {files}, not for {self.name}. Leave it out")

    @property
    def layout(self) -> Layout:
        """The layout of the format; an empty one for "auto"."""
        return LAYOUTS.get(self.format, Layout())

    @property
    def is_synthetic(self) -> bool:
        """True if a model has written one of the sides."""
        return self.synthetic or bool(self.tag)

    @property
    def keys(self) -> list[str]:
        """The keys of source, target and, if there is one, group."""
        keys = [self.source_key, self.target_key]
        return keys if self.group_key is None else [*keys, self.group_key]

    @property
    def columns(self) -> list[int]:
        """The columns, from 1, of source, target and, if there is one, group."""
        columns = [self.source_column, self.target_column]
        return columns if self.group_column is None else [*columns, self.group_column]

    @property
    def languages(self) -> tuple[str, str] | tuple[None, None]:
        """The languages that are named for a TMX; None for the default keys."""
        keys = self.source_key, self.target_key
        return (None, None) if keys == ("source", "target") else keys

    @property
    def names_files(self) -> bool:
        """True if the sources of the examples are files, such as recordings or pictures."""
        return self.layout.are_files or self.holds != "text" or is_idx(self.source)

    @property
    def lists_files(self) -> bool:
        """True if the corpus is a list that names a file in each line."""
        return self.holds in ("files", "captions") and not (
            self.layout.are_files or is_idx(self.source)
        )

    @property
    def groups_by(self) -> str | None:
        """The setting of the groups of examples, with its value; None without groups."""
        for name in ("group_column", "group_key", "group_pattern"):
            if (value := getattr(self, name)) is not None:
                return f"{name} = {value}"
        return None

    @property
    def name(self) -> str:
        """The name of the corpus in messages and records: its files, without folders."""
        names = [Path(path).name for path in (self.source, self.target) if path is not None]
        return " + ".join(names)
