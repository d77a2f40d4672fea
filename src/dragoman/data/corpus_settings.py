"""What a recipe says of a corpus: its files, how they are laid out, where in them examples are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from dragoman.data.documents import By
from dragoman.forms.rows.idx import is_idx
from dragoman.settings import Settings
from dragoman.tree import LABEL_ENDS

SECTION = 20_000
"""Characters of a text that stands alone, unless a corpus says otherwise."""

CORPUS_FILES = ("source", "target", "links")
"""The settings of a corpus that name a file."""

Format = Literal[
    "auto", "lines", "tsv", "csv", "jsonl", "tmx", "xliff", "po", "text", "documents", "file",
    "trees", "tags", "folders", "idx",
]  # fmt: skip
"""How the files of a corpus are laid out."""

TASK_OF_FORMAT = {"trees": "parsing", "tags": "tagging"}
"""The only task that learns from a format, where there is but one."""

_TABBED = (".tsv", ".tab")
_JSON_LINES = (".jsonl", ".ndjson", ".json")

FILES = ("folders", "idx")
"""Formats whose examples are files themselves."""

BY: dict[str, By] = {"text": "line", "documents": "blank", "file": "file"}
"""What ends a text that stands alone, by the format of its corpus."""


class CorpusSettings(Settings):
    """One corpus: where its two sides are and how much it counts."""

    source: str
    """File of source sentences, or the one file that holds all there is. May be gzip."""
    target: str | None = None
    """File of target sentences; left out when ``source`` holds all there is."""
    format: Format = "auto"
    """auto: lines for two files; for one file, tsv, csv, jsonl, tmx, xliff or po by its name: of
    what holds translations those that are done and not fuzzy. For a task whose examples
    have one side, where ``source`` may be a folder of files: text, a text a line; documents, blank
    lines between texts; file, each file is one text. trees: bracketed trees, in a file or a folder
    of files (task parsing). tags: words and their tags, as columns, ``word_TAG`` or trees (task
    tagging). folders: ``source`` is a folder with a folder of recordings for each label. idx:
    ``source`` and ``target`` are IDX files, of pictures and of their labels."""
    section: int = Field(SECTION, ge=100, le=100_000_000)
    """Characters of a text that stands alone; a longer one is read as several, cut at the end of a
    line or a word."""
    links: str | None = None
    """File with the word alignment of each pair, in Pharaoh format (``0-0 1-2``), a line for a
    line: what guided alignment teaches (training.guided). Words are what stands between spaces."""
    weight: float = Field(1.0, gt=0, le=10_000)
    """How often each pair is seen in an epoch; 0.5: every second epoch."""
    label_ends: str = Field(LABEL_ENDS, max_length=20)
    """Trees: characters at which a label ends; what follows is a function or an index (``NP-SBJ-1``
    is learned as NP). With ``-=.`` ``grup.nom.ms`` is learned as grup; an empty value keeps labels
    whole.
    """
    source_key: str = "source"
    """JSON Lines: where the source sentence is. Dots go inside: ``translation.en``. TMX: the
    source language, where entries have more than two."""
    target_key: str = "target"
    """JSON Lines: where the target sentence is. TMX: the target language."""
    source_column: int = Field(1, ge=1, le=1_000)
    """Tab-separated: which column the source sentence is in, from 1."""
    target_column: int = Field(2, ge=1, le=1_000)
    """Tab-separated: which column the target sentence, or the label, is in."""
    holds: Literal["text", "files"] = "text"
    """text: the source is a text; files: it is the name of a file, a recording, from the folder in
    which the corpus lies. For tab-separated files and JSON Lines."""
    group_column: int | None = Field(None, ge=1, le=1_000)
    """Tab-separated: which column tells the group of an example, such as its speaker or document.
    All examples of a group stay on one side of a split."""
    group_key: str | None = None
    """JSON Lines: where the group of an example is; see ``group_column``."""
    group_pattern: str | None = Field(None, max_length=200)
    """Of files: a regular expression whose first group tells the group of an example by the name of
    its file; see ``group_column``. ``_([a-z]+)_`` takes jackson from 7_jackson_32.wav."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if (self.target is not None) and self.format not in ("auto", "lines", "idx"):
            raise ValueError(f"format {self.format} is one file: leave target out")
        if self.target is None and self.format == "lines":
            raise ValueError("format lines needs two files: name target too")
        if self.source_column == self.target_column:
            raise ValueError("source_column and target_column are the same column")
        if self.format == "idx" and self.target is None:
            raise ValueError("format idx needs two files: name the labels as target")
        self._check_groups()
        return self

    def _check_groups(self) -> None:
        if self.group_pattern is not None:
            if not self.names_files:
                raise ValueError("group_pattern is for corpora of files: name a column or a key")
            try:
                groups = re.compile(self.group_pattern).groups
            except re.error as error:
                raise ValueError(f"group_pattern is no regular expression: {error}") from error
            if groups != 1:
                raise ValueError(f"group_pattern has {groups} groups in parentheses: give it one")
        told = (self.group_column, self.group_key, self.group_pattern)
        if sum(one is not None for one in told) > 1:
            raise ValueError("give one of group_column, group_key and group_pattern")
        wanted = [
            ("group_column", self.group_column, "tsv", _TABBED, "tab-separated files"),
            ("group_key", self.group_key, "jsonl", _JSON_LINES, "JSON Lines"),
        ]
        ending = Path(self.source.removesuffix(".gz")).suffix.lower()
        for name, value, layout, endings, files in wanted:
            fits = self.format == layout or (self.format == "auto" and ending in endings)
            if value is not None and (self.target is not None or not fits):
                raise ValueError(f"{name} is for {files}, and {self.name} is none: leave it out")

    @property
    def names_files(self) -> bool:
        """Whether the sources of its examples are files: recordings, pictures."""
        return self.format in FILES or self.holds == "files" or is_idx(self.source)

    @property
    def groups_by(self) -> str | None:
        """Which setting tells the groups of its examples, and how; None where they have none."""
        for name in ("group_column", "group_key", "group_pattern"):
            if (value := getattr(self, name)) is not None:
                return f"{name} = {value}"
        return None

    @property
    def is_alone(self) -> bool:
        """Whether its texts stand alone: examples of one side."""
        return self.format in BY

    @property
    def name(self) -> str:
        """What to call this corpus in messages and records: its file or files, without folders."""
        names = [Path(path).name for path in (self.source, self.target) if path is not None]
        return " + ".join(names)
