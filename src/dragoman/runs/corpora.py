"""The text of a recipe, as its files have it: read, cleaned, and split into train, dev and test.
And what a run learns of it before it trains: vocabularies, labels, brackets. If the run or its text
was moved, the text is found again among files that are given.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import chain, islice, product
from pathlib import Path
from typing import Any

from dragoman.base.errors import DataError, RecipeError, RunError
from dragoman.data.cleaning import Cleaner
from dragoman.data.corpus_checks import Doubt, find_doubts
from dragoman.data.correspondence import Block, BlockSampler, sample_blocks
from dragoman.data.files.corpora import corpus_fingerprint, read_pairs
from dragoman.data.files.corpus_settings import CORPUS_FILES, CorpusSettings
from dragoman.data.split import split_pairs
from dragoman.data.store import Tokens
from dragoman.data.store_writer import WeightedPairs
from dragoman.forms.form import Pair
from dragoman.forms.subwords.text import Text
from dragoman.forms.subwords.vocabulary_learning import learn_vocabulary
from dragoman.forms.text_form import MosesText
from dragoman.runs.prepared import pairs_of_prepared, read_prepared
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.recipe.sections import OldText
from dragoman.runs.run import NOTES, RECIPE, Run, vocabulary_name
from dragoman.runs.user_cache import cache_folder
from dragoman.sources.frames.synthetic_voices import speak_all

SYNTHETIC_VOICES = "synthetic voices"
"""The name of the training texts that synthetic voices speak, as a corpus."""
_CUT_TOGETHER = 4096
"""Training pairs that are cut into tokens at once."""


def new_cleaner(recipe: Recipe) -> Cleaner:
    """The cleaner of a recipe, which drops examples that are not worth training on."""
    return Cleaner(recipe.data.cleaning, recipe.spec.texts)


def corpora_of(recipe: Recipe, side: str, cleaner: Cleaner | None = None) -> list[WeightedPairs]:
    """The corpora of ``side`` ("train", "dev" or "test"), lazily read.

    A dev or test set that the recipe does not name is what the split holds out of ``train``.
    """
    corpora = plain_corpora(recipe, side, cleaner)
    prepare = moses_of(recipe)
    if prepare is None:
        return corpora
    return [WeightedPairs(map(prepare, c.pairs), c.weight, c.name) for c in corpora]


def moses_of(recipe: Recipe) -> Callable[[Pair], Pair] | None:
    """Returns what prepares the text of an example as Moses does; None if it is not used."""
    if not recipe.data.moses:
        return None
    written_is_text = "target" in recipe.spec.texts
    source, target = (
        MosesText(code) for code in (recipe.languages.source, recipe.languages.target)
    )

    def prepare(pair: Pair) -> Pair:
        written = target.prepare(pair.target) if written_is_text else pair.target
        return pair._replace(source=source.prepare(pair.source), target=written)

    return prepare


def plain_corpora(recipe: Recipe, side: str, cleaner: Cleaner | None = None) -> list[WeightedPairs]:
    """The corpora of ``corpora_of`` as plain text, whatever the recipe prepares text to."""
    data = recipe.data
    if data.embedded is not None:
        return [WeightedPairs(recipe.spec.embedded_pairs(recipe, side), 1.0, data.embedded)]
    named: CorpusSettings | None = {"dev": data.dev, "test": data.test}.get(side)
    if named is not None:
        return [WeightedPairs(read_pairs(named), 1.0, named.name)]
    if data.prepared is not None:
        return [WeightedPairs(pairs_of_prepared(recipe, side), 1.0, Path(data.prepared).name)]
    if side != "train" and getattr(data.split, side) == 0.0:
        return []
    _require_text(recipe)
    used = cleaner or new_cleaner(recipe)
    corpora = []
    for corpus in data.train:
        if corpus.is_synthetic and side != "train":  # nothing is measured on synthetic text
            continue
        pairs = used.pairs(read_pairs(corpus), corpus.name)
        if not corpus.is_synthetic:
            pairs = split_pairs(pairs, data.split, side)
        corpora.append(WeightedPairs(pairs, corpus.weight, corpus.name))
    if side == "train" and (of_old_text := recipe.of_old_text) is not None:
        corpora += [old for old in plain_corpora(of_old_text, "train", used) if old.weight]
    return corpora


def spoken_corpora(recipe: Recipe) -> list[WeightedPairs]:
    """The training texts as synthetic voices speak them, lazily; nothing where the recipe has none.

    Errors: ``DataError`` where nothing can speak them, or there is no place for the sound.
    """
    times = recipe.data.synthetic_voices
    if not times:
        return []
    folder = cache_folder("voices")
    if folder is None:
        raise DataError(
            "data.synthetic_voices stores recordings in the cache, but there is no cache "
            "folder. Set DRAGOMAN_CACHE=FOLDER, or set data.synthetic_voices to 0"
        )
    texts = (pair.target for corpus in corpora_of(recipe, "train") for pair in corpus.pairs)
    pairs = speak_all(texts, times, recipe.languages.spoken, folder)
    return [WeightedPairs(pairs, 1.0, SYNTHETIC_VOICES)]


def training_pairs(
    recipe: Recipe, cleaner: Cleaner, doubts: list[Doubt] | None = None
) -> Iterator[Pair]:
    """All pairs of the training corpora that ``cleaner`` keeps, before anything is held out.

    What looks wrong with a corpus is appended to ``doubts`` when it has been read.
    """
    data = recipe.data
    if data.embedded is not None:
        yield from cleaner.pairs(recipe.spec.all_embedded_pairs(), data.embedded)
        return
    _require_text(recipe)
    for corpus in data.train:
        sampler = BlockSampler()
        yield from cleaner.pairs(sampler.watch(read_pairs(corpus)), corpus.name)
        if doubts is not None and len(recipe.spec.texts) > 1 and not corpus.is_synthetic:
            doubts += _doubts(recipe, corpus, sampler.blocks)


def plain_pairs(recipe: Recipe, side: str) -> list[Pair]:
    """All pairs of "dev" or "test", as plain text whatever the recipe prepares text to."""
    return list(chain.from_iterable(corpus.pairs for corpus in plain_corpora(recipe, side)))


def has_test_set(recipe: Recipe) -> bool:
    """True if a finished run has a test set of its own."""
    data = recipe.data
    return data.embedded is not None or data.test is not None or data.split.test > 0


def token_pairs(recipe: Recipe, source: Text, target: Text) -> Iterator[tuple[Tokens, Tokens]]:
    """The training text of a recipe, read and cut into tokens again."""
    pairs = chain.from_iterable(corpus.pairs for corpus in corpora_of(recipe, "train"))
    while part := list(islice(pairs, _CUT_TOGETHER)):
        sources = source.encode([pair.source for pair in part])
        yield from zip(sources, target.encode([pair.target for pair in part]), strict=True)


def doubts_of(recipe: Recipe, sides: Sequence[str] = ("train", "dev", "test")) -> list[Doubt]:
    """Reads the files of a recipe once, and returns what looks wrong in a sample of them.

    Errors: ``DataError`` for files that cannot be used.
    """
    data = recipe.data
    if data.prepared is not None:
        return [Doubt(**doubt) for doubt in read_prepared(data.prepared).doubts]
    if len(recipe.spec.texts) < 2:  # all of them are about how two sides fit
        return []
    corpora: dict[str, Sequence[CorpusSettings | None]] = {
        "train": data.train, "dev": [data.dev], "test": [data.test]
    }  # fmt: skip
    doubts = []
    for corpus in filter(None, chain.from_iterable(corpora[side] for side in sides)):
        if corpus.is_synthetic:  # a model made it: what is wrong with it is known
            continue
        doubts += _doubts(recipe, corpus, sample_blocks(read_pairs(corpus)))
    if (of_old_text := recipe.of_old_text) is not None:
        doubts += doubts_of(of_old_text, sides)
    return doubts


def _doubts(recipe: Recipe, corpus: CorpusSettings, blocks: list[Block]) -> list[Doubt]:
    return find_doubts(corpus, blocks, (recipe.languages.source, recipe.languages.target))


def named_examples(recipe: Recipe) -> Iterator[tuple[str, Pair]]:
    """The training examples of a recipe, each with the name of its corpus."""
    for corpus in corpora_of(recipe, "train"):
        for pair in corpus.pairs:
            yield corpus.name, pair


def _require_text(recipe: Recipe) -> None:
    if not recipe.data.train:
        raise RecipeError(
            f"recipe {recipe.name} has no text to train on. Give two files (dragoman train my.en "
            f"my.de --recipe {recipe.name}), or set data.train in it"
        )


_LEARNED_TOGETHER = 4000
"""Characters of a line that a vocabulary is learned from; what lies behind is another one."""


def learn_vocabularies(
    recipe: Recipe,
    folder: Path,
    say: Callable[[str], None],
    known: Collection[str] = (),
    *,
    examples: Callable[[], Iterator[tuple[str, Pair]]] | None = None,
    lines: Callable[[str], Iterator[str]] | None = None,
) -> None:
    """Learn the vocabularies of a recipe from its training text, and its labels or brackets where
    it has any, and save them in ``folder``.

    Errors: ``DataError`` for text that cannot be used, or does not support so large a vocabulary,
    and for labels between which there is nothing to choose.
    ``known``: files that are there already. ``examples`` and ``lines``: the training text, and what
    the vocabulary of a name is learned from; None: as the recipe's files have them.
    """
    examples = examples or partial(named_examples, recipe)
    for line in recipe.spec.learn_target(recipe, examples, folder):
        say(line)
    kind = recipe.text.kind
    learned = []
    for name, sides in sides_of_vocabularies(recipe).items():
        if name in known:
            continue
        some = training_lines(recipe, sides) if lines is None else lines(name)
        text = learn_vocabulary(some, recipe.text, seed=recipe.seed, symbols=recipe.spec.symbols)
        text.save(folder / name)
        learned.append(f"{text.size:,} {' and '.join(sides)}")
    if learned:
        say(f"learned {' and '.join(learned)} {kind} tokens")


def sides_of_vocabularies(recipe: Recipe) -> dict[str, tuple[str, ...]]:
    """The vocabularies of a recipe, by the names of their files: the sides that each is of."""
    sides_of: dict[str, tuple[str, ...]] = {}
    for side in recipe.spec.texts:
        name = vocabulary_name(recipe, side)
        sides_of[name] = (*sides_of.get(name, ()), side)
    return sides_of


def training_lines(recipe: Recipe, sides: Sequence[str]) -> Iterator[str]:
    """The training text of a recipe as a vocabulary is learned from it, some of its sides.
    Monolingual text counts; synthetic text, of which a side is a part of it, does not."""
    data = recipe.data
    if any(corpus.is_synthetic for corpus in data.train):
        real = tuple(corpus for corpus in data.train if not corpus.is_synthetic)
        recipe = recipe.override(data={"train": real})
    for _, pair in named_examples(recipe):
        for side in sides:
            yield from lines_of_text(getattr(pair, side))
    prepare = moses_of(recipe) or (lambda pair: pair)
    for text in data.monolingual:
        if text.side in sides:
            for pair in read_pairs(CorpusSettings(source=text.source, format="text")):
                both = prepare(pair._replace(source=pair.target))
                yield from lines_of_text(getattr(both, text.side))


def lines_of_text(text: str) -> Iterator[str]:
    """Yields the lines of a text from which a vocabulary is learned, long ones in parts."""
    if len(text) <= _LEARNED_TOGETHER and "\n" not in text:
        yield text
        return
    for line in text.splitlines():
        while len(line) > _LEARNED_TOGETHER:
            end = line.rfind(" ", 1, _LEARNED_TOGETHER) + 1 or _LEARNED_TOGETHER
            yield line[:end]
            line = line[end:]
        yield line


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
        corpora = [
            _find_moved(run, corpus, given, begun[n : n + 1]) for n, corpus in enumerate(corpora)
        ]
    sides = {
        side: corpus and _find_moved(run, corpus, given, [held[side]] if side in held else [])
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


def _find_moved(
    run: Run, corpus: CorpusSettings, files: Sequence[Path], begun: Sequence[str]
) -> CorpusSettings:
    """``begun``: the fingerprint, where the run wrote it down."""
    missing = {
        key: Path(path)
        for key in CORPUS_FILES
        if (path := getattr(corpus, key)) is not None and not Path(path).exists()
    }
    places = {key: _moved_places(path, files, run.folder) for key, path in missing.items()}
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


def _moved_places(path: Path, given: Sequence[Path], folder: Path) -> list[Path]:
    """The places where ``path`` may be now: given files of its name, then files in a folder below
    as many of its own folders as possible, so that ``dev/my.en`` is not ``my.en``."""
    named = [place for place in given if place.name == path.name]
    folders = [place for place in [*given, folder] if place.is_dir()]
    below = [Path(*path.parts[n:]) for n in range(1, len(path.parts))]
    inside = (place / tail for place in folders for tail in below)
    existing = (place.resolve() for place in chain(named, inside) if place.exists())
    return list(dict.fromkeys(existing))
