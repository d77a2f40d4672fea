"""The lesson on the page and in its file: it asks first, and tells the numbers of the run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from opening import Open, accessible_and_fits, in_every_look, opening, told
from playwright.sync_api import Browser, Locator, Page, expect
from short_run import short_run
from warm_server import serving

from dragoman.insight.lesson.lesson import PAPER, lesson_pages, make_lesson, subject_of
from dragoman.tasks.catalogue import Run

STEPS = range(1, 11)
MOST_WORDS = 40


@pytest.fixture(scope="module")
def run(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return short_run(tiny_run, tmp_path_factory.mktemp("lesson") / "tiny")


@pytest.fixture(scope="module")
def address(built: Path, run: Path) -> Iterator[str]:
    with serving(run) as address:
        yield address


@pytest.fixture
def opened(chromium: Browser, address: str) -> Open:
    return opening(chromium, address)


def step_of(page: Page, number: int) -> Locator:
    return page.locator(f"#step-{number}")


def answer_of(page: Page, number: int) -> str:
    """The answer, after the first choice has been taken as a guess."""
    step = step_of(page, number)
    answer = step.locator(".answer")
    if step.locator(".closed").count():
        expect(answer).not_to_be_visible()
        step.locator(".guess button").first.click()
    expect(answer).to_be_visible()
    return answer.inner_text()


def percent(share: float) -> str:
    value = share * 100
    if 99 < value < 100:
        return ">\u00a099\u00a0%"
    return "<\u00a01\u00a0%" if 0 < value < 1 else f"{value:.0f}\u00a0%"


@in_every_look
def test_ten_steps_ask_and_then_answer(opened: Open, look: dict[str, object]) -> None:
    with opened("#lesson", **look) as page:
        expect(page.locator(".step")).to_have_count(10)
        for number in STEPS:
            assert answer_of(page, number)
            said = " ".join(step_of(page, number).locator(".says").all_inner_texts())
            assert len(said.split()) <= MOST_WORDS, said
            assert step_of(page, number).locator(".guess .right").count() == 1
            assert not re.search(r"undefined|NaN|\[object", step_of(page, number).inner_text())
        accessible_and_fits(page)


def test_the_numbers_are_those_of_the_server(opened: Open, run: Path) -> None:
    with opened("#lesson") as page:
        expect(page.locator(".step")).to_have_count(10)
        lesson = told(page, "/v1/lesson", run=run.name)
        weights = lesson["attention"]["weights"][lesson["encoder"][1]]
        assert percent(max(weights)) in answer_of(page, 3)
        bars = step_of(page, 3).locator("button.bar .value").all_inner_texts()
        assert [bar.split("→ ")[1] for bar in bars] == [percent(one) for one in weights]
        place = lesson["sentence"]["place"]
        sure = lesson["sentence"]["probabilities"][place]
        assert answer_of(page, 9).startswith(percent(sure))
        answer_of(page, 5)
        everything = step_of(page, 5).get_by_role("button", name="all of the encoder")
        everything.click()
        change = [one for one in lesson["changes"] if "hidden" not in one][-1]
        row = step_of(page, 5).locator("li").first
        expect(row.locator("p").nth(1)).to_have_text(change["output"], use_inner_text=True)
        expect(row).to_contain_text(
            f"{sure:.1%} → {change['probability']:.1%}".replace("%", "\u00a0%")
        )


def test_a_score_can_be_pulled(opened: Open) -> None:
    with opened("#lesson") as page:
        expect(page.locator(".step")).to_have_count(10)
        answer_of(page, 3)
        step = step_of(page, 3)
        bars = step.locator("button.bar")
        bars.nth(0).click()
        before = bars.nth(0).locator(".value").inner_text()
        step.locator(".slider input").fill("15")
        expect(bars.nth(0).locator(".value")).not_to_have_text(before)
        step.get_by_label("hash table").check()
        shares = [one.split("→ ")[1] for one in bars.locator(".value").all_inner_texts()]
        assert sorted(set(shares)) == ["0\u00a0%", "100\u00a0%"]


def test_arrow_keys_and_links_lead_to_a_step(opened: Open) -> None:
    with opened("#lesson") as page:
        expect(page.locator(".step")).to_have_count(10)
        page.locator("#step-1-title").focus()
        page.keyboard.press("ArrowRight")
        expect(page.locator("#step-2-title")).to_be_focused()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowLeft")
        expect(page.locator("#step-2-title")).to_be_focused()
        expect(page.locator("nav [aria-current=step]")).to_have_text(re.compile("^2"))
        expect(page).to_have_url(re.compile("step=2"))
        page.reload()
        expect(page.locator("#step-2-title")).to_be_focused()


def test_guesses_are_kept_while_one_is_elsewhere(opened: Open) -> None:
    with opened("#lesson") as page:
        guess = step_of(page, 1).locator(".guess .chip", has_text="3")
        guess.click()
        page.get_by_role("tab", name="Use").click()
        page.get_by_role("tab", name="How it works").click()  # about another sentence
        expect(guess).to_have_attribute("aria-pressed", "true")
        expect(step_of(page, 1).locator(".answer")).to_be_visible()


def test_a_question_does_not_tell_the_answer_of_the_step_before(opened: Open) -> None:
    with opened("#lesson") as page:
        question = step_of(page, 4).locator(".says").first
        expect(question).to_contain_text("comes from the token that fits it best?")
        best = answer_of(page, 3).split("”")[0]
        expect(question).to_contain_text(f"comes from {best}”?")


def test_all_answers_are_printed(opened: Open) -> None:
    with opened("#lesson") as page:
        expect(page.locator(".step")).to_have_count(10)
        page.emulate_media(media="print")
        for number in STEPS:
            expect(step_of(page, number).locator(".answer")).to_be_visible()


def test_the_other_sentence_has_its_own_lesson(opened: Open) -> None:
    with opened("#lesson") as page:
        page.get_by_role("button", name="wide").first.click()
        expect(page.locator(".line").first).to_have_text(re.compile("wide"))
        lesson = told(page, "/v1/lesson", text=PAPER.replace("tired", "wide"))
        line = page.locator(".line").nth(1).inner_text()
        assert lesson["sentence"]["output"].split()[0] in line


def test_a_sentence_that_is_too_long_is_refused(opened: Open) -> None:
    where = f"#translate?text={quote('so ' * 60)}"
    with opened(where, refused="400") as page:
        page.get_by_role("tab", name="How it works").click()
        expect(page.get_by_text("at most 40")).to_be_visible()


def test_the_most_probable_tokens_are_told_as_they_are(
    chromium: Browser, built: Path, run: Path, tmp_path: Path
) -> None:
    """Each is asked for after the same beginning, however the rest of the translation changes."""
    lesson = make_lesson(subject_of(Run.open(run), "", "fp32"))
    written = lesson.sentence.output_tokens[lesson.sentence.place]
    for change in lesson.changes:
        change.best = "▁x"
    *earlier, since, last = lesson.learning.moments
    since.best = last.best = written
    for moment in earlier:
        moment.best = "▁x"
    for cut in lesson.pieces:
        cut.unknown = 1
    (tmp_path / "lesson.html").write_text(lesson_pages([lesson])[0], encoding="utf-8")
    page = chromium.new_page()
    page.goto((tmp_path / "lesson.html").as_uri())
    assert ", 1 of them unknown to this run" in answer_of(page, 1)
    assert answer_of(page, 5).startswith("“x”; the probability of “")
    expect(step_of(page, 5).locator(".guess .right")).to_contain_text("another token")
    told = answer_of(page, 10)
    assert told.startswith(f"From update {since.update} on") and "it was “x”" in told
    page.close()


def test_the_file_needs_nothing_else(
    chromium: Browser, built: Path, run: Path, tmp_path: Path
) -> None:
    lesson = make_lesson(subject_of(Run.open(run), "", "fp32"))
    # A text that would end the element of the data, if it stood there as it is.
    odd = lesson.model_copy(
        update={"sentence": lesson.sentence.model_copy(update={"served": "</script><b>"})}
    )
    for name, html in zip(("lesson", "sheet"), lesson_pages([odd]), strict=True):
        assert len(html) < 5_000_000
        (tmp_path / f"{name}.html").write_text(html, encoding="utf-8")
    page = chromium.new_page()
    asked: list[str] = []
    errors: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto((tmp_path / "lesson.html").as_uri())
    expect(page.locator(".step")).to_have_count(10)
    expect(page.get_by_text("</script><b>")).to_be_visible()
    assert percent(max(lesson.attention.weights[lesson.encoder[1]])) in answer_of(page, 3)
    accessible_and_fits(page)
    page.goto((tmp_path / "sheet.html").as_uri())
    expect(page.locator(".answer")).to_have_count(10)
    for answer in page.locator(".answer").all():
        expect(answer).to_be_visible()
    assert page.locator(".watch").count() == 10 and not page.locator("input").count()
    accessible_and_fits(page)
    assert not errors and {url.split(":")[0] for url in asked} == {"file"}
    page.close()
