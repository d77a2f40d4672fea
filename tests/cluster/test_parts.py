"""A folder of parts: what stands in it, once each, and what it says of other inputs and runs."""

from __future__ import annotations

import errno
import gzip
import json
import os
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asked_parts import asked, joined, run, wanted
from hypothesis import given
from hypothesis import strategies as st
from inline_workers import InlineWorkers
from loud import REFUSED

from dragoman.base.errors import DataError, DragomanError, RunError
from dragoman.cluster import driver
from dragoman.cluster.files import plain_blocks
from dragoman.cluster.kinds import raw_lines, stretches
from dragoman.cluster.lines import Job
from dragoman.cluster.plan import make_plan
from dragoman.cluster.work import Way
from dragoman.data.files.lines import LONGEST
from dragoman.stores import FolderStore, InputChanged, StoreError

pytestmark = pytest.mark.usefixtures("inline")

LINES = [f"line {number}" for number in range(10)]


def installed(name: str) -> Any:
    """A package of an extra; without it, the test is skipped."""
    return pytest.importorskip(name, reason=f"{name} is not installed")


def text_of(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.txt"
    path.write_bytes(text_of(LINES))
    return path


def test_parts_hold_the_output_of_their_lines(source: Path, tmp_path: Path) -> None:
    told = run(wanted(asked([source]), tmp_path / "out"))
    assert joined(tmp_path / "out") == text_of(LINES).upper()
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["_dragoman", "part-00000.txt", "part-00001.txt", "part-00002.txt"]
    assert "10 lines in 3 parts" in told and "all 3 parts are complete" in told


@pytest.mark.parametrize("ending", ["txt", "gz", "zst"])
def test_an_input_is_read_by_what_it_holds_and_written_alike(ending: str, tmp_path: Path) -> None:
    text = text_of(LINES)
    pack, unpack = {
        "txt": lambda: (bytes, bytes),
        "gz": lambda: (gzip.compress, gzip.decompress),
        "zst": lambda: (installed("zstandard").compress, installed("zstandard").decompress),
    }[ending]()
    source = tmp_path / f"in.{ending}"
    source.write_bytes(pack(text[:30]) + pack(text[30:]))  # two that were joined, as by cat
    run(wanted(asked([source]), tmp_path / "out"))
    parts = sorted((tmp_path / "out").glob("part-*"))
    assert b"".join(unpack(part.read_bytes()) for part in parts) == text.upper()
    assert all(part.name.endswith(ending) for part in parts)


def test_a_compressed_input_that_ends_too_early_is_told(tmp_path: Path) -> None:
    source = tmp_path / "in.gz"
    source.write_bytes(gzip.compress(text_of(LINES))[:-9])
    with pytest.raises(DataError, match="is cut off"):
        run(wanted(asked([source]), tmp_path / "out"))
    assert not (tmp_path / "out").joinpath("_dragoman", "plan.json").exists()


def test_a_second_command_does_nothing(
    source: Path, tmp_path: Path, inline: Callable[..., InlineWorkers]
) -> None:
    run(wanted(asked([source]), tmp_path / "out"))
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")}
    workers = inline(1)
    assert "nothing to do" in run(wanted(asked([source]), tmp_path / "out"))
    assert workers.given == []
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")} == before


def test_a_command_goes_on_from_the_parts_that_stand(
    source: Path, tmp_path: Path, inline: Callable[..., InlineWorkers]
) -> None:
    run(wanted(asked([source]), tmp_path / "out"))
    (tmp_path / "out" / "part-00001.txt").unlink()
    workers = inline(1)
    assert "2 of 3 parts are complete" in run(wanted(asked([source]), tmp_path / "out"))
    assert workers.given == [1]
    assert joined(tmp_path / "out") == text_of(LINES).upper()


def test_shares_do_all_parts_together(source: Path, tmp_path: Path) -> None:
    what = asked([source], lines=2)
    assert "5 parts" in run(wanted(what, tmp_path / "out", part="0/2"))
    told = run(wanted(what, tmp_path / "out", part="2/2"))
    assert "all parts of share 2/2 are complete; 3 parts of other shares are missing" in told
    assert len(list((tmp_path / "out").glob("part-*"))) == 2
    assert "all 5 parts are complete" in run(wanted(what, tmp_path / "out", part="1/2"))
    assert joined(tmp_path / "out") == text_of(LINES).upper()


@pytest.mark.parametrize("part", [None, "1/1"])
def test_a_part_that_is_removed_under_way_is_told(
    part: str | None, source: Path, tmp_path: Path, inline: Callable[..., InlineWorkers]
) -> None:
    first = tmp_path / "out" / "part-00000.txt"
    inline(1, before_part=lambda number: first.unlink() if number == 2 else None)
    with pytest.raises(
        DragomanError, match=r"^1 part is missing in .*: part-00000\.txt\. "
    ) as told:
        run(wanted(asked([source]), tmp_path / "out", part=part))
    assert "None" not in str(told.value)
    inline(1)
    assert "all 3 parts are complete" in run(wanted(asked([source]), tmp_path / "out", part=part))
    assert joined(tmp_path / "out") == text_of(LINES).upper()


@pytest.mark.parametrize("part", ["3/2", "1", "1/0", "-1/4", "a/b"])
def test_a_share_that_is_none_is_told(part: str) -> None:
    with pytest.raises(DragomanError, match="--part"):
        driver.share_of(part)


def test_json_lines_keep_their_other_fields_byte_for_byte(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text(
        '{"id": 1.50, "text": "a b", "tags":["x" , "y"]}\n\n{"text":"ü\\n"}\n', encoding="utf-8"
    )
    run(wanted(asked([source]), tmp_path / "out"))
    assert joined(tmp_path / "out").decode() == (
        '{"id": 1.50, "text": "a b", "tags":["x" , "y"], "out": "A B"}\n\n'
        '{"text":"ü\\n", "out": "Ü\\n"}\n'
    )


def test_a_table_gets_one_more_column(tmp_path: Path) -> None:
    pyarrow, parquet = installed("pyarrow"), installed("pyarrow.parquet")
    source = tmp_path / "in.parquet"
    texts = [*LINES, None]
    table = pyarrow.table({"id": list(range(11)), "text": texts})
    parquet.write_table(table, source, row_group_size=3)
    told = run(wanted(asked([source]), tmp_path / "out"))
    assert "11 lines in 3 parts" in told and "1 line was not read" in told
    parts = sorted((tmp_path / "out").glob("*.parquet"))
    found = pyarrow.concat_tables([parquet.read_table(part) for part in parts])
    assert found.drop_columns("out") == table
    assert found.column("out").to_pylist() == [*(line.upper() for line in LINES), None]
    with pytest.raises(
        DataError, match=r"has no column 'body'; its columns are 'id', 'text'.*--field"
    ):
        run(wanted(asked([source], read=("body",)), tmp_path / "other"))
    with pytest.raises(DataError, match="is int64, not text"):
        run(wanted(asked([source], read=("id",)), tmp_path / "other"))


def test_bad_lines_are_named_and_stay_in_their_place(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    lines = ['{"text": "a"}', "{no json", '{"other": 1}', f'{{"text": "{REFUSED}"}}', '{"text": 3}']
    source.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    told = run(wanted(asked([source], lines=2), tmp_path / "out"))
    assert "4 lines were not read correctly" in told
    found = [json.loads(line) for line in joined(tmp_path / "out").splitlines()]
    assert found[0] == {"text": "a", "out": "A"}
    assert [one["line"] for one in found[1:]] == lines[1:]
    bad = (tmp_path / "out" / "_dragoman" / "bad-lines.jsonl").read_text().splitlines()
    named = [json.loads(line) for line in bad]
    assert [one["line"] for one in named] == [2, 3, 4, 5]
    assert "is not JSON" in named[0]["reason"] and named[2]["reason"] == "it is refused"


def test_a_line_that_is_refused_costs_no_other(tmp_path: Path) -> None:
    source = tmp_path / "in.txt"
    lines = [f"line {number}" if number != 3 else REFUSED for number in range(7)]
    source.write_bytes(text_of(lines))
    assert "1 line was not read" in run(wanted(asked([source], lines=7), tmp_path / "out"))
    assert joined(tmp_path / "out") == text_of(lines).upper().replace(REFUSED.upper().encode(), b"")


def test_a_field_that_is_there_already_is_not_written_over(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"text": "a", "out": 1}\n')
    with pytest.raises(DataError, match=r"already has a field 'out'.*--into"):
        run(wanted(asked([source]), tmp_path / "out"))


def test_a_first_line_without_the_field_is_told_before_anything_is_done(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"body": "a"}\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"'text' is missing; it has 'body'.*--field"):
        run(wanted(asked([source]), tmp_path / "out"))


def test_a_document_is_refused_unless_it_is_taken_as_it_is(tmp_path: Path) -> None:
    source = tmp_path / "in.html"
    source.write_text("<!doctype html>\n<p>Hello\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"HTML.*--plain"):
        run(wanted(asked([source], language="en"), tmp_path / "out"))
    run(wanted(asked([source], language=None), tmp_path / "out"))
    assert joined(tmp_path / "out") == b"<!DOCTYPE HTML>\n<P>HELLO\n"


def test_sides_that_do_not_agree_line_by_line_are_told(source: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_bytes(text_of(LINES[:-1]))
    with pytest.raises(DataError, match=r"10 lines but .*has 9: line n of one"):
        run(wanted(asked([source], [other], read=("source", "target")), tmp_path / "out"))
    other.write_bytes(text_of(LINES))
    run(wanted(asked([source], [other], read=("source", "target")), tmp_path / "out"))
    assert joined(tmp_path / "out") == text_of([f"{x} | {x}" for x in LINES]).upper()


def test_a_line_of_100_megabytes_is_named_and_the_others_are_done(tmp_path: Path) -> None:
    source = tmp_path / "in.txt"
    with source.open("wb") as file:
        file.write(b"before\n")
        for _ in range(100):
            file.write(b"x" * 1_000_000)
        file.write(b"\nafter\n")
    told = run(wanted(asked([source], lines=2), tmp_path / "out"))
    assert joined(tmp_path / "out") == b"BEFORE\n\nAFTER\n"
    assert "1 line was not read" in told
    bad = json.loads((tmp_path / "out" / "_dragoman" / "bad-lines.jsonl").read_text())
    assert bad["line"] == 2
    assert bad["reason"] == f"has 100,000,000 bytes, but a line may have at most {LONGEST:,}"


def test_a_line_that_is_far_too_long_takes_no_memory() -> None:
    tracemalloc.start()
    found = list(raw_lines(bytes(1 << 20) for _ in range(100)))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [(line.data, line.size) for line in found] == [(None, 100 << 20)]
    assert most < 3 * LONGEST
    packed = b"a\n" + bytes(LONGEST + 1) + b"\nb\n"  # all of it in one block
    assert [line.data for line in raw_lines([packed])] == [b"a", None, b"b"]


def test_inputs_without_lines_are_done_at_once(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()
    assert "all 0 parts are complete" in run(
        wanted(asked([tmp_path / "empty.txt"]), tmp_path / "out")
    )
    assert "nothing to do" in run(wanted(asked([tmp_path / "empty.txt"]), tmp_path / "out"))


def test_an_input_that_changed_before_a_command_goes_on_is_told(
    source: Path, tmp_path: Path
) -> None:
    run(wanted(asked([source]), tmp_path / "out", part="1/3"))
    source.write_bytes(text_of(LINES).replace(b"9", b"8"))
    os.utime(source, ns=(1, 1))  # a clock may stand still
    with pytest.raises(InputChanged, match="has changed since"):
        run(wanted(asked([source]), tmp_path / "out"))


def test_an_input_that_changes_under_way_is_told(
    source: Path, tmp_path: Path, inline: Callable[..., InlineWorkers]
) -> None:
    def change(part: int) -> None:
        if part == 1:
            source.write_bytes(text_of(["other"] * 10))
            os.utime(source, ns=(1, 1))

    inline(1, before_part=change)
    with pytest.raises(DragomanError, match="has changed since the parts were planned"):
        run(wanted(asked([source]), tmp_path / "out"))
    assert joined(tmp_path / "out") == text_of(LINES[:4]).upper()  # nothing of the new content


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"run": "b2"}, "whose results would be different"),
        ({"verb": "classify"}, "has the output of translate, not of classify"),
        ({"lines": 5}, "parts of 4 lines"),
        ({"beam": 7}, "beam None, not 7"),
        ({"read": ("body",)}, "the fields text and out"),
    ],
)
def test_another_run_or_option_is_refused(
    change: dict[str, Any], told: str, source: Path, tmp_path: Path
) -> None:
    run(wanted(asked([source]), tmp_path / "out"))
    with pytest.raises(DragomanError, match=told):
        run(wanted(asked([source], **change), tmp_path / "out"))
    assert joined(tmp_path / "out") == text_of(LINES).upper()


def test_inputs_that_came_or_went_are_told(source: Path, tmp_path: Path) -> None:
    run(wanted(asked([source]), tmp_path / "out"))
    more = tmp_path / "more.txt"
    more.write_text("x\n")
    with pytest.raises(InputChanged, match=r"more\.txt is new"):
        run(wanted(asked([source, more]), tmp_path / "out"))
    with pytest.raises(InputChanged, match=r"is (?:missing|new), compared with the inputs of"):
        run(wanted(asked([more]), tmp_path / "out"))


def test_another_version_is_refused_unless_mixed(source: Path, tmp_path: Path) -> None:
    what = asked([source], dragoman="1.0")
    run(wanted(what, tmp_path / "out", part="1/3"))
    newer = asked([source], dragoman="1.1")
    with pytest.raises(RunError, match="--mixed"):
        run(wanted(newer, tmp_path / "out"))
    run(wanted(newer, tmp_path / "out", mixed=True))
    assert joined(tmp_path / "out") == text_of(LINES).upper()


def test_a_folder_that_holds_something_else_is_refused(source: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.doc").touch()
    with pytest.raises(StoreError, match=r"contains thesis\.doc and is not a job folder"):
        run(wanted(asked([source]), tmp_path / "out"))


def test_a_part_that_was_changed_is_told(source: Path, tmp_path: Path) -> None:
    run(wanted(asked([source]), tmp_path / "out"))
    with (tmp_path / "out" / "part-00001.txt").open("ab") as part:
        part.write(b"more")
    with pytest.raises(StoreError, match=r"part-00001\.txt has .* it was changed"):
        run(wanted(asked([source]), tmp_path / "out"))


def test_a_part_that_was_changed_before_all_stand_is_told(source: Path, tmp_path: Path) -> None:
    run(wanted(asked([source]), tmp_path / "out", part="1/3"))
    with (tmp_path / "out" / "part-00000.txt").open("ab") as part:
        part.write(b"more")
    with pytest.raises(StoreError, match=r"part-00000\.txt has .* it was changed"):
        run(wanted(asked([source]), tmp_path / "out"))


def test_a_part_that_nobody_wrote_here_is_told(source: Path, tmp_path: Path) -> None:
    run(wanted(asked([source]), tmp_path / "out", part="1/3"))
    (tmp_path / "out" / "part-00001.txt").write_text("foreign\n")
    with pytest.raises(StoreError, match="not a part that was written here"):
        run(wanted(asked([source]), tmp_path / "out"))


@pytest.mark.parametrize("content", [b"", b"{", b'{"version": 2}', b'{"version": 99}', b"[" * 9999])
def test_a_damaged_plan_is_told(content: bytes, source: Path, tmp_path: Path) -> None:
    run(wanted(asked([source]), tmp_path / "out"))
    (tmp_path / "out" / "_dragoman" / "plan.json").write_bytes(content)
    with pytest.raises(StoreError, match=r"plan\.json"):
        run(wanted(asked([source]), tmp_path / "out"))


def test_a_full_disk_is_told_and_leaves_nothing_half_written(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    inline: Callable[..., InlineWorkers],
) -> None:  # fmt: skip
    real = os.fsync

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    inline(1, before_part=lambda part: monkeypatch.setattr(os, "fsync", full if part else real))
    with pytest.raises(DragomanError, match=r"disk is full.*Free some space"):
        run(wanted(asked([source]), tmp_path / "out"))
    monkeypatch.setattr(os, "fsync", real)
    assert [path.name for path in (tmp_path / "out").iterdir() if path.is_file()] == [
        "part-00000.txt"
    ]
    assert not list((tmp_path / "out").rglob(".tmp*"))
    inline(1)
    run(wanted(asked([source]), tmp_path / "out"))
    assert joined(tmp_path / "out") == text_of(LINES).upper()


def test_who_comes_second_with_a_part_leaves_it_as_it_is(
    source: Path, tmp_path: Path, inline: Callable[..., InlineWorkers]
) -> None:
    # Another driver does all parts while this one is at its second.
    def other(part: int) -> None:
        if part == 1:
            inline(1)
            run(wanted(asked([source]), tmp_path / "out"))

    workers = inline(1, before_part=other)
    told = run(wanted(asked([source]), tmp_path / "out"))
    assert "2 parts completed by other machines" in told
    assert workers.given == [0, 1]  # the third is not begun
    assert joined(tmp_path / "out") == text_of(LINES).upper()


def test_a_store_without_conditional_writes_is_refused(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overwrite(self: FolderStore, name: str, data: bytes) -> bool:
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_bytes(data)
        return True

    monkeypatch.setattr(FolderStore, "create", overwrite)
    with pytest.raises(StoreError, match="does not support conditional writes"):
        run(wanted(asked([source]), tmp_path / "out"))


def test_what_killed_processes_left_is_swept_when_it_is_old(source: Path, tmp_path: Path) -> None:
    run(wanted(asked([source]), tmp_path / "out", part="1/3"))
    old, fresh = tmp_path / "out" / ".tmp-old", tmp_path / "out" / ".tmp-fresh"
    from dragoman.base.atomic import TEMPORARY

    old = old.with_name(f"{TEMPORARY}old")
    fresh = fresh.with_name(f"{TEMPORARY}fresh")
    old.touch()
    fresh.touch()
    os.utime(old, (1, 1))
    run(wanted(asked([source]), tmp_path / "out"))
    assert not old.exists() and fresh.exists()


def test_folders_and_patterns_name_files_in_the_order_of_their_names(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    (folder / "deep").mkdir(parents=True)
    for name in ("b.txt", "a.txt", "deep/c.txt", ".hidden", "_notes"):
        (folder / name).write_text(f"{name}\n")
    run(wanted(asked([folder]), tmp_path / "all"))
    assert joined(tmp_path / "all") == b"A.TXT\nB.TXT\nDEEP/C.TXT\n"
    run(wanted(asked([folder / "*.txt"]), tmp_path / "some"))
    assert joined(tmp_path / "some") == b"A.TXT\nB.TXT\n"
    run(wanted(asked([folder / "a*"]), tmp_path / "one"))
    assert joined(tmp_path / "one") == b"A.TXT\n"
    with pytest.raises(DataError, match="does not name a file"):
        asked([folder / "*.gz"])
    with pytest.raises(DataError, match="there is no file"):
        asked([folder / "none.txt"])


def test_parts_do_not_depend_on_when_they_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "in.gz"
    source.write_bytes(gzip.compress(text_of(LINES)))
    run(wanted(asked([source]), tmp_path / "out"))
    monkeypatch.setattr(time, "time", lambda: 1e9)
    run(wanted(asked([source]), tmp_path / "again"))
    assert {p.name: p.read_bytes() for p in (tmp_path / "out").glob("part-*")} == {
        p.name: p.read_bytes() for p in (tmp_path / "again").glob("part-*")
    }


BYTES = st.binary(max_size=60).map(lambda data: data.replace(b"a", b"\n"))


@given(data=BYTES, lines=st.integers(1, 5), size=st.integers(1, 20))
def test_stretches_hold_every_line_once(data: bytes, lines: int, size: int) -> None:
    blocks = [data[at : at + size] for at in range(0, len(data), size)]
    whole = data.split(b"\n")
    if whole[-1] == b"":
        whole.pop()
    found = list(stretches(blocks, lines))
    read: list[bytes | None] = []
    for first, count, start, length in found:
        some = [line.data for line in raw_lines([data[start : start + length]])]
        assert len(some) == count and first == len(read)
        read += some
    assert read == whole
    assert [line.data for line in raw_lines(blocks)] == whole


@given(data=st.binary(max_size=400), size=st.integers(1, 50))
def test_what_was_packed_comes_back_whatever_the_blocks_are(data: bytes, size: int) -> None:
    zstandard = installed("zstandard")
    for name, packed in (("gz", gzip.compress(data)), ("zst", zstandard.compress(data))):
        twice = packed + packed
        blocks = [twice[at : at + size] for at in range(0, len(twice), size)]
        assert b"".join(plain_blocks(blocks, name, "x")) == data + data  # type: ignore[arg-type]


def test_a_part_whose_input_lost_lines_is_told(source: Path, tmp_path: Path) -> None:
    from loud import loud

    plan = make_plan(asked([source]))
    source.write_bytes(text_of(LINES[:2]))
    with pytest.raises(InputChanged):
        Job(str(tmp_path / "out"), plan, loud).do(0, loud(""), Way())
