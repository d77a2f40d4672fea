"""The explorer of attention in pages that are written to a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, expect

from dragoman.pictures.explorer import look_html
from dragoman.pictures.records import AttentionRecord

WORDS = ("The", "dog", "<mask>", "</s>")


def weights(
    layers: int, rows: int, columns: int
) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    drawn = np.random.default_rng(0).random((layers, 2, rows, columns), np.float32)
    return drawn / drawn.sum(-1, keepdims=True)


@pytest.mark.parametrize("kind", ["Encoder", "Decoder"])
def test_it_opens_on_the_attention_that_a_model_has(
    chromium: Browser, tmp_path: Path, kind: str
) -> None:
    """A model that reads alone has no cross-attention to begin with, nor has one that writes
    alone."""
    reads = kind == "Encoder"
    source, target = (WORDS, ()) if reads else (("</s>",), WORDS)
    s, t = len(source), len(target)
    record = AttentionRecord(
        source, target,
        weights(3 if reads else 0, s, s), weights(0 if reads else 3, t, t), weights(0, t, s),
    )  # fmt: skip
    page_file = tmp_path / "look.html"
    html = look_html(
        record, title="run", source="", translation="The dog", changed=None, exhibits=[]
    )
    page_file.write_text(html, encoding="utf-8")
    page = chromium.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(page_file.as_uri())
    buttons = page.locator("#look .choice button")
    expect(buttons).to_have_text([kind])
    expect(buttons.first).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#look tbody tr")).to_have_count(len(WORDS))
    assert not wrong
    page.close()
