"""The view of a run that transcribes: files, the microphone, words that are played, captions."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opening import Open, accessible_and_fits, in_every_look, opening, saved
from playwright.sync_api import Browser, Page, Route, expect
from row_files import RATE, tone, write_wav
from tiny_cells import tiny_cell
from trained_run import trained_run
from warm_server import serving

from dragoman.tasks.catalogue import Run
from dragoman.tasks.transcription.transcriber import Transcriber


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A run that has learned with CTC which way tones go."""
    folder = tmp_path_factory.mktemp("heard")
    recipe = tiny_cell("translation", "transformer", "frames", folder / "data")
    few = ["training.updates=60", "training.validate_every=60", "languages.target=en"]
    trained_run(recipe.change([*few, "training.ctc_weight=0.3"]), folder / "tones")
    return [folder / "tones"]


@pytest.fixture(scope="module")
def opened(chromium: Browser, built: Path, runs: list[Path]) -> Iterator[Open]:
    with serving(*runs) as address:
        yield opening(chromium, address)


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three tones with a second of silence around each."""
    parts = [np.zeros(RATE)]
    for number in range(3):
        begin, end = (300.0, 1800.0) if number % 2 else (1800.0, 300.0)
        parts += [tone(begin, 0.2, number, end), np.zeros(RATE)]
    return write_wav(tmp_path_factory.mktemp("long") / "long.wav", np.concatenate(parts))


def answered(page: Page) -> None:
    expect(page.locator("[data-status=done]:visible")).to_have_count(1)


def give(page: Page, file: Any) -> None:
    page.get_by_label("Choose a file").locator("visible=true").set_input_files(file)


def test_a_recording_is_transcribed_and_saved_as_captions(
    opened: Open, runs: list[Path], long: Path
) -> None:
    wanted = Transcriber(Run.open(runs[0]))(long, words=True)
    assert len(wanted.segments) == 3
    with opened("#transcribe?run=tones") as page:
        expect(page.get_by_role("tab")).to_have_text(["Use", "How it works", "Run"])
        give(page, long)
        answered(page)
        expect(page.locator(".part p:visible")).to_have_text(
            [re.compile(rf"^\s*{segment.text}\s*$") for segment in wanted.segments]
        )
        expect(page.get_by_text("long.wav, 4.6 s")).to_be_visible()
        for layout, name in (("srt", "SRT"), ("vtt", "VTT"), ("text", "TXT")):
            own = saved(page, "Download", name)
            theirs = wanted.captions(layout)  # type: ignore[arg-type]
            # Ours has the hour in WebVTT too, as players want it of long ones.
            plain = re.sub(r"(?m)\b00:(\d\d:\d\d\.)", r"\1", own) if layout == "vtt" else own
            assert plain == theirs, layout
        expect(page.locator("pre:visible, pre").first).to_contain_text("file=@long.wav")


DIMMED = "(all) => all.map((one) => one.style.getPropertyValue('--dim'))"


def test_what_is_heard_is_looked_into_and_hidden(opened: Open, tmp_path: Path) -> None:
    short = write_wav(tmp_path / "short.wav", tone(300.0, 0.3, 1, 1800.0))
    with opened("#transcribe?run=tones") as page:
        give(page, short)
        answered(page)
        text = page.locator(".part p:visible").inner_text().strip()
        page.get_by_label("What the model hears").check()
        picture = page.get_by_role("img", name="The bands of the spectrum")
        expect(picture).to_be_visible()
        answered(page)
        tokens = page.get_by_role("group", name="The tokens that were written").get_by_role(
            "button"
        )
        expect(tokens.first).to_be_visible()
        expect(page.locator(".looked")).to_have_count(0)
        tokens.first.click()
        shares = page.locator(".patches i")
        assert "0" in shares.evaluate_all(DIMMED)
        page.get_by_label("What if a part is hidden?").locator("visible=true").check()
        before = picture.get_attribute("src") or ""
        page.get_by_role("button", name="Row 1, column 1").click()
        expect(picture).not_to_have_attribute("src", before)
        expect(page.get_by_text(f"Of the whole recording: {text}")).to_be_visible()
        accessible_and_fits(page)
        page.get_by_role("button", name="Show all again").click()
        expect(picture).to_have_attribute("src", before)


def test_a_word_jumps_to_its_second(opened: Open, runs: list[Path], long: Path) -> None:
    wanted = Transcriber(Run.open(runs[0]))(long, words=True)
    word = wanted.segments[1].words[-1]
    with opened("#transcribe?run=tones") as page:
        give(page, long)
        answered(page)
        page.evaluate("() => { HTMLMediaElement.prototype.play = () => Promise.resolve(); }")
        page.locator(".part").nth(1).locator(".word").last.click()
        at = page.evaluate("document.querySelector('audio').currentTime")
        assert at == pytest.approx(word.begin, abs=0.01)
        expect(page.locator(".word.now")).to_have_count(1)
        page.locator(".part").nth(2).locator(".time").click()
        at = page.evaluate("document.querySelector('audio').currentTime")
        assert at == pytest.approx(wanted.segments[2].begin, abs=0.01)
        expect(page.locator(".part.now")).to_have_count(1)


def test_a_run_without_ctc_has_times_of_parts_alone(opened: Open, long: Path) -> None:
    with opened("#transcribe?run=tones") as page:

        def timeless(route: Route) -> None:
            info = route.fetch().json()
            info["runs"][0]["takes"]["words"] = False
            route.fulfill(json=info)

        page.route("**/v1/info", timeless)
        page.reload()
        give(page, long)
        answered(page)
        expect(page.locator(".word")).to_have_count(0)
        expect(page.get_by_text("trained without CTC")).to_be_visible()


DROP = """([data, kind]) => {
  const bytes = Uint8Array.from(atob(data), (one) => one.charCodeAt(0));
  const moved = new DataTransfer();
  moved.items.add(new File([bytes], "long.wav", {type: "audio/wav"}));
  const given = kind === "paste" ? {clipboardData: moved} : {dataTransfer: moved};
  const event = kind === "paste" ? new ClipboardEvent(kind, {...given, bubbles: true})
    : new DragEvent(kind, {...given, bubbles: true, cancelable: true});
  (kind === "paste" ? window : document.querySelector("#panel-use .give"))
    .dispatchEvent(event);
}"""


@pytest.mark.parametrize("kind", ["drop", "paste"])
def test_a_recording_is_dropped_or_pasted(opened: Open, long: Path, kind: str) -> None:
    with opened("#transcribe?run=tones") as page:
        expect(page.get_by_text("Drop a recording here")).to_be_visible()
        data = base64.b64encode(long.read_bytes()).decode()
        if kind == "drop":
            page.evaluate(DROP, [data, "dragover"])
            expect(page.get_by_text("Drop the file to transcribe it")).to_be_visible()
        page.evaluate(DROP, [data, kind])
        answered(page)
        expect(page.locator(".part")).to_have_count(3)


def test_silence_and_what_is_no_recording_are_told_of(opened: Open, tmp_path: Path) -> None:
    with opened("#transcribe?run=tones", refused="400") as page:
        give(page, write_wav(tmp_path / "quiet.wav", np.zeros(RATE)))
        expect(page.get_by_text("Nothing is said in this recording.")).to_be_visible()
        give(page, {"name": "one.wav", "mimeType": "audio/wav", "buffer": b"hello"})
        expect(page.get_by_role("alert")).to_contain_text(
            "one.wav is damaged or not a supported recording"
        )


def test_a_refused_recording_is_told_of_in_korean(opened: Open) -> None:
    with opened("#transcribe?run=tones", refused="400", language="ko") as page:
        page.get_by_label("파일 고르기").set_input_files(
            {"name": "one.wav", "mimeType": "audio/wav", "buffer": b"hello"}
        )
        expect(page.get_by_role("alert")).to_contain_text("이 파일은 읽을 수 없습니다")


def test_a_microphone_is_transcribed(opened: Open) -> None:
    with opened("#transcribe?run=tones") as page:
        page.context.grant_permissions(["camera", "microphone"])
        page.get_by_role("button", name="Record").click()
        expect(page.get_by_text(re.compile(r"Recording: 1\.\d s of at most 600 s"))).to_be_visible()
        expect(page.locator("meter")).to_be_visible()
        page.get_by_role("button", name="Stop").click()
        answered(page)
        expect(page.locator(".part .word").first).to_be_visible()  # the beeps of the fake one
        expect(page.locator("audio")).to_be_visible()


SPEAK = """(data) => {
  navigator.mediaDevices.getUserMedia = async () => {
    const context = new AudioContext();
    const bytes = Uint8Array.from(atob(data), (one) => one.charCodeAt(0));
    const source = context.createBufferSource();
    source.buffer = await context.decodeAudioData(bytes.buffer);
    const to = context.createMediaStreamDestination();
    source.connect(to);
    source.start();
    return to.stream;
  };
}"""
"""A microphone that hears a file."""
SIZES = """() => {
  const asked = window.fetch;
  window.sizes = [];
  window.fetch = (path, given) => {
    if (given?.body instanceof FormData) window.sizes.push(given.body.get("file").size);
    return asked(path, given);
  };
}"""
"""Notes how large the recordings are that are sent."""


def test_captions_come_while_one_speaks(opened: Open, long: Path) -> None:
    """What is settled stays, and is not asked about again."""
    with opened("#transcribe?run=tones") as page:
        page.evaluate(SPEAK, base64.b64encode(long.read_bytes()).decode())
        page.evaluate(SIZES)
        page.get_by_role("button", name="Record").click()
        expect(page.get_by_text("Speak: the text appears as you go.")).to_be_visible()
        expect(page.locator(".part")).to_have_count(3)
        expect(page.locator(".part:not(.loose)")).to_have_count(3)
        expect(page.get_by_role("button", name="Stop")).to_be_visible()
        spoken = page.locator(".part p").all_inner_texts()
        assert all(one.strip() for one in spoken)
        times = page.locator(".part .time").all_inner_texts()
        assert times == sorted(times) and len(set(times)) == 3
        page.get_by_role("button", name="Stop").click()
        answered(page)
        expect(page.locator(".part:not(.loose)")).to_have_count(3)
        expect(page.locator("audio")).to_be_visible()
        *tails, whole = page.evaluate("window.sizes")
        assert len(tails) > 2 and max(tails) < 0.8 * whole


def test_a_recording_that_is_thrown_away_leaves_nothing(opened: Open, long: Path) -> None:
    with opened("#transcribe?run=tones") as page:
        page.evaluate(SPEAK, base64.b64encode(long.read_bytes()).decode())
        page.get_by_role("button", name="Record").click()
        expect(page.locator(".part").first).to_be_visible()
        page.get_by_role("button", name="Cancel").click()
        expect(page.locator(".part")).to_have_count(0)
        expect(page.get_by_text("The text appears here")).to_be_visible()


def test_without_https_or_permission_the_page_says_so(opened: Open) -> None:
    with opened("#transcribe?run=tones") as page:
        page.evaluate(
            "() => { navigator.mediaDevices.getUserMedia = () => Promise.reject(new Error('no')); }"
        )
        page.get_by_role("button", name="Record").click()
        expect(page.get_by_text("The browser did not allow it")).to_be_visible()
        page.add_init_script("Object.defineProperty(window, 'isSecureContext', {value: false})")
        page.reload()
        expect(page.get_by_text("only over HTTPS")).to_be_visible()
        expect(page.get_by_role("button", name="Record")).to_have_count(0)


@in_every_look
def test_accessible_and_within_the_window(opened: Open, look: dict[str, Any], long: Path) -> None:
    with opened("#transcribe?run=tones", **look) as page:
        expect(page.locator(".give:visible")).to_be_visible()
        accessible_and_fits(page)
        page.locator(".choose input").locator("visible=true").first.set_input_files(long)
        answered(page)
        page.locator("main details:not(.opens) > summary:visible").first.click()
        accessible_and_fits(page)
