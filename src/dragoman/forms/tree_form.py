"""The form of constituency trees, which a parser writes for the words that it reads.

In a corpus, a tree is one line of brackets (``forms/tree.py``). Its tokens are symbols (Vinyals et
al., 2015, *Grammar as a Foreign Language*, section 2), and obey ``TreeRules``:

    (S (NP (DT The) (NN cat)) (VP (VBZ sleeps)))
    (S (NP DT NN )NP (VP VBZ )VP )S            with tags
    (S (NP XX XX )NP (VP XX )VP )S             without

Each opening and each closing bracket is a symbol with its label; a word is its tag, or one symbol
for all words. The words themselves are not written, because they are those of the source.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import reduce
from pathlib import Path
from typing import Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dragoman.base.errors import DataError, RunError
from dragoman.base.reading import read_json
from dragoman.base.settings import Settings
from dragoman.base.wording import plural
from dragoman.forms.form import SPECIAL, Booleans, Rules, Symbols, WrittenForm
from dragoman.forms.subwords.sampling import SPACE
from dragoman.forms.tree import DEEPEST, Tree, TreeError, read_trees

_ESCAPED = {"(": "-LRB-", ")": "-RRB-"}
NO_TAG = "XX"
"""The tag of every word if tags are not learned."""

_MOST = 10_000
"""The most labels, and the most tags; treebanks have some dozens."""
_ALL = 400_000
"""The most characters of all together: their file must not exceed MAX_JSON to be read."""


class TreeSettings(Settings):
    """The representation of trees as symbols (task parsing)."""

    tags: Literal["none", "kept"] = "none"
    """none: every word is written as the same symbol (XX), which gives better parses than tags
    (Vinyals et al., 2015, section 3.1); kept: the parser learns and writes the tag of each word."""
    chain: int = Field(5, ge=1, le=50)
    """The maximum number of nested brackets around the same words in a parse."""


class _TreeFile(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    format: Literal[1] = 1
    tags: list[str] = Field(min_length=1, max_length=_MOST)
    labels: list[str] = Field(min_length=1, max_length=_MOST)
    chain: int = Field(ge=1, le=50)


class TreeSymbols(Symbols):
    """The symbols of the brackets and tags of a treebank, in one file ``target.json``.

    Ids: 0 to 2 as in a vocabulary of text, then the tags, then for each label the bracket that
    opens and the one that closes.
    """

    def __init__(self, tags: Sequence[str], labels: Sequence[str], chain: int) -> None:
        """``chain`` is the setting that ``TreeSettings`` describes."""
        self.tags = tuple(tags)
        self.labels = tuple(labels)
        self.chain = chain
        self.tag_ids = {tag: number for number, tag in enumerate(tags, len(SPECIAL))}
        self.label_numbers = {label: number for number, label in enumerate(labels)}
        """The place of each label among ``labels``, from 0."""
        first = len(SPECIAL) + len(tags)
        self.size = first + 2 * len(labels)
        self.words = range(len(SPECIAL), first)
        """The ids of words."""
        self.opening = range(first, self.size, 2)
        """The ids of opening brackets, label by label."""
        self.closing = range(first + 1, self.size, 2)
        """The ids of closing brackets, in the same order."""

    @classmethod
    def learn(cls, trees: Iterable[Tree], settings: TreeSettings) -> Self:
        """Return the symbols of some trees, the most frequent first. Errors: ``DataError``
        without any tree, or for a bracket chain that is longer than the settings allow."""
        tags: Counter[str] = Counter()
        labels: Counter[str] = Counter()
        for tree in trees:
            tags.update(leaf.label for leaf in tree.leaves())
            labels.update(bracket.label for bracket in tree.brackets())
        if not labels:
            raise DataError("there are no trees to learn brackets from")
        if max(len(tags), len(labels)) > _MOST:
            raise DataError(
                f"these trees have {len(labels):,} labels and {len(tags):,} tags; at most "
                f"{_MOST:,} of each are allowed"
            )
        letters = sum(map(len, tags)) + sum(map(len, labels))
        if letters > _ALL:
            raise DataError(
                f"the {len(labels):,} labels and {len(tags):,} tags of these trees have "
                f"{letters:,} characters together. At most {_ALL:,} are allowed. They may be text "
                "instead of labels"
            )
        kept = _order(tags) if settings.tags == "kept" else [NO_TAG]
        return cls(kept, _order(labels), settings.chain)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the symbols. Errors: ``RunError`` if the file is missing or damaged."""
        try:
            content = _TreeFile.model_validate(read_json(path))
        except ValidationError as error:
            raise RunError(f"{path} is damaged: it has no brackets and tags") from error
        for names in (content.tags, content.labels):
            bad = [
                name for name in names if not name or any(c in "()" or c.isspace() for c in name)
            ]
            if bad or len(set(names)) < len(names):
                raise RunError(f"{path} is damaged: it has an invalid bracket or tag, or one twice")
        return cls(content.tags, content.labels, content.chain)

    @property
    def _json(self) -> str:
        record = _TreeFile(tags=list(self.tags), labels=list(self.labels), chain=self.chain)
        return json.dumps(record.model_dump(), ensure_ascii=False)

    @property
    def with_tags(self) -> bool:
        """True if the tags of words are learned."""
        return self.tags != (NO_TAG,)

    def names_of(self, ids: Iterable[int]) -> list[str]:
        """Return each symbol as it is written."""
        names = [*SPECIAL, *self.tags]
        for label in self.labels:
            names += [f"({label}", f"){label}"]
        return [names[symbol] for symbol in ids]


def _order(counts: Counter[str]) -> list[str]:
    return [name for name, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]


class TreeForm(WrittenForm):
    """The form of the brackets and tags of a treebank."""

    symbols: TreeSymbols
    noun = "trees"
    has_links = True

    def __init__(self, symbols: TreeSymbols) -> None:
        self.symbols, self.size = symbols, symbols.size

    @property
    def no_tag(self) -> str:
        """The tag of every word if tags were not learned; "" if they were."""
        return "" if self.symbols.with_tags else self.symbols.tags[0]

    def tokens(self, raws: Sequence[str]) -> list[list[int]]:
        """Return the symbols of lines of trees. Errors: ``DataError`` for a line without a tree."""
        return [self._write(tree_of(raw)) for raw in raws]

    def _write(self, tree: Tree) -> list[int]:
        """Return the symbols of a tree. A label or a tag that was not learned is ``unknown``."""
        symbols = self.symbols
        if tree.is_leaf:
            tag = tree.label if symbols.with_tags else NO_TAG
            return [symbols.tag_ids.get(tag, symbols.unknown)]
        inside = [symbol for child in tree.children for symbol in self._write(child)]
        number = symbols.label_numbers.get(tree.label)
        if number is None:
            return [symbols.unknown, *inside, symbols.unknown]
        return [symbols.opening[number], *inside, symbols.closing[number]]

    def raw(self, outputs: Sequence[Iterable[int]]) -> list[str]:
        """Return the symbols as they are written; ``tree`` adds the words."""
        return [" ".join(self.names_of(tokens)) for tokens in outputs]

    def tree(self, tokens: Iterable[int], sentence: str) -> Tree:
        """Return the tree of an output over the words of its source. Errors: ``DataError`` for
        tokens that make no tree, which a search by ``rules`` never gives."""
        symbols, left = self.symbols, iter(words_of(sentence))
        opened: list[tuple[int, list[Tree]]] = []
        done: Tree | None = None
        wrong = DataError(f"these brackets are not a tree over the words of {sentence[:60]!r}")
        for symbol in tokens:
            if done is not None:
                raise wrong
            if symbol in symbols.words:
                word = next(left, None)
                if word is None or not opened:
                    raise wrong
                opened[-1][1].append(Tree(symbols.tags[symbol - len(SPECIAL)], word=word))
            elif symbol in symbols.opening and len(opened) < DEEPEST - 1:
                opened.append((symbol, []))
            elif opened and symbol == opened[-1][0] + 1 and opened[-1][1]:
                begin, children = opened.pop()
                tree = Tree(symbols.labels[symbols.opening.index(begin)], tuple(children))
                if opened:
                    opened[-1][1].append(tree)
                else:
                    done = tree
            else:
                raise wrong
        if done is None or next(left, None) is not None:
            raise wrong
        return done

    def names_of(self, tokens: Iterable[int]) -> list[str]:
        return self.symbols.names_of(tokens)

    def raw_for(self, source: str, tokens: Sequence[int]) -> str:
        """Return the tree over the words of the source, or only brackets if they make no tree."""
        try:
            return str(self.tree(tokens, source))
        except DataError:
            return super().raw_for(source, tokens)

    def names_beside(self, source: str, tokens: Sequence[int]) -> list[str]:
        """Return brackets, and the words themselves, with their tags if these were learned:
        dog/NN. Each is a word of its own."""
        left = iter(words_of(source))
        names = []
        for token, name in zip(tokens, self.symbols.names_of(tokens), strict=True):
            if token in self.symbols.words and (word := next(left, None)) is not None:
                name = f"{word}/{name}" if self.symbols.with_tags else word
            names.append(name if token == self.eos else SPACE + name)
        return names

    def longest_output(self, length: int, extra: int) -> int:
        """Return the longest tree if each token that is read were a word."""
        return usual_longest(length, self.symbols.chain)

    def rules(self, raw: str, most: int | None = None) -> Rules:
        words = len(words_of(raw))
        longest = words + 2 if most is None else most
        if words == 0 or words + 2 > longest:
            raise DataError(
                f"a sentence of {plural(words, 'word')} needs a tree of at least {words + 2:,} "
                f"symbols, but this model writes at most {longest:,}"
                if words
                else "an empty line has no tree"
            )
        return TreeRules(self.symbols, words, most)


def tree_of(line: str) -> Tree:
    """Return the one tree on a line. Errors: ``DataError``."""
    try:
        trees = [tree for _, tree in read_trees([line])]
    except TreeError as error:
        raise DataError(f"{error}: {line[:60]!r}") from error
    if len(trees) != 1:
        raise DataError(f"a line must have one tree, not {len(trees)}: {line[:60]!r}")
    return trees[0]


def words_of(sentence: str) -> list[str]:
    """Return the words of a sentence, between spaces, with parentheses as treebanks write them."""
    for bracket, name in _ESCAPED.items():
        sentence = sentence.replace(bracket, name)
    return sentence.split()


_NOTHING = -1
_MORE = 0


class _Frame(NamedTuple):
    """A bracket that is still open."""

    symbol: int
    depth: int
    """The number of open brackets, with this one."""
    run: int
    """The number of open brackets that begin with this one's first word, with this one: brackets
    that might come to hold the same words."""
    breaks: int
    """The number of words that break the runs below its own."""
    below: _Frame | None


class _State(NamedTuple):
    """The state that the symbols so far lead to."""

    left: int
    """The number of words that are still to come."""
    frame: _Frame | None
    """The innermost open bracket; None before the first and after the last."""
    inside: int
    """The content of the innermost bracket: ``_NOTHING``; for one bracket, the number of nested
    brackets that hold the same words, with itself; or ``_MORE`` for a word, or several of
    anything."""
    begun: bool


class TreeRules(Rules):
    """The rules of the tree of one sentence: matching brackets over exactly its words.

    A tree has one outermost bracket, which closes after the last word. No bracket is empty. At
    most ``chain`` nested brackets hold the same words, so that there is an end: a full chain can
    only be broken by a word, and a word may only follow if enough are left to break all open
    chains. The same holds for tokens: a bracket opens only if there is room to close all.

    So every hypothesis can continue, and every output is a tree over all words within
    ``longest`` tokens. Every tree with chains and tokens within these limits can be written.
    """

    def __init__(self, symbols: TreeSymbols, words: int, longest: int | None = None) -> None:
        """``words``: at least one. ``longest``: the most tokens of a tree, never fewer than
        those of the flat tree; default ``usual_longest``."""
        assert words > 0, "a tree has words"
        self._symbols = symbols
        self._begin = _State(words, None, _NOTHING, False)
        self._chain = symbols.chain
        usual = usual_longest(words, symbols.chain)
        self.longest = max(words + 2, usual if longest is None else min(longest, usual))
        self._known: dict[bytes, _State] = {}

    def allows(self, tokens: npt.NDArray[np.int32]) -> Booleans:
        flags = np.zeros((len(tokens), self._symbols.size), np.bool_)
        # Only states of the last step are kept: a hypothesis is one of those plus one token.
        states: dict[bytes, _State] = {}
        rows = np.ascontiguousarray(tokens, np.int32)
        for number, row in enumerate(rows):
            before = self._known.get(row[:-1].tobytes()) if len(row) else None
            if before is None:
                state = reduce(self._after, row.tolist(), self._begin)
            else:
                state = self._after(before, int(row[-1]))
            states[row.tobytes()] = state
            self._mark(flags[number], state, len(row))
        self._known = states
        return flags

    def _mark(self, may: Booleans, state: _State, length: int) -> None:
        """Set the flags (V,) of what may follow: words, brackets that open, the one that closes, or
        the end."""
        symbols, frame, left = self._symbols, state.frame, state.left
        if frame is None and state.begun:
            may[symbols.eos] = True
            return
        if frame is None:
            may[symbols.opening.start :: 2] = True
            return
        # Each open bracket and each word still takes a token, and an opening bracket two.
        room = self.longest - length - left - frame.depth
        if left > 0 and self._can_end(self._after(state, symbols.words.start)):
            may[symbols.words.start : symbols.words.stop] = True
        opens = room >= 2 and frame.depth < DEEPEST - 1
        if opens and self._can_end(self._after(state, symbols.opening.start)):
            may[symbols.opening.start :: 2] = True
        closes = state.inside not in (_NOTHING, self._chain)
        if closes and self._can_end(self._after(state, frame.symbol + 1)):
            may[frame.symbol + 1] = True

    def _can_end(self, state: _State) -> bool:
        """Return True if there are enough words for all brackets that still need one."""
        frame = state.frame
        if frame is None:
            return state.left == 0
        breaks = frame.breaks + self._to_break(frame.run + max(state.inside, 0))
        return state.left >= breaks + (state.inside == _NOTHING)

    def _to_break(self, run: int) -> int:
        """Return the number of words that divide ``run`` brackets into chains within the limit."""
        return -(-run // self._chain) - 1

    def _after(self, state: _State, symbol: int) -> _State:
        symbols, frame = self._symbols, state.frame
        if symbol in symbols.words:
            return _State(state.left - 1, frame, _MORE, True)
        if symbol in symbols.opening:
            if frame is None:
                opened = _Frame(symbol, 1, 1, 0, None)
            elif state.inside == _NOTHING:
                opened = _Frame(symbol, frame.depth + 1, frame.run + 1, frame.breaks, frame)
            else:
                # The open bracket has content already, so it does not form a run with this one.
                breaks = frame.breaks + self._to_break(frame.run)
                opened = _Frame(symbol, frame.depth + 1, 1, breaks, frame)
            return _State(state.left, opened, _NOTHING, True)
        assert frame is not None and symbol == frame.symbol + 1, "only what was allowed"
        chain = max(state.inside, 0) + 1
        if frame.below is None:
            return _State(state.left, None, chain, True)
        return _State(state.left, frame.below, chain if frame.run > 1 else _MORE, True)


def usual_longest(words: int, chain: int) -> int:
    """Return the tokens of the longest tree for this many words: twice as many brackets as
    words, plus a chain. In the Wall Street Journal trees have hardly more than one per word."""
    return words + 2 * (2 * words + chain)
