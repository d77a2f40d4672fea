"""The task of painting: a model reads a caption and writes the codes of a picture."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np

from dragoman.base.atomic import replacing_file
from dragoman.base.errors import DataError, RunError
from dragoman.base.measure import LOSS, Measure, percent
from dragoman.base.reading import hash_of_file, read_bytes
from dragoman.base.task import Side
from dragoman.base.wording import plural
from dragoman.data.files.corpora import naming_lines
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.data.split import hash_of
from dragoman.forms.form import Form, Pair
from dragoman.forms.sides import Forms
from dragoman.runs.recipe.sections import Sections
from dragoman.runs.recipe.spec import Examples, Spec
from dragoman.sources.file_examples import content_of
from dragoman.sources.picture.codes_form import CODES, WEIGHTS, Coder, CodesForm, CodeSymbols

LEARNED = "codes.learned"
"""The file in a painter's run with hashes of the pictures that its codes were learned from."""
_OWN_WEIGHTS, _OWN_LEARNED = "model.safetensors", Path("learned") / "0-source"
"""The files with the weights, and with the hashes of the pictures, in the run that has learned the
codes."""
_MOST = 1 << 32
"""The most bytes of a file of hashes."""


@dataclass(frozen=True)
class PaintingSpec(Spec):
    """The task of a painter, which reads captions. A search writes a picture as codes."""

    sections: ClassVar[frozenset[str]] = frozenset({"search", "painting"})
    target_file: ClassVar[str] = CODES
    search_rules: ClassVar[str] = "a picture has its own number of codes"
    overlaps_by_source: ClassVar[bool] = True
    never_generated: ClassVar[str] = "pictures"

    def check_source(self, recipe: Sections) -> None:
        if self.reads_files:
            raise ValueError(
                f'source.kind = "{recipe.source.kind}" is not text, but a {self.called} reads '
                "captions: leave it out"
            )
        for corpus in recipe.data.corpora:
            if corpus.holds != "captions":
                raise ValueError(
                    f"{corpus.name} has no captions for pictures. Set holds = captions"
                )

    def check_format(self, corpus: CorpusSettings) -> None:
        if corpus.format in ("trees", "tags", "coco", "spoken"):
            raise ValueError(
                f"{corpus.name}: a {self.called} learns from pictures and captions: format = tsv, "
                "jsonl, folders or idx"
            )

    def check_rest(self, recipe: Sections) -> None:
        if recipe.model.shares_vocabulary:
            raise ValueError(
                'words and codes cannot share a vocabulary: set model.tie = "target" or "none"'
            )

    def check_vocabularies(self, recipe: Sections) -> None:
        """Accept everything: there is only one vocabulary."""

    def forms(self, given: Mapping[Side, Form], folder: Path, longest: int) -> Forms:
        return Forms(given["source"], form_of_codes(folder))

    def learn_target(self, recipe: Sections, examples: Examples, folder: Path) -> list[str]:
        """Copy the codes of another run. Errors: ``RunError`` if it has none."""
        run = codes_run(recipe.painting.codes)
        symbols = CodeSymbols.load(run / CODES)
        own = run / _OWN_WEIGHTS if not symbols.weights else run / WEIGHTS
        if not own.is_file():
            raise RunError(
                f"{run} has no {own.name}: its training has not reached its first validation"
            )
        room = min(recipe.plan.max_target, recipe.model.longest or recipe.plan.max_target)
        if symbols.places + 1 > room:
            raise DataError(
                f"a picture of {run} has {symbols.places:,} codes, and the model learns "
                f"{room - 1:,} at most. Raise plan.max_target and model.positions.maximum to "
                f"{symbols.places + 1:,}"
            )
        digest = hash_of_file(own)
        _copy(own, folder / WEIGHTS)
        learned = run / (LEARNED if symbols.weights else _OWN_LEARNED)
        if learned.is_file():
            _copy(learned, folder / LEARNED)
        symbols.with_weights(digest).save(folder / CODES)
        form_of_codes(folder).coder  # noqa: B018, damaged weights are refused now
        codes = plural(symbols.places, "code")
        return [f"{codes} a picture, each one of {symbols.count:,}, as learned by {run}"]

    def check_held(
        self, recipe: Sections, held: Mapping[str, Sequence[Pair]], learned: Forms
    ) -> list[str]:
        target, said = CodesForm.of(learned.target), []
        known, data = target.seen, recipe.data
        for side, pairs in held.items():
            with naming_lines(data.dev, data.test, *data.train):
                for pair in pairs:  # else an error would show only after the training
                    target.picture_at(pair.target)
            count = count_seen(known, pairs)
            if count:
                said.append(
                    f"warning: the codes were learned from {count:,} of the {len(pairs):,} "
                    f"{side} {self.noun}, so the scores may be too high. Set the same --dev and "
                    "--test for both training runs"
                )
        return said

    def as_learned(self, pair: Pair) -> Pair:
        """Return the pair with a hash of its picture before the caption, because two pictures of
        the same caption are two examples."""
        return pair._replace(source=f"{content_of(pair.target)} {pair.source}")


def codes_run(name: str | None) -> Path:
    """Return the run folder ``name``, which must have codes. Errors: ``DataError`` without a name,
    ``RunError`` for a folder without codes."""
    if name is None:
        raise DataError(
            "a painter needs the codes of another run. Create it with dragoman train FILES "
            "--task codes, and set --codes RUN (painting.codes)"
        )
    run = Path(name)
    if not run.is_dir():
        raise RunError(f"there is no run folder {run} (painting.codes)")
    if not (run / CODES).is_file():
        raise RunError(
            f"{run} has no codes of pictures. Create a run that has: dragoman train FILES --task "
            "codes"
        )
    return run


def form_of_codes(folder: Path) -> CodesForm:
    """Return the object that converts between the pictures of a painter and their codes, read from
    the run folder ``folder``. Errors: ``RunError``."""
    symbols, weights = CodeSymbols.load(folder / CODES), folder / WEIGHTS
    return CodesForm(symbols, partial(_coder, symbols, weights), weights, folder / LEARNED)


def _coder(symbols: CodeSymbols, weights: Path) -> Coder:
    from dragoman.models.picture_codes import PictureCoder
    from dragoman.training.weights import open_weights, weights_in

    if not weights.is_file():
        raise RunError(f"{weights} is missing, and the painter needs it. Restore the file")
    if hash_of_file(weights) != symbols.weights:
        raise RunError(
            f"{weights} is not the file that the painter was trained with ({CODES} has another "
            "hash). Restore the file"
        )
    with open_weights(weights) as opened:
        return PictureCoder.of(symbols, weights_in(opened), str(weights))


def count_seen(known: Path | None, pairs: Sequence[Pair]) -> int:
    """Return how many pictures of ``pairs`` have a hash that is in the file ``known``; 0 without a
    file. Errors: ``RunError`` if the file is damaged."""
    if known is None or not known.is_file() or not pairs:
        return 0
    content = read_bytes(known, _MOST)
    if len(content) % 8:
        raise RunError(f"{known} is damaged: {len(content):,} bytes are not a multiple of 8")
    wanted = np.array([hash_of(content_of(pair.target)) for pair in pairs], np.uint64)
    return int(np.isin(wanted, np.frombuffer(content, "<u8")).sum())


def _copy(source: Path, to: Path) -> None:
    with replacing_file(to) as temporary:
        shutil.copyfile(source, temporary)


PAINTING = PaintingSpec(
    name="painting",
    called="painter",
    writes=True,
    noun="pictures",
    counted="target tokens",
    metrics={
        "exact": percent("exact pictures", share=True),
        "codes_right": percent("codes right", share=True),
        "loss": LOSS,
    },
    finished={
        "rmse": Measure("RMSE", "lower"),
        "rmse_of_codes": Measure("RMSE of the true codes", "lower"),
        "judged": percent("judged right", share=True),
        "judged_of_codes": percent("judged right, of the true codes", share=True),
        "judged_of_true": percent("judged right, of the true pictures", share=True),
    },
    evaluation_options=("beam", "precision", "output", "judge", "best_of"),
    verbs=(("paint", '"a caption"'),),
    hub_tag="text-to-image",
    limits=(
        "It paints only what its training captions describe, in pictures of one size.",
        "It shows no more detail than its codes can represent.",
    ),
)
