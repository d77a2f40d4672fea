"""From the files that a recipe names to what training takes: vocabularies and stores of tokens.

The way of the data: read -> clean -> hold out -> learn subwords (train side alone) -> tokenise once
into a memory-mapped store, which is kept in a cache and found again as long as nothing changed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from itertools import chain, islice
from pathlib import Path
from typing import Any

from dragoman.data.cleaning import Cleaner
from dragoman.data.corpora import CorpusSettings, Pair, corpus_fingerprint, read_pairs
from dragoman.data.correspondence import Sampler
from dragoman.data.demo_corpus import demo_corpus
from dragoman.data.demo_labels import label_of
from dragoman.data.doubts import Doubt, find_doubts
from dragoman.data.length_ratio import LengthRatio
from dragoman.data.split import SplitSettings, find_overlaps, split_pairs
from dragoman.data.store import Store, Tokens, WeightedPairs, build_store, store_key
from dragoman.data.word_links import WordLinks
from dragoman.errors import DataError, FileError, RecipeError, RunError
from dragoman.forms.form import Form
from dragoman.forms.labels import Labels
from dragoman.forms.lexicon import Lexicon
from dragoman.forms.moses import MosesText
from dragoman.forms.segmentation import segment
from dragoman.forms.text import Text
from dragoman.forms.tree_form import tree_of
from dragoman.forms.tree_symbols import TreeSymbols
from dragoman.recipe import Recipe
from dragoman.task import TASKS
from dragoman.tasks.guided import training_links
from dragoman.tasks.run import (
    BRACKETS,
    LABELS,
    LENGTHS,
    SEVERAL_SENTENCES,
    Forms,
    load_forms,
    vocabulary_name,
)
from dragoman.tasks.user_cache import cache_folder

_LOOKED_AT = 2000
"""Training sources that are cut into sentences to know that share: some tenths of a second."""
_MOST_READ = 1_000_000
"""Training sources whose words are counted: what is not among them is rare at least."""

_CUT_TOGETHER = 4096
"""Training pairs that are cut into tokens at once."""

_FEW = 3
"""Examples of a label: fewer are more likely a slip than a label."""

_LEARNED_TOGETHER = 4000
"""Characters of a line that a vocabulary is learned from; what lies behind is another one."""

Say = Callable[[str], None]
"""Tells a person one line."""


@dataclass(frozen=True)
class Prepared:
    """Everything that training needs of the data. Prepared by Moses, if the recipe says so."""

    forms: Forms
    train: Store
    dev: list[Pair]
    test: list[Pair]
    links: WordLinks | None
    """Of the words of each training example, where a head is taught to align."""
    notes: dict[str, Any]
    """The cleaning report, hashes of the corpora, how many pairs each part has."""


def new_cleaner(recipe: Recipe) -> Cleaner:
    """What drops the examples of a recipe that are not worth training on."""
    return Cleaner(recipe.data.cleaning, TASKS[recipe.task].texts)


def corpora_of(recipe: Recipe, side: str, cleaner: Cleaner | None = None) -> list[WeightedPairs]:
    """The corpora of ``side`` ("train", "dev" or "test"), lazily read.

    A dev or test set that the recipe does not name is what the split holds out of ``train``.
    """
    corpora = _plain_corpora(recipe, side, cleaner)
    if not recipe.data.moses:
        return corpora
    labelled = TASKS[recipe.task].labels
    source, target = (
        MosesText(code) for code in (recipe.languages.source, recipe.languages.target)
    )

    def prepared(pairs: Iterable[Pair]) -> Iterator[Pair]:
        for pair in pairs:
            written = pair.target if labelled else target.prepare(pair.target)
            yield Pair(pair.line, source.prepare(pair.source), written)

    return [WeightedPairs(prepared(c.pairs), c.weight, c.name) for c in corpora]


def _plain_corpora(
    recipe: Recipe, side: str, cleaner: Cleaner | None = None
) -> list[WeightedPairs]:
    data = recipe.data
    if data.embedded == "demo":
        return [WeightedPairs(_demo_pairs(recipe, side), 1.0, "demo")]
    named: CorpusSettings | None = {"dev": data.dev, "test": data.test}.get(side)
    if named is not None:
        return [WeightedPairs(read_pairs(named), 1.0, named.name)]
    if side != "train" and getattr(data.split, side) == 0.0:
        return []
    _require_text(recipe)
    used = cleaner or new_cleaner(recipe)
    return [
        WeightedPairs(
            _held(used.pairs(read_pairs(corpus), corpus.name), data.split, side),
            corpus.weight,
            corpus.name,
        )
        for corpus in data.train
    ]


def token_pairs(recipe: Recipe, source: Text, target: Text) -> Iterator[tuple[Tokens, Tokens]]:
    """The training text of a recipe, read and cut into tokens anew."""
    pairs = chain.from_iterable(corpus.pairs for corpus in corpora_of(recipe, "train"))
    while part := list(islice(pairs, _CUT_TOGETHER)):
        sources = source.encode([pair.source for pair in part])
        yield from zip(sources, target.encode([pair.target for pair in part]), strict=True)


def prepare(recipe: Recipe, run_folder: Path, say: Say) -> Prepared:
    """Read, clean, split, and tokenise by the vocabularies of ``run_folder``.

    Errors: ``DataError`` for files that cannot be used, or a corpus that cleaning empties;
    ``RunError`` for vocabularies that are missing or damaged.
    """
    task = TASKS[recipe.task]
    forms = load_forms(recipe, run_folder, prepared=True)
    sides: dict[str, Form] = {
        side: form for side, form in forms._asdict().items() if side in task.sides
    }
    fingerprints = _fingerprints(recipe)
    key = store_key(
        *(form.fingerprint for form in sides.values()),
        recipe.data.cleaning.model_dump_json(),
        recipe.data.split.model_dump_json(),
        *_moses_fingerprint(recipe),
        *(f"{name} {fingerprint} {weight}" for name, fingerprint, weight in fingerprints),
    )
    store = _stored(recipe, sides, key, run_folder, say)
    dev, test = _held_out(recipe, "dev"), _held_out(recipe, "test")
    notes = {
        **store.notes,
        "corpora": [
            {"name": name, "sha256": fingerprint, "weight": weight}
            for name, fingerprint, weight in fingerprints
        ],
        "held_out": _held_fingerprints(recipe),
        "pairs": {"train": len(store), "dev": len(dev), "test": len(test)},
    }
    if len(task.texts) > 1 and not recipe.data.moses:  # which hides where sentences begin
        notes[SEVERAL_SENTENCES] = _several_sentences(store, recipe.languages.source)
    if len(task.texts) > 1 and (
        found := LengthRatio.of(store.lengths["source"], store.lengths["target"])
    ):
        notes[LENGTHS] = found.to_dict()
    _say_dropped(store.notes.get("cleaning", {}), task.noun, say)
    say(f"{len(store):,} {task.noun} to train on, {len(dev):,} dev, {len(test):,} test")
    links = None
    if recipe.training.guided.weight:
        source, target = forms.source.vocabulary, forms.written.vocabulary
        assert source is not None  # else the recipe is refused
        links = training_links(
            recipe, store, (source, target), lambda: corpora_of(recipe, "train"),
            run_folder / "training", say,
        )  # fmt: skip
    return Prepared(forms, store, dev, test, links, notes)


def _say_dropped(cleaning: dict[str, Any], noun: str, say: Say) -> None:
    """``cleaning``: a ``CleaningReport.to_dict``, or nothing."""
    dropped = cleaning.get("read", 0) - cleaning.get("kept", 0)
    if dropped:
        by = [f"{name} {d['count']:,}" for name, d in cleaning["filters"].items() if d["count"]]
        say(f"cleaning drops {dropped:,} of {cleaning['read']:,} {noun}: {', '.join(by)}")


def _several_sentences(store: Store, language: str) -> float:
    """Of sources spread over the whole store."""
    examples = range(0, len(store), max(1, len(store) // _LOOKED_AT))
    several = sum(len(segment(store.text("source", n).strip(), language)) > 1 for n in examples)
    return round(several / max(1, len(examples)), 4)


def count_words(recipe: Recipe, prepared: Prepared) -> Lexicon | None:
    """The words of the training sources; None where there are none, where words do not stand
    between spaces, or where Moses has cut them."""
    source = prepared.forms.source
    if "source" not in TASKS[recipe.task].sides or not source.spaced or recipe.data.moses:
        return None
    store = prepared.train
    step = max(1, -(-len(store) // _MOST_READ))
    return Lexicon.count(store.text("source", n) for n in range(0, len(store), step))


def _stored(
    recipe: Recipe, forms: Mapping[str, Form], key: str, run_folder: Path, say: Say
) -> Store:
    """The tokens of the training text, in the cache; where there is none or no room, in the run."""
    own = run_folder / "training" / "stores"
    cache = None if (own / key).exists() else cache_folder("stores")

    def build(folder: Path) -> Store:
        cleaner = new_cleaner(recipe)
        return build_store(
            corpora_of(recipe, "train", cleaner), forms, folder, key,
            notes=lambda: {"cleaning": cleaner.report.to_dict()},
        )  # fmt: skip

    if cache is not None:
        try:
            return build(cache)
        except FileError as error:
            say(f"{error}; the tokens go into {own}")
    return build(own)


def doubts_of(recipe: Recipe, sides: Sequence[str] = ("train", "dev", "test")) -> list[Doubt]:
    """What looks wrong with the files of a recipe. Reads them once; what it looks at is a sample.

    Errors: ``DataError`` for files that cannot be used.
    """
    data = recipe.data
    if len(TASKS[recipe.task].texts) < 2:  # all of them are about how two sides fit
        return []
    corpora: dict[str, Sequence[CorpusSettings | None]] = {
        "train": data.train, "dev": [data.dev], "test": [data.test]
    }  # fmt: skip
    found = []
    for corpus in filter(None, chain.from_iterable(corpora[side] for side in sides)):
        sampler = Sampler()
        for _ in sampler.watch(read_pairs(corpus)):
            pass
        found += _doubts(recipe, corpus, sampler)
    return found


def _doubts(recipe: Recipe, corpus: CorpusSettings, sampler: Sampler) -> list[Doubt]:
    return find_doubts(corpus, sampler.blocks, (recipe.languages.source, recipe.languages.target))


def warn_of_overlap(
    recipe: Recipe, dev: Sequence[Pair], test: Sequence[Pair], say: Say
) -> dict[str, str]:
    """Say how much of dev and test stands in the training text too -> a note for the run."""
    if recipe.data.embedded is not None:  # disjoint by construction
        return {}
    train: Iterable[Pair] = chain.from_iterable(
        corpus.pairs for corpus in corpora_of(recipe, "train")
    )
    held: dict[str, Sequence[Pair]] = {"dev": dev, "test": test}
    if TASKS[recipe.task].labels:  # which all overlap: texts are compared alone
        train = map(_alone, train)
        held = {name: [_alone(pair) for pair in pairs] for name, pairs in held.items()}
    seen = find_overlaps(train, held)
    warnings = [words for name, found in seen.items() if (words := found.in_words(name))]
    for warning in warnings:
        say(f"warning: {warning}")
    return {"overlap": "; ".join(warnings)} if warnings else {}


def _alone(pair: Pair) -> Pair:
    """What is read of a pair, as a text that stands alone."""
    return Pair(pair.line, "", pair.source)


def check_unchanged(recipe: Recipe, notes: dict[str, Any], folder: Path, say: Say) -> None:
    """Whether the text is still what the run in ``folder`` was begun with.

    ``notes``: what that run wrote down of its data. Errors: ``RunError`` if the training or the dev
    text changed: either changes which weights come out. Of another test text it is only said.
    """
    begun = [(c["name"], c["sha256"], c["weight"]) for c in notes.get("corpora", [])]
    now = _fingerprints(recipe) if begun else []
    changed = [name for name, *rest in now if (name, *rest) not in begun]
    if changed and recipe.data.embedded is not None:
        raise RunError(
            f"{folder} was begun with another version of this program, whose {changed[0]} corpus "
            "was not this one, so it cannot go on. Train anew"
        )
    if changed or len(now) != len(begun):
        raise RunError(
            f"the training text of {folder} is not what it was begun with ("
            f"{', '.join(changed) or 'there were more corpora'}), so it cannot go on as if nothing "
            "had happened. Put the old files back; or train on the new ones from its weights: "
            f"dragoman train FILES --from {folder}"
        )
    begun_held = notes.get("held_out")
    if begun_held is None:  # an older run, which did not write them down
        return
    held = _held_fingerprints(recipe)
    if held.get("dev") != begun_held.get("dev"):
        raise RunError(
            f"the dev text of {folder} is not what it was begun with, and it decides which weights "
            "are kept, so the run cannot go on as if nothing had happened. Put the old files back; "
            f"or train from its weights: dragoman train FILES --from {folder}"
        )
    if held.get("test") != begun_held.get("test"):
        say(
            f"warning: the test text of {folder} is not what it was begun with: its scores are not "
            "those of the old text"
        )


def _moses_fingerprint(recipe: Recipe) -> list[str]:
    """All that Moses' preparation of a text depends on."""
    languages = recipe.languages
    parts = [f"moses {recipe.data.moses}"]
    if recipe.data.moses:
        parts += [languages.source, languages.target, metadata.version("sacremoses")]
    return parts


def _require_text(recipe: Recipe) -> None:
    if not recipe.data.train:
        raise RecipeError(
            f"recipe {recipe.name} names no text to train on: give two files (dragoman train my.en "
            f"my.de --recipe {recipe.name}), or set data.train in it"
        )


def training_pairs(
    recipe: Recipe, cleaner: Cleaner, doubts: list[Doubt] | None = None
) -> Iterator[Pair]:
    """All pairs of the training corpora that ``cleaner`` keeps, before anything is held out.

    What looks wrong with a corpus is appended to ``doubts`` when it has been read.
    """
    data = recipe.data
    if data.embedded is not None:
        parts = demo_corpus()
        numbered = enumerate(chain(parts.train, parts.dev, parts.test), 1)
        pairs = (Pair(line, pair.source, pair.target) for line, pair in numbered)
        yield from cleaner.pairs(pairs, "demo")
        return
    _require_text(recipe)
    for corpus in data.train:
        sampler = Sampler()
        yield from cleaner.pairs(sampler.watch(read_pairs(corpus)), corpus.name)
        if doubts is not None and len(TASKS[recipe.task].texts) > 1:
            doubts += _doubts(recipe, corpus, sampler)


def has_test_set(recipe: Recipe) -> bool:
    """Whether there is something to measure a finished run on."""
    data = recipe.data
    return data.embedded is not None or data.test is not None or data.split.test > 0


def plain_pairs(recipe: Recipe, side: str) -> list[Pair]:
    """All pairs of "dev" or "test", as plain text whatever the recipe prepares text to."""
    return list(chain.from_iterable(corpus.pairs for corpus in _plain_corpora(recipe, side)))


def _held_out(recipe: Recipe, side: str) -> list[Pair]:
    return list(chain.from_iterable(corpus.pairs for corpus in corpora_of(recipe, side)))


def _held(pairs: Iterable[Pair], split: SplitSettings, side: str) -> Iterator[Pair]:
    assert side in ("train", "dev", "test")
    return split_pairs(pairs, split, side)  # type: ignore[arg-type]


def _demo_pairs(recipe: Recipe, side: str) -> Iterator[Pair]:
    """One part of the embedded corpus, with the sides that the task has; of one side the English,
    if that is its language, or else the German."""
    corpus = demo_corpus()
    pairs = enumerate(getattr(corpus, side), 1)
    if TASKS[recipe.task].labels:
        labelled = ((line, pair.source, label_of(pair)) for line, pair in pairs)
        return (Pair(line, text, label) for line, text, label in labelled if label is not None)
    if "source" in TASKS[recipe.task].sides:
        return (Pair(line, pair.source, pair.target) for line, pair in pairs)
    of = "source" if recipe.languages.target == "en" else "target"
    # Two English sentences may have one German one, and two German ones one English: what is held
    # out must not be trained on.
    trained = {getattr(pair, of) for pair in corpus.train} if side != "train" else set()
    texts = ((line, getattr(pair, of)) for line, pair in pairs)
    return (Pair(line, "", text) for line, text in texts if text not in trained)


def _fingerprints(recipe: Recipe) -> list[tuple[str, str, float]]:
    if recipe.data.embedded is not None:
        return [(recipe.data.embedded, f"embedded {_demo_fingerprint()}", 1.0)]
    return [(c.name, corpus_fingerprint(c), c.weight) for c in recipe.data.train]


def _held_fingerprints(recipe: Recipe) -> dict[str, str]:
    """Of the dev and test files that the recipe names; what is split off follows from the rest."""
    named = {"dev": recipe.data.dev, "test": recipe.data.test}
    return {side: corpus_fingerprint(corpus) for side, corpus in named.items() if corpus}


def _demo_fingerprint() -> str:
    return store_key(json.dumps([pair[:2] for pair in demo_corpus().train]))


def learn_vocabularies(recipe: Recipe, folder: Path, say: Say, known: Collection[str] = ()) -> None:
    """Learn the vocabularies of a recipe from its training text, and its labels or brackets where
    it has any, and save them in ``folder``.

    Errors: ``DataError`` for text that cannot be used, or does not support so large a vocabulary,
    and for labels between which there is nothing to choose.
    ``known``: files that are there already.
    """
    if TASKS[recipe.task].labels:
        learn_labels(recipe, folder, say)
    if TASKS[recipe.task].trees:
        learn_brackets(recipe, folder, say)

    def sentences(sides: tuple[str, ...]) -> Iterator[str]:
        for corpus in corpora_of(recipe, "train"):
            for pair in corpus.pairs:
                for side in sides:
                    yield from _lines(getattr(pair, side))

    kind = recipe.text.kind
    sides_of: dict[str, tuple[str, ...]] = {}  # of each file
    for side in TASKS[recipe.task].texts:
        name = vocabulary_name(recipe, side)
        if name in known:
            continue
        sides_of[name] = (*sides_of.get(name, ()), side)
    learned = []
    for name, sides in sides_of.items():
        text = Text.train(
            sentences(sides), recipe.text, seed=recipe.seed, symbols=TASKS[recipe.task].symbols
        )
        text.save(folder / name)
        learned.append(f"{text.size:,} {' and '.join(sides)}")
    if learned:
        say(f"learned {' and '.join(learned)} {kind} tokens")


def learn_brackets(recipe: Recipe, folder: Path, say: Say) -> None:
    """The brackets and tags of the training trees of a recipe, saved in ``folder``."""
    trees = (tree_of(p.target) for corpus in corpora_of(recipe, "train") for p in corpus.pairs)
    symbols = TreeSymbols.learn(trees, recipe.trees)
    symbols.save(folder / BRACKETS)
    say(f"{symbols.size:,} symbols of trees")


def learn_labels(recipe: Recipe, folder: Path, say: Say) -> None:
    """The labels of the training examples of a recipe, saved in ``folder``.

    Errors: ``DataError`` for an example without one, or labels of which there is no choice.
    """

    found, counts = Labels.learn(pair.target for _, pair in _labelled(recipe))
    found.save(folder / LABELS)
    say(f"{found.size:,} labels: {found.in_words()}")
    rare = sorted(name for name, count in counts.items() if count < _FEW)
    if rare:
        say(
            f"warning: {len(rare):,} of {found.size:,} labels have fewer than {_FEW} training "
            f"examples, such as {rare[0]!r} with {counts[rare[0]]}: too few to be learned. Is one "
            "the name of a column? A file of examples has no header"
        )


def check_labels(recipe: Recipe, labels: Labels, learned: Path) -> None:
    """Whether all labels of the training text are among those of the run ``learned``, which is to
    be trained further. Errors: ``DataError`` naming the first line whose label is not."""
    for name, pair in _labelled(recipe):
        if labels.value(pair.target) is None:
            raise DataError(
                f"{name}, line {pair.line}: {pair.target[:60]!r} is no label of {learned}, which "
                f"knows {labels.in_words()}. To begin with what it makes of text, and labels of "
                "your own: --take encoder or --take decoder, whichever its model is"
            )


def _labelled(recipe: Recipe) -> Iterator[tuple[str, Pair]]:
    """The training examples of a recipe, each with the name of its corpus.

    Errors: ``DataError`` for one without a label.
    """
    for corpus in corpora_of(recipe, "train"):
        for pair in corpus.pairs:
            if not pair.target.strip():
                raise DataError(f"{corpus.name}, line {pair.line}: the label is empty")
            yield corpus.name, pair


def _lines(text: str) -> Iterator[str]:
    """What a vocabulary is learned from: the lines of a text, long ones in parts."""
    if len(text) <= _LEARNED_TOGETHER and "\n" not in text:
        yield text
        return
    for line in text.splitlines():
        while len(line) > _LEARNED_TOGETHER:
            end = line.rfind(" ", 1, _LEARNED_TOGETHER) + 1 or _LEARNED_TOGETHER
            yield line[:end]
            line = line[end:]
        yield line
