"""From the files that a recipe names to what training takes: stores of tokens.

The way of the data: read -> clean -> hold out (``corpora.py``) -> learn subwords, of the train side
alone (``learn_vocabularies``) -> tokenise once into a memory-mapped store, which is kept in a cache
and found again as long as nothing changed.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.base.errors import DataError, FileError, RunError
from dragoman.base.wording import plural
from dragoman.data.files.corpora import corpus_fingerprint, naming_lines, read_pairs
from dragoman.data.length_ratio import LengthRatio
from dragoman.data.split import hash_of
from dragoman.data.store import TokenStore
from dragoman.data.store_writer import build_store, store_key
from dragoman.data.word_links import WordLinks
from dragoman.forms.form import Form, Pair
from dragoman.forms.lexicon import Lexicon, words_in
from dragoman.forms.segmentation import segment
from dragoman.forms.sides import Forms
from dragoman.runs.corpora import SYNTHETIC_VOICES, corpora_of, new_cleaner, spoken_corpora
from dragoman.runs.links import links_of_trees, training_links
from dragoman.runs.prepared import read_prepared, store_of
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.run import LENGTHS, LONGEST_WORDS, SEVERAL_SENTENCES, Run, load_forms
from dragoman.runs.user_cache import cache_folder
from dragoman.sources.frames import synthetic_voices

_LOOKED_AT = 2000
"""Training sources that are cut into sentences to know that share: some tenths of a second."""
_COUNTED = 20_000
"""Training sources whose words are counted to know how long they are."""
_RARE = 0.001
"""The share of them that may be longer."""
_MOST_READ = 1_000_000
"""Training sources whose words are counted: what is not among them is rare at least."""

Say = Callable[[str], None]
"""A function that shows one line of text to a person."""


@dataclass(frozen=True)
class Prepared:
    """Everything that training needs of the data. Prepared by Moses, if the recipe says so."""

    forms: Forms
    train: TokenStore
    dev: list[Pair]
    test: list[Pair]
    links: WordLinks | None
    """Links between the words of each training example, where a head is taught to align."""
    notes: dict[str, Any]
    """The cleaning report, hashes of the corpora, how many pairs each part has."""


def prepare(recipe: Recipe, run_folder: Path, say: Say) -> Prepared:
    """Read, clean, split, and tokenise by the vocabularies of ``run_folder``.

    Errors: ``DataError`` for files that cannot be used, or a corpus that cleaning empties;
    ``RunError`` for vocabularies that are missing or damaged.
    """
    task = recipe.spec
    forms = load_forms(recipe, run_folder, prepared=True)
    sides: dict[str, Form] = {
        side: form for side, form in forms._asdict().items() if side in task.sides
    }
    corpora = fingerprints(recipe)
    key = key_of(recipe, sides, corpora)
    store = _open_or_build_store(recipe, sides, key, run_folder, say)
    dev, test = side_pairs(recipe, "dev"), side_pairs(recipe, "test")
    if (of_old_text := recipe.of_old_text) is not None:
        dev += _as_many(side_pairs(of_old_text, "dev"), len(dev))
    notes = {
        **store.notes,
        "corpora": [
            {"name": name, "sha256": fingerprint, "weight": weight}
            for name, fingerprint, weight in corpora
        ],
        "held_out": _held_fingerprints(recipe),
        "pairs": {"train": len(store), "dev": len(dev), "test": len(test)},
    }
    real = _real(recipe, store)
    if synthetic := len(store) - real:
        notes["synthetic"] = synthetic
    two_texts = len(recipe.spec.texts) > 1
    if two_texts and not recipe.data.moses:  # which hides where sentences begin
        notes[SEVERAL_SENTENCES] = _share_of_several_sentences(store, real, recipe.languages.source)
    if two_texts:
        source, target = (store.lengths[side][:real] for side in ("source", "target"))
        if ratio := LengthRatio.of(source, target):
            notes[LENGTHS] = asdict(ratio)
            if forms.source.spaced and not recipe.data.moses:
                notes[LONGEST_WORDS] = _longest_words(store, real)
    _say_dropped(store.notes.get("cleaning", {}), recipe.spec.noun, say)
    if (groups := _groups(recipe)) is not None:
        notes["groups"] = groups
        amount = plural(groups["count"], "group")
        say(f"{amount} by {groups['by']}; each is in only one part of the split")
    read = plural(len(store), recipe.spec.noun.removesuffix("s"))
    read += f" ({synthetic:,} of them synthetic)" if synthetic else ""
    say(f"{read} to train on, {len(dev):,} dev, {len(test):,} test")
    links = None
    if recipe.training.guided.weight:
        vocabulary = forms.source.vocabulary
        assert vocabulary is not None  # else the recipe is refused
        if forms.target.has_links:
            links = links_of_trees(store, vocabulary, forms.trees.symbols)
        else:
            both = vocabulary, forms.written.vocabulary
            links = training_links(recipe, store, both, run_folder / "training", say)
    return Prepared(forms, store, dev, test, links, notes)


def _real(recipe: Recipe, store: TokenStore) -> int:
    """The number of training examples before the first corpus of synthetic ones, or all."""
    synthetic = (corpus.is_synthetic for corpus in recipe.data.train)
    first = next((number for number, is_made in enumerate(synthetic) if is_made), None)
    return len(store) if first is None else store.corpora[first].first


def _groups(recipe: Recipe) -> dict[str, Any] | None:
    """Which setting tells the groups of the training examples, and how many there are; None where
    nothing does. Errors: ``DataError`` for a group that is in two of training, dev and test,
    with both places."""
    data, count = recipe.data, 0
    if data.prepared is not None:  # which has none
        return None
    seen: dict[int, tuple[str, str]] = {}  # by what a split goes by: Anna and anna are one
    held = [("dev", data.dev), ("test", data.test)]
    for side, corpus in [*(("training", corpus) for corpus in data.train), *held]:
        if corpus is None or corpus.groups_by is None:
            continue
        for pair in read_pairs(corpus):
            if not pair.group:  # a split goes by its text
                continue
            place = f"{corpus.name}, line {pair.line}"
            other, first = seen.setdefault(hash_of(pair.group), (side, place))
            if other != side:
                raise DataError(
                    f"{place}: the group {pair.group!r} is in {side} and in {other} ({first}). "
                    "Move the whole group to one of them"
                )
        count = len(seen) if side == "training" else count
    by = dict.fromkeys(corpus.groups_by for corpus in data.train if corpus.groups_by is not None)
    return {"by": ", ".join(by), "count": count} if by else None


def _say_voices(recipe: Recipe, say: Say) -> None:
    times, language = recipe.data.synthetic_voices, recipe.languages.spoken
    count = len(set(synthetic_voices.voices(language)))
    often = "once" if times == 1 else f"{times} times"
    say(
        f"each training text is also spoken {often}, by {plural(count, 'synthetic voice')} of "
        f"{language}"
    )
    for program in synthetic_voices.missing_programs(language):
        say(f"{program} is not installed, so its voices are left out (apt install {program})")


def _say_dropped(cleaning: dict[str, Any], noun: str, say: Say) -> None:
    """``cleaning``: the result of ``CleaningReport.to_dict``, or nothing."""
    dropped = cleaning.get("read", 0) - cleaning.get("kept", 0)
    if dropped:
        by = [f"{name} {d['count']:,}" for name, d in cleaning["filters"].items() if d["count"]]
        say(f"cleaning drops {dropped:,} of {cleaning['read']:,} {noun}: {', '.join(by)}")


def _share_of_several_sentences(store: TokenStore, real: int, language: str) -> float:
    """The share of sources with more than one sentence, of some that are spread over the first
    ``real`` ones."""
    examples = range(0, real, max(1, real // _LOOKED_AT))
    several = sum(len(segment(store.text("source", n).strip(), language)) > 1 for n in examples)
    return round(several / max(1, len(examples)), 4)


def _longest_words(store: TokenStore, real: int) -> int:
    """The number of words that all but one in a thousand sources have at most, by a sample."""
    examples = range(0, real, max(1, real // _COUNTED))
    words = [len(words_in(store.text("source", n))) for n in examples]
    return int(np.quantile(words, 1 - _RARE, method="higher"))


def count_words(recipe: Recipe, prepared: Prepared) -> Lexicon | None:
    """The words of the training sources; None where there are none, where words do not stand
    between spaces, or where Moses has cut them."""
    source = prepared.forms.source
    if "source" not in recipe.spec.sides or not source.spaced or recipe.data.moses:
        return None
    store = prepared.train
    some = range(0, len(store), max(1, -(-len(store) // _MOST_READ)))
    return Lexicon.count(store.text("source", n) for n in some)


def _open_or_build_store(
    recipe: Recipe, forms: Mapping[str, Form], key: str, run_folder: Path, say: Say
) -> TokenStore:
    """The tokens of the training text, in the cache; where there is none or no room, in the run."""
    if recipe.data.prepared is not None:
        return store_of(recipe, key, {side: form.size for side, form in forms.items()})
    own = run_folder / "training" / "stores"
    cache = None if (own / key).exists() else cache_folder("stores")

    def build(folder: Path) -> TokenStore:
        cleaner = new_cleaner(recipe)
        if recipe.data.synthetic_voices:
            _say_voices(recipe, say)
        with naming_lines(*recipe.data.train):
            return build_store(
                [*corpora_of(recipe, "train", cleaner), *spoken_corpora(recipe)],
                forms, folder, key,
                notes=lambda: {"cleaning": cleaner.report.to_dict()},
            )  # fmt: skip

    if cache is not None:
        try:
            return build(cache)
        except FileError as error:
            say(f"{str(error).partition('. ')[0]}; the tokens go into {own}")
    return build(own)


def check_unchanged(recipe: Recipe, notes: dict[str, Any], folder: Path, say: Say) -> None:
    """Checks that the text is still that with which the run in ``folder`` was begun.

    ``notes``: those of that run about its data. Errors: ``RunError`` if the training or the dev
    text changed: either changes which weights come out. A change of the test text is only reported.
    """
    begun = [(c["name"], c["sha256"], c["weight"]) for c in notes.get("corpora", [])]
    now = fingerprints(recipe) if begun else []
    changed = [name for name, *rest in now if (name, *rest) not in begun]
    if changed and recipe.data.embedded is not None:
        raise RunError(
            f"{folder} was begun with another version of this program, whose {changed[0]} corpus "
            "was different, so it cannot be resumed. Train a new run"
        )
    if changed == [SYNTHETIC_VOICES] and len(now) == len(begun):
        raise RunError(
            f"{folder} was begun with other synthetic voices than those of {_programs(recipe)} "
            "here, so it cannot be resumed. Install the same programs, or train from its "
            f"weights: dragoman train FILES --from {shlex.quote(str(folder))}"
        )
    if changed or len(now) != len(begun):
        raise RunError(
            f"the training text of {folder} has changed since the run was begun "
            f"({', '.join(changed) or 'there were more corpora'}), so it cannot be resumed. "
            "Restore the old files, or train on the new ones from the run's weights: dragoman "
            f"train FILES --from {shlex.quote(str(folder))}"
        )
    begun_held = notes.get("held_out")
    if begun_held is None:  # its data.json was removed
        return
    held = _held_fingerprints(recipe)
    if any(held.get(side) != begun_held.get(side) for side in ("dev", "old_dev")):
        raise RunError(
            f"the dev text of {folder} has changed since the run was begun, and it decides "
            "which weights are kept, so the run cannot be resumed. Restore the old files, or train "
            f"from its weights: dragoman train FILES --from {folder}"
        )
    if held.get("test") != begun_held.get("test"):
        say(
            f"warning: the test text of {folder} has changed since the run was begun: its scores "
            "are not those of the old text"
        )


def _programs(recipe: Recipe) -> str:
    """The speech programs that this machine has."""
    programs = {voice.program for voice in synthetic_voices.voices(recipe.languages.spoken)}
    return " and ".join(sorted(programs))


def training_key(run: Run) -> str:
    """A short name for the tokens that a run learns from: the same text, cleaned, held out and cut
    alike. Reads the files of the text."""
    sides: dict[str, Form] = {"source": run.source, "target": run.target}
    return key_of(run.recipe, sides, fingerprints(run.recipe))


def key_of(
    recipe: Recipe, sides: Mapping[str, Form], corpora: Sequence[tuple[str, str, float]]
) -> str:
    """A short name for the tokens of all that the text is made to: ``sides`` are the forms of the
    sides that there are, ``corpora`` is what ``fingerprints`` gives."""
    return store_key(
        *(form.fingerprint for form in sides.values()),
        recipe.data.cleaning.model_dump_json(),
        recipe.data.split.model_dump_json(),
        *([recipe.data.old.split.model_dump_json()] if recipe.data.old is not None else []),
        *_moses_fingerprint(recipe),
        *(f"{name} {fingerprint} {weight}" for name, fingerprint, weight in corpora),
    )


def _moses_fingerprint(recipe: Recipe) -> list[str]:
    """All that Moses' preparation of a text depends on."""
    languages = recipe.languages
    parts = [f"moses {recipe.data.moses}"]
    if recipe.data.moses:
        parts += [languages.source, languages.target, metadata.version("sacremoses")]
    return parts


def side_pairs(recipe: Recipe, side: str) -> list[Pair]:
    """The pairs of "dev" or "test", prepared by Moses if the recipe says so."""
    return list(chain.from_iterable(corpus.pairs for corpus in corpora_of(recipe, side)))


def _as_many(pairs: list[Pair], most: int) -> list[Pair]:
    """At most so many of the pairs, spread over all of them."""
    return pairs[:: -(-len(pairs) // max(1, most)) or 1]


def fingerprints(recipe: Recipe) -> list[tuple[str, str, float]]:
    """The name, content hash and weight of each training corpus."""
    if recipe.data.embedded is not None:
        return [(recipe.data.embedded, f"embedded {recipe.spec.embedded_fingerprint()}", 1.0)]
    if recipe.data.prepared is not None:
        return read_prepared(recipe.data.prepared).corpora
    corpora = [(c.name, corpus_fingerprint(c), c.weight) for c in recipe.data.train]
    if (of_old_text := recipe.of_old_text) is not None:
        corpora += fingerprints(of_old_text)
    if times := recipe.data.synthetic_voices:
        fingerprint = synthetic_voices.fingerprint(recipe.languages.spoken, times)
        corpora.append((SYNTHETIC_VOICES, fingerprint, 1.0))
    return corpora


def _held_fingerprints(recipe: Recipe) -> dict[str, str]:
    """Fingerprints of the dev and test files that the recipe names; what is split off follows from
    the rest."""
    named = {"dev": recipe.data.dev, "test": recipe.data.test}
    if (old := recipe.data.old) is not None:
        named |= {"old_dev": old.dev, "old_test": old.test}
    return {side: corpus_fingerprint(corpus) for side, corpus in named.items() if corpus}
