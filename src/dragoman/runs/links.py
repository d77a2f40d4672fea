"""The links that guided alignment teaches: those that a corpus brings, else those of statistics; of
trees, those that the trees themselves tell."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

from dragoman.alignment import StatisticalAligner, TokenPair
from dragoman.base.errors import DataError
from dragoman.base.wording import plural
from dragoman.data.files.corpora import corpus_fingerprint, read_lines, read_pairs
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.data.store import TokenStore
from dragoman.data.word_links import Booleans, WordLinks, word_starts, words_of
from dragoman.forms.form import Pair
from dragoman.forms.subwords.text import Text
from dragoman.forms.tree_form import TreeSymbols
from dragoman.metrics.alignment import Links, parse_links
from dragoman.runs.corpora import corpora_of
from dragoman.runs.recipe.recipe import Recipe

FILE = "alignment.safetensors"
"""In the training folder of a run."""

_TOGETHER = 4096
"""Examples that are aligned at once."""


def training_links(
    recipe: Recipe,
    store: TokenStore,
    vocabularies: tuple[Text, Text],
    folder: Path,
    say: Callable[[str], None],
) -> WordLinks:
    """The links of every example of ``store``, kept in ``folder`` once they are known.

    ``vocabularies`` of source and target. The corpora that the store was made of are read anew.
    Errors: ``DataError`` for a file of links that does not fit its corpus.
    """
    named = recipe.data.learned
    known = [corpus_fingerprint(corpus) for corpus in named if corpus.links is not None]
    key = hashlib.sha256(" ".join([store.folder.name, *known]).encode()).hexdigest()[:24]
    if (word_links := WordLinks.load(folder / FILE, key, len(store))) is not None:
        return word_links
    starts = (word_starts(vocabularies[0]), word_starts(vocabularies[1]))
    links: dict[int, Links] = {}
    if known:
        examples = iter(range(len(store)))
        for corpus, pairs in zip(named, corpora_of(recipe, "train"), strict=True):
            of_corpus = zip(pairs.pairs, examples, strict=False)
            if corpus.links is not None:
                links.update(_read_links(corpus, of_corpus, store, starts))
            else:
                for _ in of_corpus:
                    pass
    if len(known) < len(named) or not named:
        say(f"aligning {plural(len(store), 'pair')}, for guided alignment")
        learned = _learn_links(store, vocabularies, starts)
        links = dict(enumerate(learned)) | links
    word_links = WordLinks.of(links.get(example, frozenset()) for example in range(len(store)))
    say(f"{plural(word_links.linked, 'pair has', 'pairs have')} links, of {len(store):,}")
    folder.mkdir(parents=True, exist_ok=True)
    word_links.save(folder / FILE, key)
    return word_links


def links_of_trees(store: TokenStore, sentences: Text, symbols: TreeSymbols) -> WordLinks:
    """Links each symbol to the word that comes next after it, so that a head follows which words
    are left; none for sentences whose words the vocabulary begins elsewhere."""
    begins = word_starts(sentences)

    def links(example: int) -> Links:
        written = np.isin(store.tokens("target", example), list(symbols.words))
        words, read = int(written.sum()), store.tokens("source", example)
        if not len(read) or words_of(read, begins)[-1] + 1 != words:
            return frozenset()
        following = np.cumsum(written)
        return frozenset((int(word), t) for t, word in enumerate(following) if word < words)

    return WordLinks.of(links(example) for example in range(len(store)))


def _learn_links(
    store: TokenStore, vocabularies: tuple[Text, Text], starts: tuple[Booleans, Booleans]
) -> Iterator[Links]:
    """Links by an HMM over the tokens of all examples. Words are linked if any tokens are."""

    def tokens(examples: Iterable[int]) -> Iterator[TokenPair]:
        for example in examples:
            yield store.tokens("source", example), store.tokens("target", example)

    aligner = StatisticalAligner.learn(
        tokens(range(len(store))), vocabularies[0].size, vocabularies[1].size
    )
    for first in range(0, len(store), _TOGETHER):
        some = list(tokens(range(first, min(first + _TOGETHER, len(store)))))
        for (source, target), links in zip(some, aligner.align(some), strict=True):
            of_source, of_target = words_of(source, starts[0]), words_of(target, starts[1])
            yield frozenset((int(of_source[s]), int(of_target[t])) for s, t in links)


def _read_links(
    corpus: CorpusSettings,
    examples: Iterable[tuple[Pair, int]],
    store: TokenStore,
    starts: tuple[Booleans, Booleans],
) -> Iterator[tuple[int, Links]]:
    """Yields the links that the file of a corpus gives for its examples; none for those in which
    the vocabulary begins other words than the spaces of the text do."""
    assert corpus.links is not None
    lines = list(read_lines(corpus.links))
    if len(lines) != (count := sum(1 for _ in read_pairs(corpus))):
        raise DataError(
            f"{corpus.links} has {plural(len(lines), 'line')} but {corpus.name} has "
            f"{plural(count, 'pair')}: line n of the one must be the links of pair n of the other"
        )
    for pair, example in examples:
        where = f"{corpus.links}, line {pair.line}"
        links = parse_links(lines[pair.line - 1], where).possible
        sizes = len(pair.source.split()), len(pair.target.split())
        for source, target in links:
            if source >= sizes[0] or target >= sizes[1]:
                raise DataError(
                    f"{where}: the link {source}-{target} is outside of its sentences of "
                    f"{sizes[0]} and {sizes[1]} words. Words are separated by spaces and counted "
                    "from 0"
                )
        words = [
            int(words_of(store.tokens(side, example), begins)[-1:].sum()) + 1
            for side, begins in zip(("source", "target"), starts, strict=True)
        ]
        if tuple(words) == sizes:
            yield example, links
