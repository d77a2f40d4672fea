"""Learns a run's shortlist from its training text, and measures its effect.

``models/shortlist.py`` explains shortlists; ``Translator`` uses them on request.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dragoman.engine.settings import TranslatorSettings
from dragoman.models.shortlist import Shortlist, ShortlistSettings, learn
from dragoman.runs.corpora import plain_pairs, token_pairs
from dragoman.runs.lock import lock_folder
from dragoman.runs.run import SHORTLIST, Run
from dragoman.search.settings import SearchSettings
from dragoman.tasks.translation.translator import Translator

TRIED = 200
"""The number of dev sentences that are translated with and without a shortlist."""


@dataclass(frozen=True)
class LearnedShortlist:
    """A shortlist, its file, and its effect on the dev set."""

    path: Path
    shortlist: Shortlist
    vocabulary: int
    """The number of tokens in the target vocabulary."""
    sentences: int
    """The number of dev sentences on which ``allowed`` and ``unchanged`` were measured; 0 if the
    run has none."""
    allowed: float
    """The mean number of target tokens that a sentence may use."""
    unchanged: float | None
    """The share of greedy translations that are the same with the shortlist; None without int8
    kernels."""

    def __str__(self) -> str:
        lines = [f"{self.path}: learned"]
        if self.sentences:
            lines.append(
                f"a sentence may use {self.allowed:,.0f} of {self.vocabulary:,} target tokens "
                f"(mean of {self.sentences} dev sentences)"
            )
        if self.unchanged is not None:
            lines.append(f"{self.unchanged:.1%} of their greedy translations stay the same")
        return "\n".join(lines)


def learn_shortlist(run: Run, settings: ShortlistSettings | None = None) -> LearnedShortlist:
    """Learn the shortlist of ``run`` from its training text, and write it into the run folder.

    Errors: ``DataError`` or ``RecipeError`` if the training text can no longer be read,
    ``RunError`` if it is no longer in its place or another process is working in the run folder.
    """
    run.require_text("train")
    source, target, recipe = run.source_text, run.target_text, run.recipe
    with lock_folder(run.folder):
        key = run.weights_hash  # first: without weights there is no use for a shortlist
        shortlist = learn(
            token_pairs(recipe, source, target),
            source.size,
            target.size,
            settings,
            always=(target.unknown, target.eos),
            shared=recipe.text.shared,
        )
        path = run.folder / SHORTLIST
        shortlist.save(path, key)
        texts = [pair.source for pair in plain_pairs(recipe, "dev")[:TRIED]]
        allowed = sum(len(shortlist.tokens_for(ids)) for ids in run.source.values(texts))
        return LearnedShortlist(
            path,
            shortlist,
            target.size,
            len(texts),
            allowed / max(1, len(texts)),
            _share_unchanged(run, texts) if texts else None,
        )


def _share_unchanged(run: Run, texts: list[str]) -> float | None:
    """Return the share of greedy translations of ``texts`` that a shortlist does not change; None
    without int8 kernels."""
    greedy = SearchSettings(beam=1)
    outputs = []
    for shortlist in (False, True):
        translator = Translator(
            run, TranslatorSettings(precision="int8", shortlist=shortlist), greedy
        )
        if not translator.engine.path.whole_steps:
            return None
        outputs.append([translation.text for translation in translator.batch(texts)])
    full, short = outputs
    return sum(a == b for a, b in zip(full, short, strict=True)) / len(texts)
