"""The Korean of the page: wordings that a reader has mended stay away, and what the server says of
a run in English is said in Korean."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from every_view import with_charts
from opening import Open
from playwright.sync_api import expect

from dragoman.base.measure import BLEU
from dragoman.tasks.shared.progress_made import below

ROOT = Path(__file__).parents[2]
MENDED = (
    "반올림 오차까지", "CPU는 그 일부", "학습 시간은 demo", "거리(street)", "최종 번역",
    "숫자의 행", "획", "숨길 수", "숨기기", "문장을 봄", "부분을 봄", "자신을 봄", "사이를 옮",
    "이 칸을 가장 많이 본", "이유가 되지", "트리를 씁니다", "바로 이 단어들", "무엇 가운데",
    "정확히 이 단어들", "어텐션의 몫", "여기서 직접 학습한", "보내지지", "집합에 대한 합",
    "덜 확신", ": 전 ", "모델 = 사람", "테스트 데이터: 데모의", "바로 이 정렬", "[0-9}] %",
)  # fmt: skip
"""Where a reading of the Korean found something better."""


@pytest.mark.parametrize("wording", MENDED)
def test_a_wording_that_was_mended_stays_away(wording: str) -> None:
    sources = [
        *(ROOT / "web" / "src").rglob("*.ts"),
        *(ROOT / "web" / "src").rglob("*.svelte"),
        *(ROOT / "src" / "dragoman" / "insight").rglob("*.py"),
        *(ROOT / "src" / "dragoman" / "insight").rglob("*.toml"),
    ]
    assert len(sources) > 80
    korean = [
        (path.name, line)
        for path in sources
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search("[가-힣]", line)
    ]
    pattern = wording if "[" in wording else re.escape(wording)
    assert not [one for one in korean if re.search(pattern, one[1])]


NOTICE = (
    "The demo corpus is synthetic: a small grammar generated it. High scores only show that the "
    "program works; they say nothing about real text."
)
SAID = {
    f"This run has hardly learned to translate: {below(BLEU, 10.0, 3.25, None)}. About 7 more "
    "minutes of training would help: train again with --minutes 9, or raise training.updates in "
    "its recipe.toml and resume it.": (
        "번역 과제를 거의 배우지 못했습니다", "BLEU 점수는 3.25", "--minutes 9",
    ),
    "This run has hardly learned to fill: its loss on dev is 6.12 nats a token, and token "
    "frequencies alone give 6.20. It has seen its texts 25 times and knows them by heart (loss "
    "1.02 on them, 6.12 on dev): more of them would help, more minutes would not.": (
        "빈칸 채우기 과제를", "6.12 nat", "25번 반복해 학습하여",
    ),
    "This run has hardly learned to classify: it gives every text the label 'es'.": (
        "분류 과제를", "모든 글에 “es” 레이블",
    ),
    "This run has hardly learned to classify: accuracy 40.1 %, and always answering 'es' gives "
    "40.0 %.": ("40.1%", "늘 “es” 레이블"),
    "It writes much the same words whatever it reads, such as “i i i”.": ("비슷한 말만", "“i i i”"),
}  # fmt: skip


def test_what_is_said_of_a_run_is_said_in_korean(opened_kinds: Open) -> None:
    longest = (
        "Nearly all sentences that it has learned from have at most 18 words; it may leave out "
        "parts of longer ones."
    )
    with opened_kinds(language="ko") as page:
        for english, wanted in SAID.items():
            page.unroute_all()
            facts = [["weights", "best, update 2,400"]]
            with_charts(page, notice=f"{NOTICE} {english}", limits=[longest], facts=facts)
            page.evaluate("location.hash = '#run?run=parser'")
            page.reload()
            notice = page.locator(".notice")
            for part in (*wanted, "합성 데이터"):
                expect(notice).to_contain_text(part)
            left = re.sub(
                "BLEU|nat|--minutes|recipe.toml|training.updates|“.*?”", "", notice.inner_text()
            )
            assert not re.search("[A-Za-z]{2}", left), left
            expect(page.locator(".limits li")).to_have_text(re.compile("18단어 이하"))
            expect(page.locator("dd").first).to_contain_text("업데이트 2,400")
