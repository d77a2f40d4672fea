"""The default size and schedule of a transcriber, if a user gives only recordings and their texts
(``sources/frames/spoken.py``).

The hours of sound choose a row of ``SPOKEN_TABLE``.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from dragoman.base.wording import plural
from dragoman.data.files.columns import parse_columns
from dragoman.data.files.corpora import read_lines
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.sizing.builder import (
    CorpusSummary,
    RecipeBuilder,
    Sections,
    make_corpus,
)
from dragoman.sizing.options import given_language, given_languages
from dragoman.sizing.size import DEFAULT, Size
from dragoman.sources.frames.form import FramesSource
from dragoman.sources.frames.recordings import rate_of, samples_of
from dragoman.sources.frames.spoken import places_of

SPOKEN_TABLE = (
    Size(0.1, 200, 96, 4, 3, 0.1, 125, 100, 1.5e-3, 100),
    Size(0.5, 200, 96, 4, 3, 0.1, 250, 100, 1.5e-3, 60),
    Size(5, 200, 128, 4, 4, 0.1, 1_000, 300, 1.5e-3, 60),
    Size(50, 1_000, 256, 4, 6, 0.1, 4_000, 1_000, 1e-3, 40),
    Size(float("inf"), 4_000, 256, 4, 8, 0.1, 8_000, 2_000, 1e-3, 20),
)
"""Rows by hours of sound; ``tokens_per_update`` counts written tokens. With few minutes, updates
are small so that there are more of them (docs/experiments/few-minutes-of-recordings.md)."""
_SMALL = 0.5
"""The hours of sound below which the decoder has one layer."""

_HIGHEST_RATE = 16_000
"""The highest sample rate in Hz that speech needs."""
_LOOKED_AT = 500
"""The number of recordings whose lengths are read, and whose texts identify the language."""
_LONGEST = 3_000
"""The most frames of a recording in training: half a minute."""
_MICRO_BATCH = 16_000
"""The number of frames that the model processes at once."""


class SpokenBuilder(RecipeBuilder):
    """Builds recipes for recordings with their texts."""

    table = SPOKEN_TABLE
    side = "target"
    noun = "recordings"
    fits = ("groups", "columns")
    only_default = f": recordings need --model {DEFAULT}. For others, write a recipe"
    held_as = ("one folder or one list", "")
    sampled = files_kept = _LOOKED_AT
    tells_speakers = ", a list by a column named speaker"

    def takes(self) -> bool:
        is_single, first = len(self.options.inputs) == 1, Path(self.options.first)
        return is_single and super().takes() and places_of(first, read_lines) is not None

    def file_at(self, path: str) -> CorpusSettings:
        """Return the corpus at ``path``. Its columns for files, texts and speakers have the names
        that the options give, or the usual ones."""
        options, about = self.options, dict[str, Any](source=path, format="spoken")
        about |= places_of(Path(path), read_lines) or {}
        if options.keys is not None:
            about |= dict(zip(("source_key", "target_key"), options.keys, strict=True))
        if options.columns is not None:
            file, text = parse_columns(options.columns)
            about |= {"source_column": file, "target_column": text}
        if options.groups is not None:
            about.pop("group_key", None)
        return make_corpus({**about, "group_pattern": options.groups}, "--groups", options.groups)

    def like(self, path: str, train: CorpusSettings) -> CorpusSettings:
        return self.file_at(path)

    def languages(self) -> dict[str, str]:
        """The language of both sides, unless the text is a translation (``de-en``)."""
        codes = self.options.languages
        if codes and "-" in codes:
            source, target = given_languages(codes, self.options.inputs)
            return {"source": source, "target": target}
        return dict.fromkeys(("source", "target"), given_language(codes, "") if codes else "und")

    def look(self, corpus: CorpusSettings) -> CorpusSummary:
        seen = super().look(corpus)
        rate = rate_of(seen.files[0])
        seconds = [samples_of(file, rate) / rate for file in seen.files]
        hours = sum(seconds) / len(seconds) * seen.different / 3_600
        recordings = plural(seen.different, "recording")
        self.say(f"{recordings}, about {hours * 60:,.1f} minutes of sound")
        return replace(seen, amount=hours, source=FramesSource(rate=min(rate, _HIGHEST_RATE)))

    def adds(self, row: Size, seen: CorpusSummary) -> Sections:
        writers = 1 if row.below <= _SMALL else 2
        return {
            "data": {"cleaning": {"max_length": 0}},
            "text": {"shared": False, "character_coverage": 1.0},
            "model": {"decoder_layers": writers, "norm": "pre", "tie": "target"},
            "plan": {
                "max_source": _LONGEST, "max_target": 512, "tokens_per_micro_batch": _MICRO_BATCH,
            },
            "training": {
                "ctc_weight": 0.3, "average_last": 5,
                "spec_augment": {"time_masks": 2, "band_masks": 2},
            },
            "search": {"ctc_weight": 0.5, "length_penalty": 0.0},
        }  # fmt: skip
