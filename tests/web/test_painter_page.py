"""The page of a painter, which has no view of its own: it shows how the run was trained."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from opening import Open, opening, serving
from playwright.sync_api import Browser, expect
from tiny_tasks import tiny_recipe_of
from trained_run import trained_run


@pytest.fixture(scope="module")
def opened(
    chromium: Browser, built: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Open]:
    folder = tmp_path_factory.mktemp("blocks")
    trained_run(tiny_recipe_of("painting", folder), folder / "blocks")
    with serving(folder / "blocks") as address:
        yield opening(chromium, address)


@pytest.mark.parametrize("language", ["en", "ko"])
def test_a_painter_is_no_translator(opened: Open, language: str) -> None:
    with opened("#translate?text=a%20red%20block", language=language) as page:
        expect(page.get_by_role("tab")).to_have_count(2)
        expect(
            page.get_by_role("tab", name="그림" if language == "ko" else "Figures")
        ).to_be_visible()
        page.get_by_role("tab").last.click()
        expect(page.locator("figure svg").first).to_be_visible()
