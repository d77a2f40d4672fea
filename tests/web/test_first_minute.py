"""What somebody meets who opens the page for the first time: what each view does, what to begin
with, and how to have the same without the page."""

from __future__ import annotations

import base64
import json
import shlex
import subprocess
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from opening import Open, accessible, accessible_and_fits, fits
from playwright.sync_api import Page, Route, expect

RECIPE = "demo"
SMALL = (
    "name=small", "model.model_dim=32", "model.ffn_dim=64", "model.attention.num_heads=2",
    "model.encoder_layers=1", "model.decoder_layers=1", "text.vocabulary=300",
)  # fmt: skip
FOLDER = "english-to-german-of-the-second-of-november"
TIRED, WIDE = (
    f"The animal didn't cross the street because it was too {why}." for why in ("tired", "wide")
)


def commands(page: Page) -> list[str]:
    """What the open view shows under "The same in a shell"."""
    page.get_by_text("The same in a shell").locator("visible=true").click()
    return page.locator("pre[role=group]:visible").all_inner_texts()


def test_every_view_says_what_it_does_and_what_to_begin_with(opened: Open) -> None:
    with opened() as page:
        line = page.locator(".does:visible")
        expect(line).to_contain_text("Translates your text")
        expect(page.locator("footer")).to_contain_text("dragoman trains Transformers")
        expect(page.locator("textarea")).to_have_value(TIRED)
        expect(page.locator("p.text")).to_have_attribute("data-status", "done")
        examples = page.locator(".examples:visible button")
        expect(examples.nth(0)).to_have_text(TIRED)
        expect(examples.nth(1)).to_have_text(WIDE)
        for select in page.locator("header select").all():
            assert select.evaluate("one => getComputedStyle(one).appearance") != "none"
        said = {line.inner_text()}
        for tab in page.get_by_role("tab").all()[1:]:
            tab.click()
            title = tab.get_attribute("title")
            assert title
            expect(line).to_have_text(title)
            said.add(title)
        assert len(said) == page.get_by_role("tab").count()
        accessible_and_fits(page)


@pytest.mark.parametrize(
    ("jump", "said"),
    [
        (0.0, "“it” looks at “tired.” (100\u00a0%"),
        (0.4, "“it” looks at “tired.” (100\u00a0%"),
        (0.6, "“cross” looks at “animal” (60\u00a0%"),
    ],
)
def test_the_arc_is_of_a_sure_head(opened: Open, jump: float, said: str) -> None:
    """Between two words that depend on the word that is changed, or to that word."""

    def answer(route: Route) -> None:
        response = route.fetch()
        found = response.json()
        word_of = found["source_words"]
        first = [word_of.index(word) for word in range(word_of[-1] + 1)]
        shape = found["attention"]["encoder"]["shape"]
        weights = np.zeros(shape, "<f2")
        weights[:] = np.eye(shape[-1])
        weights[0, 0, first[7]] = np.equal(word_of, 10) / word_of.count(10)
        rows = np.flatnonzero(np.equal(word_of, 3))
        weights[0, 1, rows] = 0
        weights[0, 1, rows, first[1] if "tired" in found["sentences"][0] else first[5]] = jump
        for other in (first[3], -1):
            weights[0, 1, rows, other] = (1 - jump) / 2
        found["attention"]["encoder"]["data"] = base64.b64encode(weights.tobytes()).decode()
        route.fulfill(response=response, json=found)

    with opened() as page:
        page.route("**/v1/look", answer)
        page.reload()
        expect(page.locator(".pair .note")).to_contain_text(said)


def test_a_view_has_its_heading_before_its_answer(opened: Open) -> None:
    """On a slow machine too, a screen reader finds where it is."""
    with opened() as page:
        page.route("**/v1/**", lambda route: None)  # never answered
        for tab in page.get_by_role("tab").all()[1:]:
            tab.click()
            expect(page.locator("[role=tabpanel]:not([hidden]) h1")).to_have_count(1)
            accessible(page)
        page.reload()  # now the server does not even say what it has
        expect(page.locator("h1")).to_have_count(1)
        accessible(page)


@pytest.mark.parametrize("width", [1280, 390])
def test_a_long_name_of_a_run_fits(opened: Open, width: int) -> None:
    with opened(width=width) as page:
        expect(page.locator(".model")).to_contain_text(FOLDER)
        fits(page)


def test_the_command_of_a_view_answers_what_the_view_shows(opened: Open, tmp_path: Path) -> None:
    text = "It's \"old\" & the man's: $HOME `id`."
    with opened(f"#translate?text={quote(text)}") as page:
        expect(page.locator("p.text")).to_have_attribute("data-status", "done")
        command, program = commands(page)
        verb, asks, run, given = shlex.split(program)
        assert (verb, asks, given) == ("dragoman", "translate", text) and run.startswith("runs/")
        words = shlex.split(command)
        assert words[0] == "curl" and json.loads(words[-1])["text"] == text
        said = subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, capture_output=True, check=True, timeout=120
        )
        answer = json.loads(said.stdout)["translations"][0]
        assert answer["sentences"][0]["source"] in text
        assert answer["text"] == page.locator("p.text").inner_text()


def test_what_is_not_shown_of_a_choice_is_said(opened: Open) -> None:
    """What 95 % and < 1 % leave is for all other words together."""
    with opened(f"#look?text={quote(TIRED)}&units=pieces") as page:
        expect(page.locator(".passage")).to_have_attribute("aria-busy", "false")
        page.locator(".text.target .w").first.click()
        rest = page.locator(".choices li").last
        expect(rest).to_contain_text("all others")
        shares = page.locator(".choices button .percent").all_inner_texts()
        known = sum(float(one.split()[0]) for one in shares if "<" not in one)
        left = float(rest.locator(".percent").inner_text().split()[0])
        assert known + left == pytest.approx(100, abs=len(shares))


def test_a_figure_is_a_file_too(opened: Open) -> None:
    with opened("#figures?figure=label-smoothing") as page:
        expect(page.locator("article")).to_have_attribute("aria-busy", "false")
        with page.expect_download() as download:
            page.get_by_role("button", name="Picture (SVG)").click()  # there is one
        assert download.value.suggested_filename == "label-smoothing.svg"
        assert download.value.path().read_text(encoding="utf-8").lstrip().startswith("<svg")
        assert "dragoman figure label-smoothing" in commands(page)
