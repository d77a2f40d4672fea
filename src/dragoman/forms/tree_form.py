"""Constituency trees as a form: what a parser writes of the words that it reads.

A tree as people have it is one line of brackets (``tree.py``). Its tokens are the symbols
of ``tree_symbols.py``, without the words, and ``tree_rules.py`` is what they obey.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dragoman.errors import DataError
from dragoman.forms.pieces import SPACE
from dragoman.forms.rules import Rules
from dragoman.forms.tree_rules import TreeRules, usual_longest
from dragoman.forms.tree_symbols import TreeSymbols
from dragoman.forms.written_form import WrittenForm
from dragoman.plural import plural
from dragoman.tree import Tree, TreeError, read_trees

_ESCAPED = {"(": "-LRB-", ")": "-RRB-"}


class TreeForm(WrittenForm):
    """The brackets and tags of a treebank."""

    symbols: TreeSymbols
    noun = "trees"

    def __init__(self, symbols: TreeSymbols, language: str = "und") -> None:
        self.symbols = symbols
        self.language = language

    @property
    def no_tag(self) -> str:
        """The tag that every word has, where tags were not learned; "" where they were."""
        return "" if self.symbols.with_tags else self.symbols.tags[0]

    def tokens(self, raws: Sequence[str]) -> list[list[int]]:
        """Errors: ``DataError`` for a line that is no tree."""
        return [self.symbols.encode(tree_of(raw)) for raw in raws]

    def raw(self, outputs: Sequence[Iterable[int]]) -> list[str]:
        """The symbols as they are written; ``tree`` puts words into them."""
        return [" ".join(self.shown(tokens)) for tokens in outputs]

    def tree(self, tokens: Iterable[int], sentence: str) -> Tree:
        """The tree of an output over the words of what was read. Errors: ``DataError`` for tokens
        that make none, which a search by ``rules`` never gives."""
        tree = self.symbols.decode(tokens, words_of(sentence))
        if tree is None:
            raise DataError(f"these brackets make no tree over the words of {sentence[:60]!r}")
        return tree

    def shown(self, tokens: Iterable[int]) -> list[str]:
        return self.symbols.shown(tokens)

    def raw_for(self, source: str, tokens: Sequence[int]) -> str:
        """The tree over the words of the source; brackets alone, where they make none."""
        tree = self.symbols.decode(tokens, words_of(source))
        return super().raw_for(source, tokens) if tree is None else str(tree)

    def shown_for(self, source: str, tokens: Sequence[int]) -> list[str]:
        """Brackets, and the words themselves, with their tags where these were learned: dog/NN.
        Each is a word of its own to whoever joins pieces."""
        left = iter(words_of(source))
        names = []
        for token, name in zip(tokens, self.symbols.shown(tokens), strict=True):
            if token in self.symbols.words and (word := next(left, None)) is not None:
                name = f"{word}/{name}" if self.symbols.with_tags else word
            names.append(name if token == self.eos else SPACE + name)
        return names

    def longest_output(self, length: int, extra: int) -> int:
        """As if each token that is read were a word."""
        return usual_longest(length, self.symbols.chain)

    def rules(self, raw: str, most: int | None = None) -> Rules:
        words = len(words_of(raw))
        longest = words + 2 if most is None else most
        if words == 0 or words + 2 > longest:
            raise DataError(
                f"a sentence of {plural(words, 'word')} has a tree of {words + 2:,} symbols at "
                "least, and "
                f"this model writes {longest:,} at most"
                if words
                else "an empty line has no tree"
            )
        return TreeRules(self.symbols, words, most)


def tree_of(line: str) -> Tree:
    """The one tree on a line. Errors: ``DataError``."""
    try:
        trees = [tree for _, tree in read_trees([line])]
    except TreeError as error:
        raise DataError(f"{error}: {line[:60]!r}") from error
    if len(trees) != 1:
        raise DataError(f"one tree is wanted on a line, not {len(trees)}: {line[:60]!r}")
    return trees[0]


def words_of(sentence: str) -> list[str]:
    """The words of a sentence, between spaces; parentheses as treebanks write them."""
    for bracket, name in _ESCAPED.items():
        sentence = sentence.replace(bracket, name)
    return sentence.split()
