"""A sane size and schedule of a model that writes what is said in recordings, when a user gives
nothing but recordings and their texts (``sources/frames/spoken.py``).

``SPOKEN_TABLE`` is what is chosen: the hours of sound choose a row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from dragoman.base.errors import DataError, RecipeError
from dragoman.base.wording import plural
from dragoman.data.files.columns import numbered
from dragoman.data.files.corpora import read_lines, read_pairs
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.forms.identification import language_of
from dragoman.recipe.recipe import Recipe
from dragoman.recipe.spec import Spec
from dragoman.sizing.builder import CorpusSummary, RecipeBuilder, Sections, check_default
from dragoman.sizing.inputs import Inputs, absolute, given_language, given_languages, grouped_corpus
from dragoman.sizing.size import Size
from dragoman.sources.frames.recordings import rate_of, samples_of
from dragoman.sources.frames.settings import FramesSource
from dragoman.sources.frames.spoken import places_of
from dragoman.tasks.translation.spec import TRANSLATION

SPOKEN_TABLE = (
    Size(0.1, 200, 96, 4, 3, 0.1, 125, 100, 1.5e-3, 100),
    Size(0.5, 200, 96, 4, 3, 0.1, 250, 100, 1.5e-3, 60),
    Size(5, 200, 128, 4, 4, 0.1, 1_000, 300, 1.5e-3, 60),
    Size(50, 1_000, 256, 4, 6, 0.1, 4_000, 1_000, 1e-3, 40),
    Size(float("inf"), 4_000, 256, 4, 8, 0.1, 8_000, 2_000, 1e-3, 20),
)
"""By hours of sound; ``tokens_per_update`` counts what is written. Few minutes make few updates, so
theirs are small (docs/experiments.md, "Few minutes of recordings")."""
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

    task: ClassVar[Spec] = TRANSLATION
    table: ClassVar[Sequence[Size]] = SPOKEN_TABLE
    side = "target"
    noun = "recordings"
    tells_speakers = ", a list by a column named speaker"

    def takes(self, inputs: Inputs) -> bool:
        named = inputs.spec.name == self.task.name and len(inputs.names) == 1 and inputs.are_files
        return named and places_of(Path(inputs.first), read_lines) is not None

    def check(self, inputs: Inputs) -> None:
        inputs.refuse(("texts", "label_ends"), " does not go with recordings")
        check_default(inputs, "recordings", "read them")

    def corpus(self, inputs: Inputs) -> CorpusSettings:
        return self._corpus_at(inputs.first, inputs)

    def _corpus_at(self, path: str, inputs: Inputs) -> CorpusSettings:
        """What names files, texts and speakers there: as the options say, or the usual names."""
        about: dict[str, Any] = {"source": path, "format": "spoken"}
        about |= places_of(Path(path), read_lines) or {}
        if inputs.keys is not None:
            about |= dict(zip(("source_key", "target_key"), inputs.keys, strict=True))
        if inputs.columns is not None:
            file, text = numbered(inputs.columns)
            about |= {"source_column": file, "target_column": text}
        if inputs.groups is not None:
            about.pop("group_key", None)
        return grouped_corpus(about, inputs.groups)

    def languages(self, inputs: Inputs) -> dict[str, str]:
        """One for both, unless what is written is a translation (``de-en``)."""
        if inputs.languages and "-" in inputs.languages:
            source, target = given_languages(inputs.languages, inputs.names)
            return {"source": source, "target": target}
        code = given_language(inputs.languages, "") if inputs.languages else "und"
        return {"source": code, "target": code}

    def known(
        self, languages: Mapping[str, str], seen: CorpusSummary, base: Recipe | None
    ) -> Mapping[str, str]:
        if "und" not in languages.values():
            return languages
        code = language_of(seen.texts)
        if code == "und" and base is not None:
            return base.languages.model_dump()
        return {"source": code, "target": code}

    def look(self, corpus: CorpusSettings) -> CorpusSummary:
        amount, rate, seconds = 0, 0, list[float]()
        texts, groups = list[str](), Counter[str]()
        for pair in read_pairs(corpus):
            amount += 1
            rate = rate or rate_of(pair.source)
            if amount <= _LOOKED_AT:
                texts.append(pair.target)
                seconds.append(samples_of(pair.source, rate) / rate)
            if corpus.groups_by is not None:
                groups[pair.group] += 1
        if not amount:
            raise DataError(f"{corpus.source} names no recording")
        hours = sum(seconds) / len(seconds) * amount / 3_600
        source = FramesSource(rate=min(rate, _HIGHEST_RATE))
        return CorpusSummary(hours, amount, texts, source=source, groups=groups)

    def held_corpus(
        self, option: str, named: Sequence[str], train: CorpusSettings, inputs: Inputs
    ) -> CorpusSettings:
        if len(named) > 1:
            raise RecipeError(f"{option} {' '.join(named)}: give one folder or one list")
        return self._corpus_at(absolute(named[0]), inputs)

    def data(
        self,
        corpus: CorpusSettings,
        seen: CorpusSummary,
        held: Mapping[str, CorpusSettings],
        inputs: Inputs,
    ) -> dict[str, Any]:
        minutes = seen.amount * 60
        inputs.say(f"{plural(seen.different, 'recording')}, about {minutes:,.1f} minutes of sound")
        return super().data(corpus, seen, held, inputs)

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
