"""A sane size and schedule of a model that writes what is said in recordings, when a user gives
nothing but recordings and their texts (``sources/frames/spoken.py``).

``SPOKEN_TABLE`` is what is chosen: the hours of sound choose a row.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from dragoman.base.wording import plural
from dragoman.data.files.columns import numbered
from dragoman.data.files.corpora import read_lines
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.sizing.builder import (
    CorpusSummary,
    RecipeBuilder,
    Sections,
    checked_corpus,
)
from dragoman.sizing.languages import given_language, given_languages
from dragoman.sizing.size import DEFAULT, Size
from dragoman.sources.frames.recordings import rate_of, samples_of
from dragoman.sources.frames.settings import FramesSource
from dragoman.sources.frames.spoken import places_of

SPOKEN_TABLE = (
    Size(0.1, 200, 96, 4, 3, 0.1, 125, 100, 1.5e-3, 100),
    Size(0.5, 200, 96, 4, 3, 0.1, 250, 100, 1.5e-3, 60),
    Size(5, 200, 128, 4, 4, 0.1, 1_000, 300, 1.5e-3, 60),
    Size(50, 1_000, 256, 4, 6, 0.1, 4_000, 1_000, 1e-3, 40),
    Size(float("inf"), 4_000, 256, 4, 8, 0.1, 8_000, 2_000, 1e-3, 20),
)
"""By hours of sound; ``tokens_per_update`` counts what is written. Few minutes make few updates, so
theirs are small (docs/experiments/few-minutes-of-recordings.md)."""
_SMALL = 0.5
"""Hours of sound below which one layer writes."""

_HIGHEST_RATE = 16_000
"""Samples a second that speech needs."""
_LOOKED_AT = 500
"""Recordings whose lengths are read, and whose texts tell the language."""
_LONGEST = 3_000
"""Frames of a recording that is learned from: half a minute."""
_MICRO_BATCH = 16_000
"""Frames that the model processes at once."""


class SpokenBuilder(RecipeBuilder):
    """Recordings and what is said in them."""

    table = SPOKEN_TABLE
    side = "target"
    noun = "recordings"
    fits = ("groups", "columns")
    only_default = f": recordings alone choose a --model {DEFAULT}; others read them by a recipe"
    held_as = ("one folder or one list", "")
    sampled = files_kept = _LOOKED_AT
    tells_speakers = ", a list by a column named speaker"

    def takes(self) -> bool:
        one, first = len(self.options.inputs) == 1, Path(self.options.first)
        return one and super().takes() and places_of(first, read_lines) is not None

    def file_at(self, path: str) -> CorpusSettings:
        """What names files, texts and speakers there: as the options say, or the usual names."""
        options, about = self.options, dict[str, Any](source=path, format="spoken")
        about |= places_of(Path(path), read_lines) or {}
        if options.keys is not None:
            about |= dict(zip(("source_key", "target_key"), options.keys, strict=True))
        if options.columns is not None:
            file, text = numbered(options.columns)
            about |= {"source_column": file, "target_column": text}
        if options.groups is not None:
            about.pop("group_key", None)
        return checked_corpus(
            {**about, "group_pattern": options.groups}, "--groups", options.groups
        )

    def like(self, path: str, train: CorpusSettings) -> CorpusSettings:
        return self.file_at(path)

    def languages(self) -> dict[str, str]:
        """One for both, unless what is written is a translation (``de-en``)."""
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
        told = plural(seen.different, "recording")
        self.say(f"{told}, about {hours * 60:,.1f} minutes of sound")
        return replace(seen, amount=hours, source=FramesSource(rate=min(rate, _HIGHEST_RATE)))

    def adds(self, row: Size, seen: CorpusSummary) -> Sections:
        assert seen.source is not None
        writers = 1 if row.below <= _SMALL else 2
        return {
            "source": seen.source.model_dump(),
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
