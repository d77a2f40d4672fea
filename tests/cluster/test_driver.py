"""The driver: what it does where workers die, differ from each other, or cannot begin."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from asked_parts import Wanted, asked, joined, run, wanted
from inline_workers import InlineWorkers

from dragoman.base.errors import DragomanError
from dragoman.cluster.driver import ProgressConsole, ProgressLine, duration
from dragoman.cluster.lines import LineMapper
from dragoman.cluster.work import Way, agree_on_way

TEXT = "".join(f"line {number}\n" for number in range(12))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.txt"
    path.write_text(TEXT)
    return path


def test_a_part_that_kills_its_worker_is_given_up_after_three_tries_and_the_rest_is_done(
    source: Path, tmp_path: Path, inline: Callable[..., InlineWorkers]
) -> None:
    workers = inline(2, lambda part: part == 1)
    with pytest.raises(DragomanError) as error:
        run(wanted(asked([source]), tmp_path / "out"))
    told = str(error.value)
    assert "1 part was given up" in told and "all others are complete" in told
    assert "part-00001.txt" in told and "lines 5 to 8" in told
    assert sorted(workers.given) == [0, 1, 1, 1, 2]
    assert joined(tmp_path / "out") == (TEXT[:28] + TEXT[56:]).upper().encode()
    inline(2)  # what killed it is mended
    run(wanted(asked([source]), tmp_path / "out"))
    assert joined(tmp_path / "out") == TEXT.upper().encode()


def test_each_part_has_its_own_tries_and_waits_behind_the_others(
    source: Path, tmp_path: Path, inline: Callable[..., InlineWorkers]
) -> None:
    deaths = {0: 2, 1: 3, 2: 2}  # with each part, before it is done

    def dies(part: int) -> bool:
        deaths[part] -= 1
        return deaths[part] >= 0

    workers = inline(1, dies)
    with pytest.raises(DragomanError, match="1 part was given up") as error:
        run(wanted(asked([source]), tmp_path / "out"))
    assert "part-00001.txt" in str(error.value)
    assert workers.given == [0, 1, 2] * 3


def test_a_part_is_done_again_by_another_worker(
    source: Path, tmp_path: Path, inline: Callable[..., InlineWorkers]
) -> None:
    deaths = iter([True, True, False])
    inline(1, lambda part: part == 1 and next(deaths))
    told = run(wanted(asked([source]), tmp_path / "out"))
    assert joined(tmp_path / "out") == TEXT.upper().encode()
    assert told.count("a worker was lost") == 2 and "2 workers were replaced" in told


def test_all_workers_compute_as_the_first(
    source: Path, tmp_path: Path, inline: Callable[..., InlineWorkers]
) -> None:
    avx512, amx = Way("int8", "avx512", "1", "2"), Way("int8", "amx", "1", "2")
    inline(1, ways=[avx512])
    run(wanted(asked([source]), tmp_path / "out", part="1/3"))
    inline(2, ways=[amx])
    with pytest.raises(DragomanError, match=r"avx512.*but this machine uses.*amx.*--mixed"):
        run(wanted(asked([source]), tmp_path / "out"))
    assert len(list((tmp_path / "out").glob("part-*"))) == 1
    inline(2, ways=[amx])
    run(wanted(asked([source]), tmp_path / "out", mixed=True))
    assert joined(tmp_path / "out") == TEXT.upper().encode()


def test_a_worker_that_chose_otherwise_by_itself_makes_room_for_one_that_knows(
    source: Path, tmp_path: Path, inline: Callable[..., InlineWorkers]
) -> None:
    int8, bf16 = Way("int8", "avx512", "1", "2"), Way("bf16", "", "1", "2")
    # Another command agrees on int8 while the first worker of this one opens its model.
    inline(1, ways=[bf16, int8], before_open=lambda work: agree_on_way(work.store, int8))
    run(wanted(asked([source]), tmp_path / "out"))
    assert joined(tmp_path / "out") == TEXT.upper().encode()


def test_a_model_that_cannot_be_opened_leaves_no_plan(
    source: Path, tmp_path: Path, inline: Callable[..., InlineWorkers]
) -> None:
    def broken(precision: str) -> LineMapper:
        raise DragomanError("no such setting")

    inline(1)
    what = asked([source], beam=0)
    with pytest.raises(DragomanError, match="no such setting"):
        run(Wanted(what, str(tmp_path / "out"), broken))
    run(wanted(asked([source], beam=1), tmp_path / "out"))  # it is not in the way
    assert joined(tmp_path / "out") == TEXT.upper().encode()


def test_progress_tells_lines_speed_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    told: list[str] = []
    progress = ProgressLine(50_000, 10_000, ProgressConsole(told.append, True))
    progress.show(1)
    progress.begin()
    now[0] = 100.0
    progress.fresh += 2_000
    progress.show(2)
    assert told == ["\r12,000 of 50,000 lines (24 %), 20 lines/s, 32 min left, 2 workers"]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (89, "89 s"), (91, "2 min"), (3600, "1 h"), (12_000, "3 h 20 min"),
     (7.5 * 86_400, "7 days 12 h"), (7 * 86_400, "7 days")],
)  # fmt: skip
def test_times_are_told_in_the_unit_that_fits(seconds: float, words: str) -> None:
    assert duration(seconds) == words
