"""The page of a training, in a browser: what it shows, a visitor's sentence, and its heads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opening import Open, accessible_and_fits, in_every_look, opening
from playwright.sync_api import Browser, expect
from watched_training import UPDATES, watched

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def training(
    chromium: Browser, built: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Open, str]]:
    """A training that is finished, and the key of its page."""
    with watched(tmp_path_factory.mktemp("training") / "run") as (training, client, key):
        training.wait_for("The page stays open")
        yield opening(chromium, str(client.base_url).rstrip("/")), key


@in_every_look
def test_a_training_is_seen_and_a_sentence_translated(
    training: tuple[Open, str], look: dict[str, Any]
) -> None:
    opened, key = training
    with opened(f"#run?key={key}", **look) as page:
        expect(page.locator("progress")).to_have_attribute("value", str(UPDATES))
        expect(page.locator("figure")).to_have_count(5)
        page.locator("form input").fill("The dog sleeps.")
        page.locator("form button").click()
        said = page.locator(".said p")
        expect(said.first).to_contain_text(f"{UPDATES:,}")
        expect(said.last.locator(".at")).to_have_text("0")
        moment = page.locator("input[type=range]")
        expect(moment).not_to_have_attribute("max", "0")
        expect(page.locator("output").first).to_have_text(f"{UPDATES:,}")
        moment.fill("0")
        expect(page.locator("output").first).to_have_text("0")
        page.locator("section select").select_option("1")
        expect(page.locator("section select")).to_have_value("1")
        assert key not in page.url, "the key is gone from the address"
        accessible_and_fits(page)
        page.reload()
        expect(page.locator("form input")).to_have_value("The dog sleeps.")
