"""Takes the pictures of the page in images/:

    python docs/screenshots.py http://127.0.0.1:5050 [FILE]

A run of ``dragoman demo`` must be served there, of any task: the pictures are those of its views.
A detector and a model that transcribes need a FILE to read. The demo has no tagger: ``tag.png`` is
of a run that was trained on the treebank's parts of speech, and ``label.png`` of one of MNIST's
digits (docs/results.md). Chromium is Debian's, as for the page's tests.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

from playwright.sync_api import Browser, Page, expect, sync_playwright

IMAGES = Path(__file__).with_name("images")
SENTENCE = "The animal didn't cross the street because it was too tired."
TEXT = (
    "The animal didn't cross the street because it was too tired. The animal didn't cross the "
    "street because it was too wide.\n\nThe young queen sings in the garden."
)
BEGINNING = "Das Tier"
LABELLED = "The woman bought the lamp because it was cheap."
BLANKS = "The ___ didn't cross the street because it was too ___."
CAPTION = "a small blue square above a large blue triangle"
TAGGED = "The company said it plans to report its first loss in three years ."
WORDS = "the old dog sees the small cat of the house ."


def opened(
    browser: Browser, address: str, *, language: str = "en-US", scheme: str = "light",
    width: int = 1280, height: int = 760,
) -> Page:  # fmt: skip
    """The page, freshly opened."""
    context = browser.new_context(
        locale=language,
        color_scheme="dark" if scheme == "dark" else "light",
        viewport={"width": width, "height": height},
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto(address)
    return page


def translate(page: Page, *, with_choices: bool) -> None:
    """A translation, if wanted with what else could stand at its pronoun."""
    page.locator("textarea").fill(TEXT)
    expect(page.locator("p.text")).to_have_attribute("data-status", "done", timeout=60_000)
    if with_choices:
        page.locator(".word", has_text=re.compile("^(es|sie)$")).first.click()
        expect(page.locator(".continuations li").first).to_be_visible(timeout=60_000)


def follow(page: Page, pronoun: str) -> None:
    """What the pronoun of the translation looked at, in every layer and head."""
    expect(page.locator(".passage")).to_have_attribute("aria-busy", "false", timeout=60_000)
    page.locator(".text.target .w", has_text=re.compile(f"^{pronoun}$")).first.click()
    expect(page.locator(".choices li").first).to_be_visible(timeout=60_000)


def translation(browser: Browser, address: str) -> None:
    """Every tab of a translator."""
    looks: dict[str, tuple[dict[str, Any], bool]] = {
        "translate-light": ({}, True),
        "translate-dark": ({"scheme": "dark"}, True),
        "translate-korean": ({"language": "ko-KR"}, False),
        "translate-phone": ({"width": 390, "height": 844}, False),
    }
    for name, (look, with_choices) in looks.items():
        page = opened(browser, address, **look)
        translate(page, with_choices=with_choices)
        taken(page, name)
    for name, language in (("look", "en-US"), ("look-korean", "ko-KR")):
        where = f"{address}/#look?text={quote(SENTENCE)}&word=none"
        page = opened(browser, where, language=language, height=1330)
        follow(page, "es")
        taken(page, name)
    page = opened(browser, f"{address}/#figures?figure=position-sinusoidal")
    expect(page.locator("article")).to_have_attribute("aria-busy", "false", timeout=60_000)
    taken(page, "figures")
    page = opened(browser, f"{address}/#run")
    expect(page.locator("figure svg").first).to_be_visible(timeout=60_000)
    taken(page, "run")


def writing(browser: Browser, address: str) -> None:
    """A text that was gone on with."""
    where = f"{address}/#write?text={quote(BEGINNING)}&temperature=0.7&longest=120&seed=11"
    page = opened(browser, where, height=560)
    expect(page.locator("p.text")).to_have_attribute("data-status", "read", timeout=60_000)
    page.get_by_role("button", name="Write on").click()
    expect(page.locator("p.text")).to_have_attribute("data-status", "done", timeout=60_000)
    taken(page, "write")


def seen(view: str, text: str, until: str, height: int, browser: Browser, address: str) -> None:
    """What a model makes of a text, once an element is there; a word that has a tag is clicked."""
    page = opened(browser, f"{address}/#{view}?text={quote(text)}", height=height)
    shown = page.locator(until).first
    expect(shown).to_be_visible(timeout=60_000)
    if view == "tag":
        shown.click()
    taken(page, view)


def drawing(browser: Browser, address: str) -> None:
    """A digit as it is drawn, and what it is taken for."""
    page = opened(browser, f"{address}/#label", height=620)
    box = page.get_by_role("img", name="Draw here").bounding_box(timeout=60_000)
    assert box is not None
    three = (
        (0.3, 0.25), (0.4, 0.17), (0.55, 0.15), (0.68, 0.24), (0.67, 0.38), (0.5, 0.48),
        (0.68, 0.58), (0.72, 0.72), (0.6, 0.84), (0.42, 0.85), (0.29, 0.76),
    )  # fmt: skip
    for number, (x, y) in enumerate(three):
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"], steps=6)
        if number == 0:
            page.mouse.down()
    page.mouse.up()
    page.wait_for_timeout(2_000)
    taken(page, "label")


def given(browser: Browser, address: str, *, view: str, name: str, height: int) -> None:
    """What a model says of the file that the command names."""
    page = opened(browser, f"{address}/#{view}", height=height)
    page.locator("input[type=file]").first.set_input_files(sys.argv[2])
    expect(page.locator("[aria-busy=true]")).to_have_count(0, timeout=60_000)
    page.wait_for_timeout(2_000)
    taken(page, name)


def parsing(browser: Browser, address: str) -> None:
    """A tree, one of its brackets pointed at."""
    page = opened(browser, f"{address}/#parse?text={quote(WORDS)}", height=770)
    bracket = page.locator(".bracket", has_text=re.compile("^PP$")).first
    bracket.hover(timeout=60_000)
    expect(page.locator("svg .look").first).to_be_visible()
    taken(page, "parse")


def taken(page: Page, name: str) -> None:
    """Write what is seen to images/, when nothing moves any more."""
    page.wait_for_timeout(500)
    page.screenshot(path=IMAGES / f"{name}.png")
    page.context.close()


DRAWN = ("classification", "pictures")
PICTURES = {
    "translation": translation,
    "language-model": writing,
    "masked": partial(seen, "fill", BLANKS, "p.text mark", 780),
    "classification": partial(seen, "classify", LABELLED, ".words", 620),
    "tagging": partial(seen, "tag", TAGGED, ".word >> nth=4", 620),
    "parsing": parsing,
    "detection": partial(given, view="boxes", name="detect", height=720),
    "transcription": partial(given, view="transcribe", name="transcribe", height=720),
    "painting": partial(seen, "paint", CAPTION, ".others .thumb", 700),
}


def main(address: str) -> None:
    program = shutil.which("chromium") or shutil.which("chromium-headless-shell")
    with urlopen(f"{address}/v1/info") as answer:
        runs = json.load(answer)["runs"]
    kinds = {(run["task"], run.get("reads")) for run in runs}
    views = {drawing if kind == DRAWN else PICTURES[kind[0]] for kind in kinds}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for view in views:
            view(browser, address)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1])
