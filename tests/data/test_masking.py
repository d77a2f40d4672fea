"""BERT's masking: what is asked for, what is read in its place, and that a key decides it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from pydantic import ValidationError

from dragoman.base.errors import DataError
from dragoman.data.batches import MaskedBatch, Tokens, masked_batch
from dragoman.data.masking import Masking, MaskingSettings
from dragoman.data.word_links import word_starts, words_of
from dragoman.forms.subwords.text import MASK, Text, TextSettings
from dragoman.forms.subwords.vocabulary_learning import learn_vocabulary

WORDS = [
    "the", "small", "old", "dog", "cat", "sleeps", "sees", "unbelievable", "unreadable", "bear",
    "house", "drinks",
]  # fmt: skip
EOS = 2


def lines(count: int) -> list[str]:
    draw = np.random.default_rng(0)
    return [" ".join(draw.choice(WORDS, draw.integers(3, 15))) for _ in range(count)]


@pytest.fixture(scope="module")
def text() -> Text:
    """Subwords: short words are one token, long ones several."""
    return learn_vocabulary(lines(200), TextSettings(vocabulary=300), symbols=(MASK,))


@pytest.fixture(scope="module")
def texts(text: Text) -> list[Tokens]:
    return text.encode(lines(3000))


def within(found: int, share: float, of: int) -> bool:
    """Whether a count is one that a binomial draw gives: five standard deviations."""
    return abs(found - share * of) <= 5 * math.sqrt(of * share * (1 - share))


def test_the_vocabulary_has_a_symbol_that_no_text_holds(text: Text) -> None:
    assert text.mask is not None and text.pieces([text.mask]) == [MASK]
    assert text.mask in text.forbidden and not text.ordinary[text.mask]
    assert text.mask not in text.encode([f"the {MASK} sleeps"])[0]
    without = learn_vocabulary(lines(200), TextSettings(vocabulary=300, user_symbols=(MASK,)))
    assert without.mask is None  # what text may hold is no such symbol
    with pytest.raises(DataError, match="no <mask>"):
        Masking(without, MaskingSettings())


def test_eighty_ten_ten(text: Text, texts: list[Tokens]) -> None:
    masking = Masking(text, MaskingSettings())
    hidden = changed = kept = asked = 0
    for number, tokens in enumerate(texts):
        read, places = masking(tokens, number)
        now, was = read[places], tokens[places]
        others = np.setdiff1d(np.arange(len(tokens)), places)
        assert np.array_equal(read[others], tokens[others])
        assert len(places) == max(1, round(0.15 * len(tokens)))
        hidden += int((now == text.mask).sum())
        kept += int((now == was).sum())
        changed += int(((now != text.mask) & (now != was)).sum())
        asked += len(places)
    assert asked > 3000
    assert within(hidden, 0.8, asked)
    # A token that is drawn may be the one that stood there.
    assert within(changed, 0.1, asked) and within(kept, 0.1, asked)


def test_every_place_is_asked_for_as_often_as_any_other(text: Text) -> None:
    masking = Masking(text, MaskingSettings())
    tokens = np.flatnonzero(text.ordinary)[:20].astype(np.int32)
    counts = np.zeros(20, int)
    for number in range(4000):
        counts[masking(tokens, number).places] += 1
    assert counts.sum() == 3 * 4000 and all(within(int(n), 0.15, 4000) for n in counts)


def test_the_tokens_that_are_put_in_are_drawn_evenly_from_ordinary_ones(text: Text) -> None:
    masking = Masking(text, MaskingSettings(share=1.0, hidden=0.0, replaced=1.0))
    tokens = np.flatnonzero(text.ordinary)[:50].astype(np.int32)
    counts = np.zeros(text.size, int)
    for number in range(1000):
        counts += np.bincount(masking(tokens, number).read, minlength=text.size)
    drawn = text.ordinary & ~text.bytes
    assert not counts[~drawn].any()
    share = 1 / drawn.sum()
    assert all(within(int(n), float(share), 50_000) for n in counts[drawn])


def test_symbols_and_unknown_tokens_are_never_asked_for(text: Text, texts: list[Tokens]) -> None:
    masking = Masking(text, MaskingSettings(share=1.0))
    odd = [text.unknown, text.bos, text.eos, text.mask]
    for number, tokens in enumerate(texts[:200]):
        given = np.concatenate([tokens, np.array(odd, np.int32), tokens])
        read, places = masking(given, number)
        begin = len(tokens)
        assert np.array_equal(read[begin : begin + 4], odd)
        assert np.array_equal(places, np.flatnonzero(text.ordinary[given]))
    none = masking(np.array([text.unknown], np.int32), 0)
    assert len(none.places) == 0


def test_whole_words_are_asked_for_together(text: Text, texts: list[Tokens]) -> None:
    starts = word_starts(text)
    masking = Masking(text, MaskingSettings(whole_words=True))
    several = asked = wanted = 0
    for number, tokens in enumerate(texts):
        places = masking(tokens, number).places
        words = words_of(tokens, starts)
        of_them = np.flatnonzero(np.isin(words, words[places]))
        assert np.array_equal(of_them, places) and len(places)
        most = max(1, round(0.15 * len(tokens)))
        # No more than wanted, but for one word that is longer by itself.
        assert len(places) <= most or len(np.unique(words[places])) == 1
        several += len(places) > len(np.unique(words[places]))
        asked, wanted = asked + len(places), wanted + most
    assert several > 100 and 0.8 < asked / wanted < 1.3


def test_a_key_decides_it_and_nothing_else(text: Text, texts: list[Tokens]) -> None:
    masking = Masking(text, MaskingSettings())
    before = [masking(tokens, 7) for tokens in texts[:50]]
    other = Masking(text, MaskingSettings())
    for tokens, found in zip(reversed(texts[:50]), reversed(before), strict=True):
        again = other(tokens, 7)
        assert np.array_equal(again.read, found.read)
        assert np.array_equal(again.places, found.places)
    differ = [
        not np.array_equal(masking(tokens, 8).places, found.places)
        for tokens, found in zip(texts, before, strict=False)
    ]
    assert sum(differ) > 30


def test_shares_that_do_not_fit_together_are_refused() -> None:
    with pytest.raises(ValidationError, match="Together they must be at most 1"):
        MaskingSettings(hidden=0.8, replaced=0.3)


def rows(batch: MaskedBatch) -> list[tuple[int, list[int], list[tuple[int, int]]]]:
    """By example: what is read, and at which of its places which token is asked for."""
    found, begin = [], 0
    asked = list(zip(batch.places.tolist(), batch.wanted.tolist(), strict=True))
    for name, length in zip(batch.ids, batch.source.layout.lengths, strict=True):
        inside = [(p - begin, w) for p, w in asked if begin <= p < begin + length]
        found.append((name, batch.source.values[begin : begin + length].tolist(), inside))
        begin += length
    return found


def test_a_batch_asks_for_what_stood_there(text: Text, texts: list[Tokens]) -> None:
    masking = Masking(text, MaskingSettings())
    pieces = [(tokens, masking(tokens, n)) for n, tokens in enumerate(texts[:9])]
    batch = masked_batch(pieces, EOS, range(100, 109))
    assert len(batch) == 9 and "9 examples" in batch.summary()
    for (tokens, masked), (name, read, asked) in zip(pieces, rows(batch), strict=True):
        assert read == [*masked.read, EOS] and 100 <= name < 109
        assert asked == [(p, tokens[p]) for p in masked.places]
    first, second = batch.split()
    assert rows(first) + rows(second) == rows(batch)
    names = [part.source.layout.first_row_keys for part in (first, second, batch)]
    assert all(one is not None for one in names)
    assert [*names[0].tolist(), *names[1].tolist()] == names[2].tolist()  # type: ignore[union-attr]
    with pytest.raises(ValueError, match="one example"):
        masked_batch(pieces[:1], EOS).split()
