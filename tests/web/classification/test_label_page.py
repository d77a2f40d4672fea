"""The view of a run that labels pictures or recordings: files, drawings, camera and microphone."""

from __future__ import annotations

import base64
import io
import re
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opening import Open, accessible_and_fits, choose, in_every_look, opening
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, Request, expect
from row_files import RATE, tone, write_wav
from tiny_cells import tiny_cell
from trained_run import trained_run
from warm_server import serving

BAR = np.zeros((64, 64), np.uint8)
BAR[:, 24:32] = 250
"""What the run knows as 1, standing."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A run that tells lying bars from standing ones, and one that tells rising tones from
    falling ones."""
    folder = tmp_path_factory.mktemp("files")
    for name, source in (("bars", "picture"), ("tones", "frames")):
        recipe = tiny_cell("classification", "encoder", source, folder / source)
        trained_run(recipe, folder / name)
    return [folder / "bars", folder / "tones"]


@pytest.fixture(scope="module")
def opened(chromium: Browser, built: Path, runs: list[Path]) -> Iterator[Open]:
    with serving(*runs) as address:
        yield opening(chromium, address)


def png() -> dict[str, Any]:
    file = io.BytesIO()
    Image.fromarray(BAR).save(file, "PNG")
    return {"name": "bar.png", "mimeType": "image/png", "buffer": file.getvalue()}


def answered(page: Page, label: str | None = None) -> None:
    answer = page.locator("p.text:visible")
    expect(answer).to_have_attribute("data-status", "done")
    if label is not None:
        expect(answer).to_have_text(label)


def shown(page: Page) -> np.ndarray:
    """The picture that the page says the model reads."""
    address = page.locator("img.seen:visible").first.get_attribute("src")
    assert address is not None
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(address.split(",")[1]))))


def draw(page: Page, *points: tuple[float, float]) -> None:
    """One stroke, from point to point, of a field of width 1."""
    field = page.get_by_role("img", name="Draw here")
    field.scroll_into_view_if_needed()
    box = field.bounding_box()
    assert box is not None
    (x, y), *others = [
        (box["x"] + a * box["width"], box["y"] + b * box["height"]) for a, b in points
    ]
    page.mouse.move(x, y)
    page.mouse.down()
    for x, y in others:
        page.mouse.move(x, y, steps=8)
    page.wait_for_timeout(400)  # until the last of it was asked about


DIMMED = "(all) => all.map((one) => one.style.getPropertyValue('--dim'))"


def test_a_picture_is_chosen(opened: Open) -> None:
    with opened("#label?run=bars") as page:
        expect(page.get_by_role("tab")).to_have_text(["Use", "How it works", "Run"])
        page.get_by_label("Choose a file").set_input_files(png())
        answered(page, "1")
        rows = page.get_by_role("list", name="All labels").get_by_role("listitem")
        expect(rows).to_have_count(2)
        expect(rows.nth(0)).to_have_text(re.compile(r"^1\s*\d+\s%\s*$"))
        assert shown(page).shape == (8, 8) and shown(page)[:, 3].min() > 150
        expect(page.get_by_role("img", name="bar.png")).to_be_visible()
        patches = page.locator(".patches i")
        expect(patches).to_have_count(0)
        page.get_by_label("Where it looked").check()
        expect(patches).to_have_count(4)
        shares = [float(one) for one in patches.evaluate_all(DIMMED)]
        assert min(shares) == 0 and max(shares) <= 0.88
        most = shares.index(0)
        expect(page.locator(".where-told")).to_contain_text(
            f"in row {most // 2 + 1}, column {most % 2 + 1}"
        )
        page.get_by_text("The same in a shell").locator("visible=true").click()
        expect(page.locator("pre:visible").first).to_contain_text("file=@bar.png")


CHANGED = "([one, before]) => one.innerHTML"


def _looks_from_a_part(page: Page, heads: Locator) -> None:
    """A click on a part gives other shares, and a second click those of before."""
    dimmed = heads.first.locator(".patches")
    all_rows = dimmed.inner_html()
    part = page.get_by_role("group", name="Parts to look from").get_by_role("button").nth(1)
    part.click()
    expect(page.get_by_text("from the part that you clicked")).to_be_visible()
    expect(part).to_have_attribute("aria-pressed", "true")
    page.wait_for_function(f"{CHANGED} !== before", arg=[dimmed.element_handle(), all_rows])
    part.click()
    page.wait_for_function(f"{CHANGED} === before", arg=[dimmed.element_handle(), all_rows])


def test_a_hidden_patch_and_each_head_are_shown(opened: Open) -> None:
    with opened("#label?run=bars") as page:
        page.get_by_label("Choose a file").set_input_files(png())
        answered(page, "1")
        before = shown(page)
        page.get_by_label("What if a part is hidden?").check()
        cells = page.locator(".cells button")
        expect(cells).to_have_count(4)
        page.get_by_role("button", name="Row 2, column 1").click()
        told = page.get_by_text(re.compile(r"^1: .+% for the whole, .+% without the hidden"))
        expect(told).to_be_visible()
        answered(page)
        after = shown(page)
        assert (after[:4] == before[:4]).all() and (after[4:, :4] == after[4, 0]).all()
        expect(cells.nth(2)).to_have_attribute("aria-pressed", "true")
        page.get_by_label("Where each head looked").check()
        heads = page.get_by_role("group", name="Where each head looked").get_by_role("listitem")
        expect(heads.first).to_be_visible()
        expect(heads.first).to_have_attribute("title", re.compile("^Layer 1, head 1: most in row"))
        _looks_from_a_part(page, heads)
        page.get_by_label("How it reads the picture, step by step").check()
        steps = page.get_by_role("group", name="How it reads the picture, step by step")
        expect(steps.locator("figure, canvas, svg").first).to_be_visible()
        expect(steps).to_contain_text("Patches as rows")
        page.get_by_role("button", name="Show all again").click()
        expect(told).to_have_count(0)
        answered(page, "1")
        assert (shown(page) == before).all()
        accessible_and_fits(page)
        asked: list[Request] = []
        page.on("request", lambda one: asked.append(one) if "classify" in one.url else None)
        cells.nth(1).click()
        expect(told).to_be_visible()
        answered(page)
        # Of another file nothing is hidden, and it is asked about once.
        page.get_by_label("Choose a file").set_input_files({**png(), "name": "other.png"})
        expect(page.get_by_role("img", name="other.png")).to_be_visible()
        answered(page, "1")
        assert (shown(page) == before).all() and len(asked) == 2
        expect(cells.nth(1)).to_have_attribute("aria-pressed", "false")


DROP = """([data, kind]) => {
  const bytes = Uint8Array.from(atob(data), (one) => one.charCodeAt(0));
  const moved = new DataTransfer();
  moved.items.add(new File([bytes], "bar.png", {type: "image/png"}));
  const given = kind === "paste" ? {clipboardData: moved} : {dataTransfer: moved};
  const event = kind === "paste" ? new ClipboardEvent(kind, {...given, bubbles: true})
    : new DragEvent(kind, {...given, bubbles: true, cancelable: true});
  (kind === "paste" ? window : document.querySelector("#panel-use .give")).dispatchEvent(event);
}"""


@pytest.mark.parametrize("kind", ["drop", "paste"])
def test_a_picture_is_dropped_or_pasted(opened: Open, kind: str) -> None:
    with opened("#label?run=bars") as page:
        expect(page.get_by_text("Drop a picture here")).to_be_visible()
        data = base64.b64encode(png()["buffer"]).decode()
        if kind == "drop":
            page.evaluate(DROP, [data, "dragover"])
            expect(page.get_by_text("Drop the file to label it")).to_be_visible()
        page.evaluate(DROP, [data, kind])
        answered(page, "1")


def test_a_drawing_is_labelled_as_it_grows(opened: Open) -> None:
    with opened("#label?run=bars") as page:
        page.get_by_label("Centred and scaled").uncheck()
        asked: list[Request] = []
        page.on("request", lambda one: asked.append(one) if "classify" in one.url else None)
        draw(page, (0.45, 0.02), (0.45, 0.5), (0.45, 0.98))
        answered(page, "1")  # while the button is still down
        for _ in range(50):  # until the end of the stroke was asked about too
            if shown(page)[:, 3].min() > 100:
                break
            page.wait_for_timeout(100)
        assert shown(page)[:, 3].min() > 100 and not shown(page)[:, 6].any()
        page.mouse.up()
        assert len(asked) >= 2
        page.get_by_role("button", name="Clear").click()
        expect(page.locator("p.text:visible")).to_have_count(0)
        draw(page, (0.02, 0.45), (0.98, 0.45))
        page.mouse.up()
        answered(page, "0")
        white_on_black = page.locator("img.seen").get_attribute("src") or ""
        page.get_by_label("Black on white").check()
        expect(page.locator("img.seen")).not_to_have_attribute("src", white_on_black)
        assert shown(page)[0].min() == 255 and shown(page)[3].max() < 150
        page.get_by_role("button", name="Undo").click()
        expect(page.locator("p.text:visible")).to_have_count(0)


def test_a_drawing_is_centred_as_the_digits_of_mnist_are(opened: Open) -> None:
    with opened("#label?run=bars") as page:
        draw(page, (0.5, 0.5))
        page.mouse.up()
        answered(page)
        assert shown(page).any()  # a dot is drawn
        page.get_by_role("button", name="Clear").click()
        draw(page, (0.1, 0.05), (0.1, 0.3))
        page.mouse.up()
        answered(page)
        found = shown(page).astype(float)
        across, down = (found.sum(axis) @ np.arange(8) / found.sum() for axis in (0, 1))
        assert (across, down) == pytest.approx((3.5, 3.5), abs=0.25)
        assert 5 <= (found.sum(1) > 60).sum() <= 7  # 20 of 28 rows


def test_a_camera_is_labelled_and_kept(opened: Open) -> None:
    with opened("#label?run=bars") as page:
        page.context.grant_permissions(["camera", "microphone"])
        page.get_by_role("button", name="Camera").click()
        answered(page)
        expect(page.get_by_label("What the camera sees")).to_be_visible()
        page.get_by_role("button", name="Keep this picture").click()
        expect(page.get_by_role("img", name="camera.jpg")).to_be_visible()
        answered(page)


def test_a_camera_that_is_not_allowed_is_told_of(opened: Open) -> None:
    with opened("#label?run=bars") as page:
        page.evaluate(
            "() => { navigator.mediaDevices.getUserMedia = () => Promise.reject(new Error('no')); }"
        )
        page.get_by_role("button", name="Camera").click()
        expect(page.get_by_text("The browser did not allow it")).to_be_visible()


def test_a_microphone_is_recorded_at_the_rate_of_the_run(opened: Open) -> None:
    with opened("#label?run=tones") as page:
        page.context.grant_permissions(["camera", "microphone"])
        page.evaluate(
            "() => { const make = URL.createObjectURL;"
            " URL.createObjectURL = (one) => make.call(URL, (window.given = one)); }"
        )
        page.get_by_role("button", name="Record").click()
        expect(page.get_by_text(re.compile(r"Recording: 1\.\d s of at most 60 s"))).to_be_visible()
        expect(page.locator("meter")).to_be_visible()
        page.get_by_role("button", name="Stop").click()
        answered(page)
        expect(page.locator("audio")).to_be_visible()
        data = page.evaluate("given.arrayBuffer().then((one) => [...new Uint8Array(one)])")
        with wave.open(io.BytesIO(bytes(data))) as file:
            assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (RATE, 1, 2)
            samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
        assert len(samples) > 0.9 * RATE and np.abs(samples).max() > 500  # it beeps


def test_a_recording_of_another_rate_is_converted(opened: Open, tmp_path: Path) -> None:
    """By the browser, which decodes more than the server does."""
    with opened("#label?run=tones") as page:
        samples = np.repeat(tone(1800, 0.3, until=300), 2)
        page.get_by_label("Choose a file").set_input_files(
            write_wav(tmp_path / "falling.wav", samples, 2 * RATE)
        )
        answered(page, "falling")
        expect(page.get_by_text("falling.wav, 0.3 s")).to_be_visible()
        page.get_by_label("Where it looked").check()
        expect(page.locator(".where-told")).to_contain_text("of the way")
        page.get_by_label("Where each head looked").check()
        heads = page.get_by_role("group", name="Where each head looked").get_by_role("listitem")
        expect(heads.first).to_have_attribute("title", re.compile("head 1: most at .+ of the time"))
        _looks_from_a_part(page, heads)


def test_a_run_of_another_kind_is_chosen(opened: Open, tmp_path: Path) -> None:
    """What was asked of pictures alone is not asked of recordings."""
    with opened("#label?run=bars") as page:
        page.get_by_label("Choose a file").set_input_files(png())
        answered(page, "1")
        reading = page.get_by_label("How it reads the picture, step by step")
        reading.check()
        expect(page.get_by_role("group", name="step by step")).to_be_visible()
        choose(page, "tones")
        samples = tone(1800, 0.3, until=300)
        page.get_by_label("Choose a file").set_input_files(
            write_wav(tmp_path / "falling.wav", samples, RATE)
        )
        answered(page, "falling")
        choose(page, "bars")
        page.get_by_label("Choose a file").set_input_files(png())
        answered(page, "1")
        expect(reading).not_to_be_checked()


def test_what_is_no_recording_is_told_of(opened: Open) -> None:
    with opened("#label?run=tones", refused="400") as page:
        page.get_by_label("Choose a file").set_input_files(
            {"name": "one.wav", "mimeType": "audio/wav", "buffer": b"hello"}
        )
        expect(page.get_by_role("alert")).to_contain_text(
            "one.wav is damaged or not a supported recording"
        )


def test_without_https_the_page_says_why_there_is_no_camera(opened: Open) -> None:
    with opened("#label?run=bars") as page:
        page.add_init_script("Object.defineProperty(window, 'isSecureContext', {value: false})")
        page.reload()
        expect(page.get_by_text("only over HTTPS")).to_be_visible()
        expect(page.get_by_role("button", name="Camera")).to_have_count(0)


@in_every_look
@pytest.mark.parametrize("run", ["bars", pytest.param("tones", marks=pytest.mark.slow)])
def test_accessible_and_within_the_window(
    opened: Open, look: dict[str, Any], run: str, tmp_path: Path
) -> None:
    with opened(f"#label?run={run}", **look) as page:
        if run == "bars":
            expect(page.get_by_role("img", name=re.compile("^Draw here|^마우스"))).to_be_visible()
            accessible_and_fits(page)
        given = png() if run == "bars" else write_wav(tmp_path / "a.wav", tone(300, 0.3))
        page.locator("input[type=file]:visible, .choose input").first.set_input_files(given)
        answered(page)
        if run == "bars":
            page.locator("section.seen .set input").first.check()
        page.locator("main details:not(.opens) > summary:visible").first.click()
        accessible_and_fits(page)
