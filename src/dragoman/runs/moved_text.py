"""The text of a run that was moved, or whose text was: found again among files that are given."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, product
from pathlib import Path
from typing import Any

from dragoman.base.errors import DataError, RunError
from dragoman.data.files.corpora import corpus_fingerprint
from dragoman.data.files.corpus_settings import CORPUS_FILES, CorpusSettings
from dragoman.runs.recipe.sections import OldText
from dragoman.runs.run import NOTES, RECIPE, Run


def with_text(run: Run, given: Sequence[Path] = ()) -> Run:
    """The run with a recipe that names its text where it is now, which is written into its folder.

    A file that is not where the recipe says is looked for by its name among ``given``, files and
    folders, and in the run's folder; it is taken if it has the fingerprint of the text that the run
    was begun with. Where nothing is given, what is found nowhere stays as it is
    (``Run.require_text`` names it). Errors: ``RunError`` for another text of that name, for a file
    that is not among those given, and for ``given`` files that do not exist.
    """
    for path in given:
        if not path.exists():
            raise RunError(f"--text {path} does not exist")
    notes, data = run.notes(), run.recipe.data
    begun = [corpus["sha256"] for corpus in notes.get("corpora", [])]
    held = notes.get("held_out", {})
    old = data.old or OldText()
    corpora = [*data.train, *old.train]
    if data.prepared is None:
        corpora = [_find(run, corpus, given, begun[n : n + 1]) for n, corpus in enumerate(corpora)]
    sides = {
        side: corpus and _find(run, corpus, given, [held[side]] if side in held else [])
        for side, corpus in (
            ("dev", data.dev), ("test", data.test), ("old_dev", old.dev), ("old_test", old.test)
        )
    }  # fmt: skip
    update: dict[str, Any] = {"train": tuple(corpora[: len(data.train)])}
    update |= {side: sides[side] for side in ("dev", "test")}
    if data.old is not None:
        of_old = {"train": tuple(corpora[len(data.train) :]), "dev": sides["old_dev"]}
        update["old"] = old.model_copy(update={**of_old, "test": sides["old_test"]})
    changed = data.model_copy(update=update)
    if changed == data:
        return run
    recipe = run.recipe.model_copy(update={"data": changed})
    recipe.save(run.folder / RECIPE)
    return Run(run.folder, recipe)


def _find(
    run: Run, corpus: CorpusSettings, files: Sequence[Path], begun: Sequence[str]
) -> CorpusSettings:
    """``begun``: the fingerprint, where the run wrote it down."""
    missing = {
        key: Path(path)
        for key in CORPUS_FILES
        if (path := getattr(corpus, key)) is not None and not Path(path).exists()
    }
    places = {key: _places(path, files, run.folder) for key, path in missing.items()}
    unknown = [missing[key].name for key, paths in places.items() if not paths]
    if files and unknown:
        raise RunError(
            f"{run.folder} was begun with {' and '.join(unknown)}, but --text has no file of "
            "that name. Give each file under its old name, or a folder that contains them"
        )
    if not missing or unknown:
        return corpus
    named = {key: str(paths[0]) for key, paths in places.items()}
    if not begun:
        raise RunError(
            f"it is not known whether {run.folder} was trained on {' and '.join(named.values())}, "
            f"because {run.folder / NOTES} has no fingerprint of its text. If it is the same "
            f"text, change the paths in {run.folder / RECIPE}"
        )
    for together in product(*places.values()):
        there = corpus.model_copy(
            update={key: str(place) for key, place in zip(places, together, strict=True)}
        )
        try:
            if corpus_fingerprint(there) == begun[0]:
                return there
        except DataError as error:
            raise RunError(f"{error}. It was given as text of {run.folder}") from error
    raise RunError(
        f"{' and '.join(named.values())} is not the text that {run.folder} was trained on: its "
        "fingerprint differs. Give the old file, or train on this one: dragoman train FILES --from "
        f"{run.quoted}"
    )


def _places(path: Path, given: Sequence[Path], folder: Path) -> list[Path]:
    """The places where ``path`` may be now: given files of its name, then files in a folder below
    as many of its own folders as possible, so that ``dev/my.en`` is not ``my.en``."""
    named = [place for place in given if place.name == path.name]
    folders = [place for place in [*given, folder] if place.is_dir()]
    below = [Path(*path.parts[n:]) for n in range(1, len(path.parts))]
    inside = (place / tail for place in folders for tail in below)
    existing = (place.resolve() for place in chain(named, inside) if place.exists())
    return list(dict.fromkeys(existing))
