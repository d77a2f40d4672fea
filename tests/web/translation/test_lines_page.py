"""The view of a run that reads lines of text in pictures: what is written lies over the picture."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opening import Open, accessible_and_fits, in_every_look, opening
from PIL import Image
from playwright.sync_api import Browser, expect
from tiny_cells import tiny_cell
from trained_run import trained_run
from warm_server import serving

from dragoman.sources.line import DrawingSettings, draw_text


@pytest.fixture(scope="module")
def opened(
    chromium: Browser, built: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Open]:
    folder = tmp_path_factory.mktemp("lines")
    trained_run(tiny_cell("translation", "transformer", "line", folder), folder / "lines")
    with serving(folder / "lines") as address:
        yield opening(chromium, address)


def png() -> dict[str, Any]:
    held = io.BytesIO()
    Image.fromarray(draw_text("green 4", 32, DrawingSettings())).save(held, "PNG")
    return {"name": "line.png", "mimeType": "image/png", "buffer": held.getvalue()}


def test_what_is_written_lies_over_the_picture_and_below_it(opened: Open) -> None:
    with opened("#lines") as page:
        expect(page.get_by_role("tab")).to_have_text(["Use", "How it works", "Run"])
        with page.expect_response(re.compile("v1/translate/pictures")) as response:
            page.get_by_label("Choose a file").set_input_files(png())
        (found,) = response.value.json()["files"]
        assert found["text"]
        over = page.locator(".picture svg text")
        expect(over).to_have_count(0)
        page.get_by_label("Write over the picture").check()
        expect(over).to_have_text(found["text"])
        expect(page.locator(".target .text")).to_have_text(found["text"])
        picture, text = (page.locator(one).bounding_box() for one in (".picture", ".picture text"))
        assert picture is not None and text is not None
        assert abs(picture["width"] / picture["height"] - found["width"] / found["height"]) < 0.05
        assert text["x"] >= picture["x"] and text["width"] <= picture["width"]
        assert picture["y"] - 2 <= text["y"] < picture["y"] + picture["height"]
        page.get_by_text("Where the model looked", exact=True).click()
        tokens = page.get_by_role("group", name="The tokens that were written").get_by_role(
            "button"
        )
        expect(tokens).to_have_text([one["text"] for one in found["seen"]["tokens"]])
        tokens.last.click()
        expect(page.locator(".patches i")).to_have_count(len(found["seen"]["tokens"][-1]["looked"]))
        file = {"name": "a.png", "mimeType": "image/png", "buffer": b"nothing"}
    with opened("#lines", refused="400", language="ko") as page:
        expect(page.get_by_role("tab", name="써 보기")).to_be_visible()
        page.get_by_label("파일 고르기").set_input_files(file)
        expect(page.get_by_role("alert")).to_contain_text("a.png")


@in_every_look
def test_accessible_and_within_the_window(opened: Open, look: dict[str, Any]) -> None:
    with opened("#lines", **look) as page:
        page.locator(".choose input").first.set_input_files(png())
        expect(page.locator(".picture")).to_be_visible()
        page.locator("input[type=checkbox]:visible").check()
        page.locator("main details:not(.opens) > summary:visible").first.click()
        accessible_and_fits(page)
