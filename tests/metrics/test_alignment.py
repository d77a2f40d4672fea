"""Word alignments: files of links, and the error rate by its definition."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.base.errors import DataError
from dragoman.metrics.alignment import (
    AlignmentQuality,
    Gold,
    Links,
    check_gold,
    parse_links,
    pharaoh,
    read_gold,
)


def links(*pairs: tuple[int, int]) -> Links:
    return frozenset(pairs)


def test_error_rate_precision_and_recall_by_hand() -> None:
    sure = links((0, 0), (1, 1), (2, 2))
    gold = Gold(sure, sure | links((2, 1)))
    assert AlignmentQuality.of([sure], [gold]).error_rate == 0
    found = AlignmentQuality.of([links((0, 0), (2, 1), (0, 2))], [gold])
    assert found.error_rate == pytest.approx(1 - (1 + 2) / (3 + 3))
    assert found.precision == pytest.approx(2 / 3) and found.recall == pytest.approx(1 / 3)
    assert AlignmentQuality.of([links((0, 1))], [gold]).error_rate == 1
    # Of several sentences the counts are summed first.
    both = AlignmentQuality.of([sure, links((0, 1))], [gold, gold])
    assert both.error_rate == pytest.approx(1 - 6 / 10)
    assert "AER 0.400" in str(both) and both.to_dict()["recall"] == pytest.approx(0.5)
    nothing = AlignmentQuality.of([links()], [Gold(links(), links())])
    assert (nothing.error_rate, nothing.precision, nothing.recall) == (0, 1, 1)


def test_pharaoh_lines_come_back() -> None:
    line = pharaoh(links((3, 0), (0, 2), (0, 1), (10, 4)))
    assert line == "0-1 0-2 3-0 10-4"
    assert parse_links(line, "here").sure == links((3, 0), (0, 2), (0, 1), (10, 4))
    assert pharaoh(links()) == ""


def test_gold_files(tmp_path: Path) -> None:
    path = tmp_path / "gold"
    path.write_text("0-0 1?2\n\n3p1 2-2\n", encoding="utf-8")
    first, empty, last = read_gold(path)
    assert first == Gold(links((0, 0)), links((0, 0), (1, 2)))
    assert empty == Gold(links(), links())
    assert (3, 1) in last.possible - last.sure
    path.write_text("1-1\n0-1\n", encoding="utf-8")
    with pytest.raises(DataError, match="line 2"):
        read_gold(path, first=1)
    with pytest.raises(DataError, match="nowhere"):
        read_gold(tmp_path / "nowhere")
    path.write_bytes(b"0-0 \xff\n")
    with pytest.raises(DataError, match="not text in UTF-8"):
        read_gold(path)


def test_naacl_files(tmp_path: Path) -> None:
    path = tmp_path / "gold"
    path.write_text("0001 1 1 S\n0001 2 3 P\n1 2 2\n0003 0 4 S\n3 5 1 P 0.7\n", encoding="utf-8")
    first, second, third = read_gold(path)
    assert first == Gold(links((0, 0), (1, 1)), links((0, 0), (1, 2), (1, 1)))
    assert second == Gold(links(), links()), "a pair without links"
    assert third == Gold(links(), links((4, 0))), "word 0 is none"
    path.write_text("0 1 1 S\n", encoding="utf-8")
    with pytest.raises(DataError, match="line 1: pairs are numbered from 1"):
        read_gold(path)


def test_links_counted_from_one_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "gold"
    path.write_text("1-2 2?3\n\n" * 19, encoding="utf-8")
    assert len(read_gold(path)) == 38, "too few to tell"
    path.write_text("1-2 2?3\n\n" * 20, encoding="utf-8")
    with pytest.raises(DataError, match=r"20 sentences.*--gold-base 1"):
        read_gold(path)
    from_zero, from_one = read_gold(path, first=0)[0], read_gold(path, first=1)[0]
    assert from_one.possible == {(s - 1, t - 1) for s, t in from_zero.possible}
    path.write_text("1-2\n" * 20 + "3-0\n", encoding="utf-8")
    assert read_gold(path)[-1].sure == {(3, 0)}


def test_links_outside_of_their_sentences_are_refused() -> None:
    inside = Gold(links(), links((1, 2)))
    check_gold([inside, inside], [(2, 3), (2, 3)])
    for link in ((2, 0), (0, 3), (5, 5)):
        outside = Gold(links(), links(link))
        with pytest.raises(
            DataError, match=rf"pair 2: .*word {link[0]} to target word {link[1]}.*2 and 3"
        ):
            check_gold([inside, outside], [(2, 3), (2, 3)])
    for count, told in ((1, "1 line of links for 2 pairs"), (3, "3 lines of links for 2 pairs")):
        with pytest.raises(DataError, match=told):
            check_gold([inside] * count, [(2, 3), (2, 3)])


def test_links_that_are_no_file_or_far_too_long_are_refused_in_a_line(tmp_path: Path) -> None:
    """A device never ends."""
    with pytest.raises(DataError, match=r"/dev/zero has more than the [\d,]+ bytes"):
        read_gold(Path("/dev/zero"))
    (tmp_path / "long").write_text("x" * 100_000)
    with pytest.raises(DataError, match="is not a link") as found:
        read_gold(tmp_path / "long")
    assert len(str(found.value)) < 300 + len(str(tmp_path))
