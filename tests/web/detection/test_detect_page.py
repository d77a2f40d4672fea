"""The view of a run that finds boxes: a picture that is chosen, dropped or seen by a camera."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opening import Open, accessible_and_fits, in_every_look, opening
from PIL import Image
from playwright.sync_api import Browser, Page, Request, expect
from tiny_tasks import tiny_recipe_of
from trained_run import trained_run
from warm_server import serving


@pytest.fixture(scope="module")
def opened(
    chromium: Browser, built: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Open]:
    folder = tmp_path_factory.mktemp("scenes")
    trained_run(tiny_recipe_of("detection", folder / "data"), folder / "scenes")
    with serving(folder / "scenes") as address:
        yield opening(chromium, address)


def png(width: int = 32, height: int = 16) -> dict[str, Any]:
    held = io.BytesIO()
    Image.linear_gradient("L").resize((width, height)).save(held, "PNG")
    return {"name": "street.png", "mimeType": "image/png", "buffer": held.getvalue()}


DROP = """([data, kind]) => {
  const bytes = Uint8Array.from(atob(data), (one) => one.charCodeAt(0));
  const moved = new DataTransfer();
  moved.items.add(new File([bytes], "street.png", {type: "image/png"}));
  const given = kind === "paste" ? {clipboardData: moved} : {dataTransfer: moved};
  const event = kind === "paste" ? new ClipboardEvent(kind, {...given, bubbles: true})
    : new DragEvent(kind, {...given, bubbles: true, cancelable: true});
  (kind === "paste" ? window : document.querySelector("#panel-use .give")).dispatchEvent(event);
}"""


def given(page: Page) -> list[dict[str, Any]]:
    """Choose a picture -> the boxes that the server gave."""
    with page.expect_response(re.compile("v1/detect")) as response:
        page.get_by_label("Choose a file").set_input_files(png())
    boxes: list[dict[str, Any]] = response.value.json()["files"][0]["boxes"]
    return boxes


def test_boxes_lie_over_the_picture_where_the_server_has_them(opened: Open) -> None:
    with opened("#boxes") as page:
        boxes = given(page)
        page.get_by_label("Least score").fill("0.05")
        drawn = page.locator(".box")
        expect(drawn).to_have_count(len(boxes))
        assert boxes
        whole = page.locator(".picture img").bounding_box()
        assert whole is not None and abs(whole["width"] / whole["height"] - 2) < 0.02
        surest = drawn.last.bounding_box()  # it is drawn over the others
        assert surest is not None
        edges, scale = boxes[0]["box"], whole["width"] / 32
        assert abs(surest["x"] - whole["x"] - edges["xmin"] * scale) < 1
        assert abs(surest["y"] - whole["y"] - edges["ymin"] * scale) < 1
        assert abs(surest["width"] - (edges["xmax"] - edges["xmin"]) * scale) < 1
        expect(drawn.last).to_contain_text(boxes[0]["label"])
        page.get_by_label("Least score").fill("0.95")
        expect(drawn).to_have_count(sum(one["score"] >= 0.95 for one in boxes))


def test_where_the_model_looked_while_it_wrote_a_box(opened: Open) -> None:
    with opened("#boxes") as page:
        with page.expect_response(re.compile("v1/detect")) as response:
            page.get_by_label("Choose a file").set_input_files(png())
        (found,) = response.value.json()["files"]
        page.get_by_label("Least score").fill("0.05")
        page.get_by_text("Where the model looked", exact=True).click()
        written = page.get_by_role("group", name="The boxes that were written").get_by_role(
            "button"
        )
        expect(written).to_have_count(len(found["boxes"]))
        dimmed = page.locator(".patches i")
        expect(dimmed).to_have_count(0)
        written.nth(0).click()
        shares = found["boxes"][0]["looked"]
        expect(dimmed).to_have_count(found["seen"]["rows"] * found["seen"]["columns"])
        most = shares.index(max(shares))
        share = dimmed.nth(most).evaluate("one => one.style.getPropertyValue('--dim')")
        assert float(share) == 0
        written.nth(0).click()
        expect(dimmed).to_have_count(0)


def test_a_file_that_is_no_picture_is_told_of(opened: Open) -> None:
    with opened("#boxes", refused="400") as page:
        file = {"name": "a.png", "mimeType": "image/png", "buffer": b"nothing"}
        page.get_by_label("Choose a file").set_input_files(file)
        expect(page.get_by_role("alert")).to_contain_text("a.png")


def test_a_camera_is_asked_about_again_and_again(opened: Open) -> None:
    asked: list[Request] = []
    with opened("#boxes") as page:
        page.context.grant_permissions(["camera", "microphone"])
        page.on("request", lambda one: asked.append(one) if "v1/detect" in one.url else None)
        page.get_by_role("button", name="Camera").click()
        expect(page.locator("video")).to_be_visible()
        expect(page.locator(".picture")).to_be_visible(timeout=20_000)
        page.get_by_role("button", name="Keep this picture").click()
        expect(page.locator("video")).to_have_count(0)
        assert asked


@pytest.mark.parametrize("kind", ["drop", "paste"])
def test_a_picture_is_dropped_or_pasted(opened: Open, kind: str) -> None:
    with opened("#boxes") as page:
        expect(page.get_by_text("Drop a picture here")).to_be_visible()
        page.evaluate(DROP, [base64.b64encode(png()["buffer"]).decode(), kind])
        expect(page.locator(".picture")).to_be_visible()


def test_its_tab_is_called_by_what_it_shows(opened: Open) -> None:
    with opened("#boxes") as page:
        expect(page.get_by_role("tab")).to_have_text(["Use", "How it works", "Run"])
    with opened("#boxes", language="ko") as page:
        expect(page.get_by_role("tab", name="써 보기")).to_be_visible()
        expect(page.get_by_text("최저 점수")).to_be_visible()


@in_every_look
def test_accessible_and_within_the_window(opened: Open, look: dict[str, Any]) -> None:
    with opened("#boxes", **look) as page:
        page.locator("input[type=file]:visible, .choose input").first.set_input_files(png())
        expect(page.locator(".picture")).to_be_visible()
        page.locator("input[type=range]:visible").fill("0.05")
        page.locator("main details:not(.opens) > summary:visible").first.click()
        accessible_and_fits(page)
