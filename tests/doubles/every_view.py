"""The views of the page over a run of every kind, and how to wait for them. Not a test."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from playwright.sync_api import Page, Route, expect

SENTENCE = "The animal didn't cross the street."
PLACES = {
    "translate": f"#translate?run=translator&text={quote(SENTENCE)}",
    "write": "#write?run=writer&text=Der%20Hund",
    "classify": f"#classify?run=labeller&text={quote(SENTENCE)}",
    "fill": "#fill?run=filler&text=The%20___%20sees%20the%20___.",
    "parse": "#parse?run=parser&text=the%20dog%20sees%20the%20cat%20.",
    "tag": "#tag?run=tagger&text=dog%20cat%20bread%20horse%20soup%20apple",
    "look": f"#look?run=translator&text={quote(SENTENCE)}",
    "look at trees": "#look?run=parser&text=the%20dog%20sees%20.",
    "look at a reading": "#look?run=filler&text=The%20___%20sees.",
    "look at a text": "#look?run=writer&text=Der%20Hund",
    "run": "#run?run=translator&smooth=0.9",
    "figures": "#figures?run=translator&figure=layers",
    "costs": "#figures?run=translator&figure=cost-length",
}
_ANSWERED = "[data-status=done], [data-status=read]"
READY = {
    **dict.fromkeys(("translate", "write", "classify", "fill", "parse", "tag"), _ANSWERED),
    "look": ".passage", "run": "figure svg", "figures": ".panels", "costs": ".panels",
}  # fmt: skip


def go(page: Page, view: str) -> None:
    """Open a view, and wait until all that it asks for is there."""
    page.evaluate("place => { location.hash = place }", PLACES[view])
    ready = page.locator(READY[view.split()[0]]).locator("visible=true")
    expect(ready.first).to_be_visible()
    if view.startswith("look"):
        expect(page.locator(".passage")).to_have_attribute("aria-busy", "false")
        page.locator(".text .w").first.click()
        expect(page.locator("td.figure").first).not_to_be_empty()


def chart(title: str, *series: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A chart as the server tells it."""
    return {"title": title, "x_label": "update", "y_label": "", "log_y": False, **more, "series": [
        {"name": "", **one} for one in series
    ]}  # fmt: skip


def with_charts(page: Page, *charts: dict[str, Any], **more: Any) -> None:
    """Let every run have these charts."""

    def answer(route: Route) -> None:
        run = route.fetch().json()
        route.fulfill(json={**run, "charts": [*charts], **more})

    page.route("**/v1/runs/*", answer)
