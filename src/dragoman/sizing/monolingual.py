"""Recipes for learning from monolingual text by back-translation (Sennrich et al., 2016).

A model that translates into the source language makes a source for each text of the target
language. Such pairs have a tag before their source (Caswell et al., 2019, "Tagged
back-translation"), so that the model can tell them from real pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Literal

from dragoman.base.errors import DataError, RecipeError
from dragoman.base.task import Side
from dragoman.data.correspondence import BlockSampler
from dragoman.data.files.corpora import read_pairs
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.forms.identification import other_language
from dragoman.forms.languages import base, name_of
from dragoman.runs.prepare import Say
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.recipe.sections import MonolingualText
from dragoman.sizing.options import TrainOptions, absolute

BYTES_A_TOKEN = 3.3
"""The UTF-8 bytes of a token in a vocabulary of some thousand tokens, similar in all scripts."""
TAG = "<bt>"
"""The word before the source of a synthetic pair."""
MOST_FOR_EACH = 4.0
"""The default of ``--mono-ratio``, if there is enough monolingual text."""
_LINES_READ = 400
"""The language is identified from this many lines."""
_OTHER: dict[Side, Side] = {"source": "target", "target": "source"}


@dataclass(frozen=True)
class MonolingualSummary:
    """The size of a monolingual text that was read."""

    lines: int
    tokens: float
    """The approximate number of tokens in a line."""


def monolingual_corpus(text: MonolingualText) -> CorpusSettings:
    """The corpus that reads monolingual text; each line is the target of a pair."""
    return CorpusSettings(source=text.source, format="text")


def monolingual_texts(options: TrainOptions) -> tuple[MonolingualText, ...]:
    """The monolingual texts that the options name.

    Errors: ``RecipeError`` for options that do not fit together, and for a file that is given
    twice.
    """
    if options.mono_target is None:
        why = " works only with --mono-target, which names text of the target language"
        options.refuse({"mono_source": why, "mono_ratio": why, "rounds": why})
        return ()
    if options.mono_source is None and (options.rounds or 1) > 1:
        raise RecipeError(
            f"--rounds {options.rounds} needs text of the source language too. Give it with "
            "--mono-source FILE"
        )
    if options.mono_source is not None and options.rounds == 1:
        raise RecipeError(
            "--rounds 1 does not use the text of --mono-source. Leave one of them out"
        )
    given: dict[Literal["source", "target"], str] = {"target": options.mono_target}
    if options.mono_source is not None:
        given["source"] = options.mono_source
    known = [name for names in (options.dev, options.test) for name in names or () if name]
    known = [*options.inputs, *known]
    for side, name in given.items():
        if (twice := next((other for other in known if _is_same(other, name)), None)) is not None:
            raise RecipeError(
                f"--mono-{side} {name} is the same file as {twice}. Give text that is not among "
                "the pairs"
            )
        known.append(name)
    return tuple(MonolingualText(source=absolute(name), side=side) for side, name in given.items())


def _is_same(name: str, other: str) -> bool:
    path = Path(name)
    return path.exists() and Path(other).exists() and path.samefile(other)


def look_at_text(text: MonolingualText, code: str, say: Say) -> MonolingualSummary:
    """Read monolingual text once, in bounded memory, and warn if it is of another language than
    ``code``. Errors: ``DataError`` for text that cannot be used."""
    say(f"reading {text.source}")
    sampler, lines, written = BlockSampler(), 0, 0
    for pair in sampler.watch(read_pairs(monolingual_corpus(text))):
        lines += bool(pair.target.strip())
        written += len(pair.target.encode("utf-8", "surrogateescape"))
    if not lines:
        raise DataError(f"{text.source} contains no text, only spaces")
    every = list(chain.from_iterable(sampler.blocks))
    some = islice(every, 0, None, max(1, len(every) // _LINES_READ))
    if reads := other_language((pair.target for pair in some), code):
        say(
            f"warning: {text.source} should be {name_of(base(code))}, the language of the "
            f"{text.side}, and reads as {reads}"
        )
    return MonolingualSummary(lines, written / lines / BYTES_A_TOKEN)


def for_each_pair(options: TrainOptions, lines: float, pairs: float) -> float:
    """The number of synthetic pairs in an epoch for each real one, if there are ``lines`` of
    monolingual text."""
    most = MOST_FOR_EACH if options.mono_ratio is None else options.mono_ratio
    return min(lines / pairs, most)


def exchange_sides(recipe: Recipe) -> Recipe:
    """The recipe of a translator in the other direction, with the same text and the same split."""

    def exchange(corpus: CorpusSettings | None) -> CorpusSettings | None:
        return corpus and corpus.model_copy(update={"exchanged": not corpus.exchanged})

    data, languages, plan = recipe.data, recipe.languages, recipe.plan
    changed = recipe.override(
        data={
            "train": tuple(map(exchange, data.train)),
            "dev": exchange(data.dev),
            "test": exchange(data.test),
            "monolingual": tuple(
                text.model_copy(update={"side": _OTHER[text.side]}) for text in data.monolingual
            ),
        },
        languages={"source": languages.target, "target": languages.source},
        plan={"max_source": plan.max_target, "max_target": plan.max_source},
    )
    names = changed.languages.source, changed.languages.target
    return changed.model_copy(update={"name": "-".join(names)})


def with_synthetic_pairs(recipe: Recipe, file: Path, lines: int, ratio: float) -> Recipe:
    """The recipe that also learns from a file of ``lines`` synthetic pairs. ``ratio``: the number
    of them in an epoch for each line of monolingual text that should be learned, at most 1."""
    corpus = CorpusSettings(source=str(file), format="tsv", tag=TAG, weight=min(1.0, ratio))
    symbols = dict.fromkeys((*recipe.text.user_symbols, TAG))
    return recipe.override(
        data={"train": (*recipe.data.train, corpus)}, text={"user_symbols": tuple(symbols)}
    )
