"""Every view in both languages, light and dark, on a desk and on a phone."""

from __future__ import annotations

import itertools
import re
from urllib.parse import quote

import pytest
from opening import Open, accessible, fits, opening
from playwright.sync_api import Browser, Page, expect

SENTENCE = "The animal didn't cross the street because it was too tired."
OTHER = "The animal didn't cross the street because it was too wide."
VIEWS = {
    "look": f"#look?text={quote(SENTENCE)}&at=cross.1.2",
    "empty": "#look",
    "beside": f"#look?text={quote(SENTENCE)}&beside={quote(OTHER)}&at=decoder.1.0",
    "run": "#run?v=1&smooth=0.9&log=1",
    **{name: f"#figures?figure={name}" for name in ("order", "mask", "label-smoothing", "layers")},
}
READY = {
    "look": ".all button",
    "beside": ".passage >> nth=1",
    "empty": ".empty",
    "run": "figure svg",
}
LOOKS = [*itertools.product(("en", "ko"), ("light", "dark"), (1280, 390))]
KEPT = re.compile(
    r"“.*”|API|RMS|BLEU|chrF(\+\+)?|TER|SHA-256|log P|CSV|</?s>|W\^[QO]|PE|d_(k|model)|"
    r"dragoman|demo|softmax|cos|sin|LSTM|Concat|core|whole|nats?|Adam"
)
"""What is the same in both languages."""


@pytest.fixture
def opened(chromium: Browser, address: str) -> Open:
    return opening(chromium, address)


def labels(page: Page) -> list[str]:
    """Headings, labels and buttons of the page itself: nothing of the run, of a sentence, of a
    person."""
    found = page.locator(
        "h1, h2, h3, th:not(.lang), dt, summary, caption, label, .about, .lead, .legend, .caption, "
        ".note, [role=tab]"
    )
    return [one for one in found.all_inner_texts() if one.strip()]


@pytest.mark.slow
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("look", LOOKS, ids=lambda look: "-".join(map(str, look)))
def test_every_view(opened: Open, view: str, look: tuple[str, str, int]) -> None:
    language, scheme, width = look
    with opened(VIEWS[view], language=language, scheme=scheme, width=width) as page:
        expect(page.locator(READY.get(view, ".panels")).first).to_be_visible()
        if view in ("look", "beside"):
            page.locator(".text.source .w").nth(1).click()
            page.get_by_role("application").first.focus()
            page.keyboard.press("ArrowDown")
            page.keyboard.press("Enter")
            expect(page.locator(".cell").first).to_be_visible()
        for summary in page.locator("main details:not(.opens) > summary:visible").all():
            summary.click()
        accessible(page)
        fits(page)
        if language == "ko":
            english = [
                text
                for text in labels(page)
                if not re.search("[가-힣]", text) and re.search("[A-Za-z]{3}", KEPT.sub("", text))
            ]
            assert not english, english


NEIGHBOURS = """canvas => {
  const row = canvas.getContext('2d').getImageData(0, canvas.height >> 1, canvas.width, 1).data;
  let most = 0;
  for (let i = 4 * Math.round(canvas.width * 0.6); i < 4 * Math.round(canvas.width * 0.9); i++) {
    most = Math.max(most, Math.abs(row[i] - row[i - 4]));
  }
  return most;
}"""
"""The largest difference of two pixels side by side in the right half, 0 to 255."""


@pytest.mark.slow
def test_what_is_finer_than_a_phone_is_grey_not_stripes(opened: Open) -> None:
    """512 dimensions on 300 pixels: the sines near 0 and cosines near 1 become their mean."""
    found = []
    for width in (1280, 390):
        with opened("#figures?figure=position-sinusoidal", width=width) as page:
            drawn = page.locator(".panels canvas").first
            expect(drawn).to_be_visible()
            page.wait_for_timeout(500)
            found.append(drawn.evaluate(NEIGHBOURS))
    assert found[0] > 60, "there is room for every dimension: they alternate"
    assert found[1] < 20
