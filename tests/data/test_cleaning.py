"""Cleaning: what each filter drops, that nothing goes uncounted."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.base.errors import DataError
from dragoman.data.cleaning import Cleaner, CleaningSettings, _Seen
from dragoman.forms.form import Pair

BAD = {
    "invalid_utf8": ("a\udcffb", "c"),
    "control_characters": ("a\x00b", "c"),
    "empty": ("a", " \u3000\t"),
    "length": ("a" * 51, "b" * 40),
    "length_ratio": ("a", "b" * 10),
    "identical": (" same", "same"),
    "duplicates": ("good", "gut"),
}
SETTINGS = CleaningSettings(max_length=50)


@pytest.mark.parametrize("name", BAD)
def test_each_filter_drops_its_own(name: str) -> None:
    cleaner = Cleaner(SETTINGS)
    pairs = [Pair(1, "good", "gut"), Pair(2, *BAD[name]), Pair(3, "tab\tis a space", "Tab")]
    assert [pair.line for pair in cleaner.pairs(pairs, "x.en")] == [1, 3]
    counts = {key: dropped.count for key, dropped in cleaner.report.filters.items()}
    assert counts == {key: int(key == name) for key in BAD}
    example = cleaner.report.filters[name].first[0]
    assert (example.corpus, example.line) == ("x.en", 2)
    json.dumps(cleaner.report.to_dict()).encode()
    table = cleaner.report.table()
    assert "x.en, line 2" in table and "\x00" not in table and table.encode()


def test_filters_can_be_switched_off() -> None:
    off = {name: 0 if name.startswith("max_") else False for name in CleaningSettings.model_fields}
    cleaner = Cleaner(CleaningSettings.model_validate(off))
    pairs = [Pair(line, *bad) for line, bad in enumerate([*BAD.values()] * 2, start=1)]
    assert list(cleaner.pairs(pairs)) == pairs
    assert cleaner.report.filters == {}
    assert cleaner.report.summary() == "nothing dropped"
    assert cleaner.report.table()


@given(st.lists(st.tuples(st.text(max_size=5), st.text(max_size=5)), max_size=30))
def test_every_pair_is_kept_or_counted(texts: list[tuple[str, str]]) -> None:
    cleaner = Cleaner(CleaningSettings(max_length=4, max_length_ratio=2))
    good = Pair(0, "good", "gut")
    kept = list(cleaner.pairs([good, *(Pair(n, *text) for n, text in enumerate(texts, start=1))]))
    report = cleaner.report
    assert report.read == len(texts) + 1 and report.kept == len(kept)
    assert report.read - report.kept == sum(d.count for d in report.filters.values())
    assert len({pair[1:] for pair in kept}) == len(kept)


def test_duplicates_are_found_across_corpora() -> None:
    cleaner = Cleaner(CleaningSettings())
    first, again, other = Pair(1, "a", "b"), Pair(9, "a", "b"), Pair(2, "ab", "")
    assert list(cleaner.pairs([first])) == [first]
    assert list(cleaner.pairs([again, Pair(3, "a", "c")])) == [Pair(3, "a", "c")]
    kept = Cleaner(CleaningSettings(empty=False, max_length_ratio=0))
    assert list(kept.pairs([first, other])) == [first, other]


def test_a_corpus_that_cleaning_empties() -> None:
    with pytest.raises(DataError, match=r"x\.en: cleaning left no pair .*empty 2") as caught:
        list(Cleaner(CleaningSettings()).pairs([Pair(1, "", ""), Pair(2, "", "")], "x.en"))
    assert "line 1" in str(caught.value)


def test_remembering_is_bounded_and_complete_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.data.cleaning._RECENT", 10)
    monkeypatch.setattr("dragoman.data.cleaning._REMEMBERED", 200)
    seen = _Seen()
    values = [(n * 0x9E3779B97F4A7C15) % 2**64 for n in range(1, 1000)]
    for place, value in enumerate(values):
        assert seen.add(value)
        for back in (0, 1, 5, 50, 99):
            assert not seen.add(values[max(0, place - back)])
        assert len(seen._recent) + len(seen._younger) + len(seen._older) <= 220
    assert seen.add(values[0])
