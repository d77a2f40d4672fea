"""Takes the pictures of the page in images/: python docs/screenshots.py http://127.0.0.1:5050

The demo run must be served there; Chromium is Debian's, as for the page's tests.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import Browser, Page, expect, sync_playwright

IMAGES = Path(__file__).with_name("images")
SENTENCE = "The animal didn't cross the street because it was too tired."
TEXT = (
    "The animal didn't cross the street because it was too tired. The animal didn't cross the "
    "street because it was too wide.\n\nThe queen is too old and blue elephants sing."
)


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


def main(address: str) -> None:
    program = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        looks = {
            "translate-light": ({}, True),
            "translate-dark": ({"scheme": "dark"}, True),
            "translate-korean": ({"language": "ko-KR"}, False),
            "translate-phone": ({"width": 390, "height": 844}, False),
        }
        for name, (look, with_choices) in looks.items():
            page = opened(browser, address, **look)
            translate(page, with_choices=with_choices)
            page.screenshot(path=IMAGES / f"{name}.png")
        for name, language in (("look", "en-US"), ("look-korean", "ko-KR")):
            where = f"{address}/#look?text={quote(SENTENCE)}&word=none"
            page = opened(browser, where, language=language, height=1330)
            follow(page, "es")
            page.screenshot(path=IMAGES / f"{name}.png")
        page = opened(browser, f"{address}/#figures?figure=position-sinusoidal")
        expect(page.locator("article")).to_have_attribute("aria-busy", "false", timeout=60_000)
        page.screenshot(path=IMAGES / "figures.png")
        page = opened(browser, f"{address}/#run")
        expect(page.locator("figure svg").first).to_be_visible(timeout=60_000)
        page.screenshot(path=IMAGES / "run.png")
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1])
