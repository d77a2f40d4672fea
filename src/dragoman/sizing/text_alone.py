"""A sensible size and schedule for a language model or a masked model, if a user gives only text.

The characters of the text choose a row of ``TEXT_TABLE``. The boundaries between texts and the
held-out share follow from the text too; all choices are written into the recipe.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from dragoman.base.errors import DataError, RecipeError
from dragoman.base.task import Side
from dragoman.base.wording import plural
from dragoman.data.files.corpora import files_of, read_lines, read_pairs
from dragoman.data.files.corpus_settings import ALONE, CorpusSettings
from dragoman.data.files.file_kinds import NotLines, check_is_lines
from dragoman.data.split import SplitSettings
from dragoman.runs.recipe.recipe import Recipe
from dragoman.sizing.builder import CorpusSummary, RecipeBuilder, Sections, data_of
from dragoman.sizing.size import Size

BEGINS = (4_000, 0)
"""``Task.begins`` of a model that writes texts."""
_SECTIONS = 200
"""The fewest sections of a text, so that a part can be held out."""
_SHORTEST = 500
"""The fewest characters of a section."""
_SAMPLE_SIZE = 50
_SAMPLE_FILES = 8
_WHOLES = 100_000
"""The most texts that are counted to decide the held-out share."""


class TextSize(NamedTuple):
    """A row of the table: the choice below a number of characters."""

    kind: str
    """The kind of vocabulary, as in ``text.kind``."""
    context: int
    size: Size


TEXT_TABLE = (
    TextSize("char", 256, Size(300_000, 1_000, 128, 4, 3, 0.2, 2_048, 100, 2e-3, 40)),
    TextSize("bpe", 256, Size(3_000_000, 2_000, 192, 6, 4, 0.3, 1_024, 400, 2e-3, 30)),
    TextSize("bpe", 256, Size(30_000_000, 4_000, 256, 8, 4, 0.2, 1_024, 1_000, 2e-3, 10)),
    TextSize("bpe", 512, Size(300_000_000, 8_000, 384, 6, 6, 0.1, 16_384, 2_000, 1e-3, 3)),
    TextSize("bpe", 512, Size(float("inf"), 16_000, 512, 8, 6, 0.1, 16_384, 2_000, 7e-4, 1)),
)
"""Chosen by experience with texts of these sizes; docs/language-models.md shows it to users. Small
updates teach a language model the most (docs/experiments/language-models-in-an-hour.md)."""

_CLEANING = {"max_length": 0, "control_characters": False, "invalid_utf8": False}
"""Sections contain many lines, and one odd character is no reason to drop a section."""
_BETA2 = 0.999
"""Small updates are noisy, so Adam's mean squared gradient spans more of them than in the paper."""


@dataclass(frozen=True)
class TextSummary(CorpusSummary):
    """The properties of texts without translations."""

    section: int | None = None
    """Characters of the sections in which texts are read, if these are shorter than usual."""
    wholes: Mapping[str, int] = field(default_factory=dict)
    """The length of each text, by its name (``Pair.whole``)."""


class TextsBuilder(RecipeBuilder):
    """Builds recipes for texts without translations, in a file or a folder of files."""

    side: ClassVar[Side] = "target"
    fits = ("texts",)
    one_input = ("texts alone", "one file, or a folder of files")
    held_as = ("one file, or a folder of files", "")

    def takes(self) -> bool:
        fine_tunes = self.learned is not None and self.base is None
        return self.options.are_files or self.options.task is not None or not fine_tunes

    def check(self) -> None:
        first = self.options.inputs[0]
        if len(self.options.inputs) == 1 and Path(first).suffix == ".toml":
            raise RecipeError(
                f"{first} is a recipe, which sets its own task. Leave out --task and --recipe"
            )
        super().check()
        for path in islice(files_of(first), _SAMPLE_FILES):
            try:
                next(read_lines(path, check_is_lines), None)
            except NotLines as error:  # a model of markup may be intended
                self.say(f"warning: {error}. The model will learn to write such lines")
                break

    def file_at(self, path: str) -> CorpusSettings:
        if self.options.texts not in (None, *ALONE):
            raise RecipeError(f"--texts {self.options.texts}: use text, documents or file")
        layout = self.options.texts or _format(path, self.base)
        return CorpusSettings.model_validate({"source": path, "format": layout})

    def look(self, corpus: CorpusSettings) -> TextSummary:
        texts = characters = 0
        first: list[str] = []
        wholes: Counter[str] = Counter()
        for pair in read_pairs(corpus):
            texts += 1
            characters += len(pair.target)
            if pair.whole and (pair.whole in wholes or len(wholes) < _WHOLES):
                wholes[pair.whole] += len(pair.target)
            if texts <= _SAMPLE_SIZE:
                first.append(pair.target)
        if not any(pair.target.strip() for pair in read_pairs(corpus)):
            raise DataError(f"{corpus.source} contains no text, only spaces")
        section = None
        if corpus.format != "text" and texts < _SECTIONS:
            section = max(_SHORTEST, min(corpus.section, characters // _SECTIONS))
            texts = max(texts, characters // section)
        return TextSummary(characters, texts, first, section=section, wholes=wholes)

    def data(
        self, corpus: CorpusSettings, seen: CorpusSummary, held: Mapping[str, CorpusSettings]
    ) -> dict[str, Any]:
        """The section ``data``. Whole texts are held out if there are enough; else some texts."""
        assert isinstance(seen, TextSummary)
        if seen.section is not None:
            corpus = corpus.model_copy(update={"section": seen.section})
            held = {side: settings.model_copy(update={"section": seen.section})
                    for side, settings in held.items()}  # fmt: skip
        data = data_of(corpus, seen.different, held)
        split = SplitSettings(**data["split"]).for_whole(seen.wholes)
        passages, some = seen.different, "about "
        if seen.different < _SECTIONS:
            few = [pair.target for pair in read_pairs(corpus)]
            passages, some = len(few), ""
            if not (split.dev or split.test):
                split = split.for_few(few, dev="dev" not in held, test="test" not in held)
        path = Path(corpus.source)
        decided = self.options.texts is not None or self.base is not None
        if corpus.format != "text" and not decided and not path.is_dir():
            lines = sum(1 for _ in read_lines(path))
            self.say(
                f"{path.name}: {plural(lines, 'line')}, read as "
                f"{some}{plural(passages, 'passage')}; --texts text makes each line a separate text"
            )
        return {**data, "split": split.model_dump()}

    def row(self, seen: CorpusSummary) -> Size:
        # A masked model, too, is timed as a model that writes.
        timed = replace(self.task, reads=False, writes=True, begins=BEGINS)
        return self.row_in_time(timed, self.rows(seen))

    def rows(self, seen: CorpusSummary) -> Sequence[Size]:
        """The size without a time limit, followed by all smaller sizes with the same kind of
        vocabulary, largest first."""
        chosen = _row_of(seen)
        smaller = TEXT_TABLE[TEXT_TABLE.index(chosen) :: -1]
        return [row.size for row in smaller if row.kind == chosen.kind]

    def adds(self, row: Size, seen: CorpusSummary) -> Sections:
        context = next(entry.context for entry in TEXT_TABLE if entry.size.below == row.below)
        return {
            "data": {"cleaning": _CLEANING},
            "text": {"kind": _row_of(seen).kind, "lossless": True},
            "plan": {"context": context},
            "training": {"label_smoothing": 0.0, "optimizer": {"beta2": _BETA2}},
        }


def _row_of(seen: CorpusSummary) -> TextSize:
    return next(row for row in TEXT_TABLE if seen.amount < row.size.below)


def _format(path: str, base: Recipe | None) -> str:
    """The default layout of a file: the way in which its texts are separated."""
    if base is not None and base.data.train:
        return base.data.train[0].format
    if base is not None and base.data.embedded is not None:
        return "text"
    if Path(path).is_dir():
        return "file"
    # Blank lines separate texts; without any, the file is one text, which is read in sections.
    texts = read_pairs(CorpusSettings(source=path, format="documents", section=100_000))
    return "documents" if len(list(islice(texts, 2))) == 2 else "file"
