"""How the page's tests open it, and what they hold every page to. Not a test."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser, Page, expect

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"

Open = Callable[..., AbstractContextManager[Page]]

_SEEN = (("en", "dark", 1280), ("ko", "light", 390))
in_every_look = pytest.mark.parametrize(
    "look",
    [
        pytest.param(
            {"language": language, "scheme": scheme, "width": width},
            # These two show both languages, both schemes, a desk and a phone. The others, which are
            # slow, combine them otherwise.
            marks=() if (language, scheme, width) in _SEEN else pytest.mark.slow,
        )
        for language in ("en", "ko")
        for scheme in ("light", "dark")
        for width in (1280, 390)
    ],
    ids=lambda look: "-".join(map(str, look.values())),
)
"""A view in both languages, light and dark, on a desk and on a phone: opened with ``**look``."""


def opening(chromium: Browser, address: str) -> Open:
    """Open the page; whatever it asks for elsewhere, or complains of, fails the test."""

    @contextmanager
    def open_page(
        where: str = "", *, language: str = "en", scheme: str = "light", width: int = 1280,
        refused: str | None = None,
    ) -> Iterator[Page]:  # fmt: skip
        """``refused``: what the console may say, where a test asks for what is refused."""
        context = chromium.new_context(
            locale={"en": "en-US", "ko": "ko-KR"}[language],
            color_scheme="dark" if scheme == "dark" else "light",
            viewport={"width": width, "height": 800},
        )
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = context.new_page()
        page.set_default_timeout(60_000)
        expect.set_options(timeout=60_000)
        complaints: list[str] = []
        asked: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{address}/{where}")
        yield page
        context.close()
        hosts = {urlsplit(url).netloc for url in asked if not url.startswith("blob:")}
        assert hosts == {urlsplit(address).netloc}, "a request went outside"
        unexpected = [one for one in complaints if refused is None or refused not in one]
        assert not unexpected, unexpected

    return open_page


def told(page: Page, path: str, **asked: Any) -> Any:
    """What the API answers."""
    return page.evaluate(
        "([path, asked]) => fetch(path, {method: 'POST', body: JSON.stringify(asked),"
        " headers: {'Content-Type': 'application/json'}}).then((one) => one.json())",
        [path, asked],
    )


def choose(page: Page, run: str) -> None:
    """Choose another run in the page's head."""
    page.locator("header .model summary").click()
    page.locator("header .model button", has_text=run).first.click()


def saved(page: Page, button: str, of: str) -> str:
    """The text of the file that a button gives, in its menu where it stands in one: an SVG stands
    by itself, without the page."""
    menus = page.locator("details.saves").filter(
        has=page.locator(f"summary[aria-label*={json.dumps(of, ensure_ascii=False)}]")
    )
    if menus.count():
        menus.first.evaluate("one => { one.open = true; }")
    with page.expect_download() as download:
        page.get_by_role("button", name=f"{button}: {of}").first.click()
    content = download.value.path().read_text(encoding="utf-8")
    if "SVG" in button:
        root = ElementTree.fromstring(content)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert not [one for one in root.iter() if {"class", "style"} & one.attrib.keys()]
        assert "var(--" not in content
    return content


def accessible_and_fits(page: Page) -> None:
    """What every view is held to."""
    accessible(page)
    fits(page)


def accessible(page: Page) -> None:
    """What axe finds wrong: WCAG 2.2 A and AA, and its best practices."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate(  # without what is right, of which there is far more
        "axe.run(document, {resultTypes: ['violations']}).then((found) => found.violations)"
    )
    shown = [(v["id"], v["help"], [node["html"][:120] for node in v["nodes"][:3]]) for v in found]
    assert not shown, json.dumps(shown, indent=1, ensure_ascii=False)


def fits(page: Page) -> None:
    """Nothing is wider than the window."""
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0, "the page is wider than the window"
