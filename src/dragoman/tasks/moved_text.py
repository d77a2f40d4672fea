"""The text of a run that was moved, or whose text was: found again among files that are given."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from dragoman.data.corpora import CorpusSettings, corpus_fingerprint
from dragoman.errors import DataError, RunError
from dragoman.tasks.run import NOTES, RECIPE, Run


def with_text(run: Run, given: Sequence[Path] = ()) -> Run:
    """The run with a recipe that names its text where it is now, which is written into its folder.

    A file that is not where the recipe says is looked for by its name among ``given``, files and
    folders, and in the run's folder; it is taken if it has the fingerprint of the text that the run
    was begun with. What is found nowhere stays as it is (``Run.require_text`` names it). Errors:
    ``RunError`` for another text of that name, and ``given`` files that do not exist.
    """
    for path in given:
        if not path.exists():
            raise RunError(f"--text {path} does not exist")
    notes, data = run.notes(), run.recipe.data
    begun = [one["sha256"] for one in notes.get("corpora", [])]
    held = notes.get("held_out", {})
    found = [_found(run, corpus, given, begun[n : n + 1]) for n, corpus in enumerate(data.train)]
    sides = {
        side: corpus and _found(run, corpus, given, [held[side]] if side in held else [])
        for side, corpus in (("dev", data.dev), ("test", data.test))
    }
    changed = data.model_copy(update={"train": tuple(found), **sides})
    if changed == data:
        return run
    recipe = run.recipe.model_copy(update={"data": changed})
    recipe.save(run.folder / RECIPE)
    return Run(run.folder, recipe)


def _found(
    run: Run, corpus: CorpusSettings, given: Sequence[Path], begun: Sequence[str]
) -> CorpusSettings:
    """``begun``: the fingerprint, where the run wrote it down."""
    missing = {
        key: Path(path)
        for key in ("source", "target", "links")
        if (path := getattr(corpus, key)) is not None and not Path(path).exists()
    }
    places: dict[str, str] = {}
    for key, path in missing.items():
        folders = [one for one in [*given, run.folder] if one.is_dir()]
        candidates = chain(
            (one for one in given if one.name == path.name), (one / path.name for one in folders)
        )
        place = next((one for one in candidates if one.exists()), None)
        if place is None:
            return corpus
        places[key] = str(place.resolve())
    if not places:
        return corpus
    there, where = corpus.model_copy(update=places), " and ".join(places.values())
    if not begun:
        raise RunError(
            f"whether {where} is the text that {run.folder} was begun with cannot be told: "
            f"{run.folder / NOTES} has no fingerprint of it. Change the paths in "
            f"{run.folder / RECIPE} if you are sure"
        )
    try:
        same = corpus_fingerprint(there) == begun[0]
    except DataError as error:
        raise RunError(f"{error}. It was given as text of {run.folder}") from error
    if not same:
        raise RunError(
            f"{where} is not the text that {run.folder} was begun with: its fingerprint differs. "
            f"Give the old file; or train on this one: dragoman train FILES --from {run.folder}"
        )
    return there
