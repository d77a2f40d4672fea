"""Every view of a run of every task over every source: it opens, and nothing fails."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from every_task import SERVED_CELLS, run_of_every_task
from opening import Open, opening
from playwright.sync_api import Browser, Locator, Route, expect
from warm_server import serving

from dragoman.tasks.catalogue import Run
from dragoman.tasks.report import keep_example

VIEWS = {
    "translation-text": "translate", "translation-frames": "transcribe",
    "translation-line": "lines", "language-model-text": "write", "masked-text": "fill",
    "classification-text": "classify", "classification-frames": "label",
    "classification-picture": "label", "classification-line": "label", "parsing-text": "parse",
    "tagging-text": "tag", "detection-picture": "boxes", "painting-text": "paint",
}  # fmt: skip
"""The view of what the run does."""
SHOWN_AGAIN = {
    3: ("classification-picture", "parsing-text"),
    8: ("parsing-text", "translation-frames", "painting-text"),
}
"""The steps of the lesson, and runs that show them again."""
TEXTS = {"masked-text": "the ___ sees .", "parsing-text": "the dog sees ."}


@pytest.fixture(scope="module")
def opened(
    chromium: Browser, built: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Open]:
    folders = run_of_every_task(tmp_path_factory.mktemp("every")).values()
    for folder in folders:
        keep_example(Run.open(folder))
    with serving(*folders) as address:
        yield opening(chromium, address)


def check_no_language_is_missed(panel: Locator, name: str) -> None:
    """Recordings and pictures are in no language that could be known."""
    if not name.endswith("-text"):
        expect(panel).not_to_contain_text("Language not known")
        expect(panel.locator("[aria-label*='Language not known']")).to_have_count(0)


@pytest.mark.parametrize("name", [f"{task}-{source}" for task, source, _ in SERVED_CELLS])
def test_every_view_opens(opened: Open, name: str) -> None:
    text = TEXTS.get(name, "dog cat bread") if name.endswith("-text") else ""
    with opened(f"#{VIEWS[name]}?run={name}&text={text}") as page:
        panel = page.locator("[role=tabpanel]:visible")
        expect(panel).to_have_attribute("id", "panel-use")
        expect(page.locator("header .model")).to_contain_text(name)
        check_no_language_is_missed(panel, name)
        looks, figures = page.evaluate(
            """async name => {
                const { runs } = await (await fetch("v1/info")).json();
                const run = runs.find(one => one.name === name);
                return [run.look, run.figures];
            }""",
            name,
        )
        page.evaluate(f"location.hash = '#run?run={name}'")
        expect(panel.get_by_role("heading", level=2).first).to_have_text(name)
        expect(panel.locator("figure svg").first).to_be_visible()
        check_no_language_is_missed(panel, name)
        if figures:
            page.evaluate(f"location.hash = '#figures?run={name}'")
            expect(panel.locator(".panels").first).to_be_visible()
        if looks:
            page.evaluate(f"location.hash = '#look?run={name}&text={text}'")
            expect(panel.locator(".passage")).to_have_attribute("aria-busy", "false")
            check_no_language_is_missed(panel, name)
        expect(page.get_by_role("alert")).to_have_count(0)


def test_steps_of_the_lesson_lead_to_runs_of_other_sources(opened: Open) -> None:
    """They arrive with a file that the run keeps; what was open in the lesson is so after Back."""
    with opened("#lesson?run=translation-text") as page:
        for step, names in SHOWN_AGAIN.items():
            place = page.locator(f"#step-{step}")
            place.get_by_role("button", name="Show me").click()
            for name in names:
                expect(place.get_by_role("link", name=name)).to_be_visible()
        page.locator("#step-3").get_by_role("link", name="classification-picture").click()
        expect(page.get_by_role("group", name="Where each head looked")).to_be_visible()
        expect(page.get_by_text("example.").first).to_be_visible()
        expect(page.get_by_role("alert")).to_have_count(0)
        page.go_back()
        page.locator("#step-8").get_by_role("link", name="parsing-text").click()
        expect(page.locator(".passage")).to_have_attribute("aria-busy", "false")


@pytest.mark.parametrize("name", [f"{task}-{source}" for task, source, _ in SERVED_CELLS])
def test_a_run_that_has_hardly_learned_says_so_in_every_view(opened: Open, name: str) -> None:
    said = (
        "This run has hardly learned to detect: its loss on dev is 2.900 nats a token, and token "
        "frequencies alone give 2.580."
    )

    def answer(route: Route) -> None:
        info = route.fetch().json()
        for run in info["runs"]:
            run["knows"]["verdict"] = said
        route.fulfill(json=info)

    for language, words in (("en", said), ("ko", "상자 찾기 과제를 거의 배우지 못했습니다")):
        with opened("#figures", language=language) as page:
            page.route("**/v1/info", answer)
            page.goto(f"{page.url.split('#')[0]}?{language}#{VIEWS[name]}?run={name}")
            note = page.locator(".verdict")
            expect(note).to_contain_text(words)
            page.evaluate(f"location.hash = '#run?run={name}'")
            expect(note).to_have_count(0)
