"""The view of a run that tags words: their tags beside them, and spans drawn together."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import pytest
from opening import Open, accessible_and_fits, in_every_look, opening, saved, told
from playwright.sync_api import Browser, Page, Route, expect
from tiny_tasks import tiny_recipe_of, tiny_tagger_of
from trained_run import trained_run
from warm_server import serving

from dragoman.tasks.tagging.evaluation import TaggingEvaluation

INK = "(one) => getComputedStyle(one).backgroundColor"
TEXT = "dog cat  bread horse soup apple"
TAGS = [("New", "B-LOC"), ("York", "I-LOC"), ("likes", "O"), ("Ada", "B-PER"), ("Bob", "B-PER")]


@pytest.fixture(scope="module")
def tagged(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A run that tags spans, and one that tags parts of speech."""
    folder = tmp_path_factory.mktemp("tagged")
    TaggingEvaluation()(trained_run(tiny_recipe_of("tagging", folder), folder / "spans"))
    (folder / "speech.txt").write_text("the_DT dog_NN sees_VB a_DT cat_NN ._.\n" * 80)
    trained_run(tiny_tagger_of(folder / "speech.txt"), folder / "speech")
    with serving(folder / "spans", folder / "speech") as address:
        yield address


@pytest.fixture
def opened(chromium: Browser, tagged: str) -> Open:
    return opening(chromium, tagged)


def tag(page: Page, text: str) -> None:
    page.get_by_role("textbox", name="Text to tag").fill(text)
    expect(page.locator("p.words")).to_have_attribute("data-status", "done")


def with_spans(page: Page, *shares: float) -> None:
    """Let the words be those of ``TAGS``, each as probable as that."""
    words = [
        {"before": " " if n else "", "text": word, "tag": own, "probability": share,
         "tags": [{"tag": own, "probability": share}, {"tag": "O", "probability": 1 - share}]}
        for n, ((word, own), share) in enumerate(zip(TAGS, shares, strict=True))
    ]  # fmt: skip
    spans = [
        {"kind": "LOC", "first": 0, "count": 2}, {"kind": "PER", "first": 3, "count": 1},
        {"kind": "PER", "first": 4, "count": 1},
    ]  # fmt: skip
    found = {"words": words, "spans": spans, "parts": 1}

    def answer(route: Route) -> None:
        route.fulfill(json={"run": "spans", "longest": 24, "texts": [found]})

    page.route("**/v1/tag", answer)


def test_words_have_the_tags_of_the_api_beside_them(opened: Open) -> None:
    with opened("#tag?run=speech") as page:
        expect(page.get_by_role("tab")).to_have_text(["Use", "How it works", "Run"])
        tag(page, TEXT)
        (found,) = told(page, "v1/tag", text=TEXT, run="speech", top=6)["texts"]
        words = page.locator(".words .word")
        expect(words).to_have_text([one["text"] for one in found["words"]])
        expect(page.locator(".words .name")).to_have_text([one["tag"] for one in found["words"]])
        shown = page.locator(".words .group")
        colours = [one.evaluate(INK) for one in shown.all()]
        pairs = {(one["tag"], colour) for one, colour in zip(found["words"], colours, strict=True)}
        counts = Counter(one["tag"] for one in found["words"])
        assert len(pairs) == len(counts) == len({colour for _, colour in pairs})
        legend = page.get_by_role("list", name="Tags in this text").get_by_role("listitem")
        expect(legend).to_have_text([f"{name} {count}" for name, count in counts.items()])
        samples = {one.inner_text(): one.evaluate(INK) for one in legend.locator(".sample").all()}
        assert pairs == set(samples.items())
        header, *rows = csv.reader(saved(page, "Numbers (CSV)", "The words").splitlines())
        assert header == ["word", "tag", "probability"]
        assert [(row[0], row[1]) for row in rows] == [
            (one["text"], one["tag"]) for one in found["words"]
        ]
        picture = ElementTree.fromstring(saved(page, "Picture (SVG)", "The words"))
        drawn = [one.text for one in picture.iter() if one.tag.endswith("}text")]
        for one in found["words"]:
            assert one["text"] in drawn and one["tag"] in drawn
        boxes = [one for one in picture.iter() if one.tag.endswith("}rect")]
        assert len(boxes) == 1 + len(rows)


def test_the_words_of_a_span_stand_in_one_box(opened: Open) -> None:
    with opened("#tag?run=spans") as page:
        with_spans(page, 0.99, 0.6, 0.9, 0.4, 0.8)
        tag(page, "New York likes Ada Bob")
        groups = page.locator(".words .group.named")
        assert [" ".join(one.split()) for one in groups.all_inner_texts()] == [
            "New YorkLOC", "AdaPER", "BobPER",
        ]  # fmt: skip
        expect(page.locator(".words .group:not(.named)")).to_have_text("likes")
        legend = page.get_by_role("list", name="Kinds of spans in this text")
        expect(legend.get_by_role("listitem")).to_have_text(["LOC 1", "PER 2"])
        words = page.locator(".words .word")
        expect(words.nth(1)).to_have_accessible_name("York: I-LOC, 60 %")
        marked = [
            re.findall("less|unsure", one.get_attribute("class") or "") for one in words.all()
        ]
        assert marked == [[], ["less"], [], ["unsure"], []]
        page.get_by_role("button", name="Copy", exact=True).first.click()
        expect(page.get_by_text("Copied")).to_be_visible()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == "".join(f"{word}\t{own}\n" for word, own in TAGS)


def test_a_text_without_spans_says_so(opened: Open) -> None:
    with opened("#tag?run=spans") as page:
        words = [{"before": "", "text": "so", "tag": "O", "probability": 1, "tags": []}]
        answer = {"run": "spans", "longest": 24,
                  "texts": [{"words": words, "spans": [], "parts": 1}]}  # fmt: skip
        page.route("**/v1/tag", lambda route: route.fulfill(json=answer))
        tag(page, "so")
        expect(page.get_by_text("finds no span in this text")).to_be_visible()
        expect(page.locator(".legend")).to_have_count(0)


def test_a_colour_stays_while_others_come(opened: Open) -> None:
    def colour(page: Page, kind: str) -> str:
        found = page.locator(f'.group[data-name="{kind}"]').first
        return str(found.evaluate("(one) => one.style.getPropertyValue('--colour')"))

    with opened("#tag?run=spans") as page:
        with_spans(page, 1, 1, 1, 1, 1)
        tag(page, "first")
        before = colour(page, "PER")
        assert before != colour(page, "LOC")
        page.unroute_all()
        words = [{"before": "", "text": "Ada", "tag": "B-PER", "probability": 1, "tags": []}]
        spans = [{"kind": "PER", "first": 0, "count": 1}]
        answer = {"texts": [{"words": words, "spans": spans, "parts": 1}]}
        page.route("**/v1/tag", lambda route: route.fulfill(json=answer))
        page.get_by_role("textbox", name="Text to tag").fill("second")
        expect(page.locator(".words .word")).to_have_text(["Ada"])
        assert colour(page, "PER") == before


def test_what_else_a_word_could_be_by_keyboard_alone(opened: Open) -> None:
    with opened(f"#tag?v=1&run=speech&text={quote(TEXT)}") as page:
        expect(page.get_by_role("textbox", name="Text to tag")).to_have_value(TEXT)
        expect(page.locator("p.words")).to_have_attribute("data-status", "done")
        (found,) = told(page, "v1/tag", text=TEXT, run="speech", top=6)["texts"]
        expect(page.get_by_text("Click a word")).to_be_visible()
        page.locator(".words .word").first.focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowDown")
        expect(page.locator('.word[data-word="2"]')).to_be_focused()
        page.keyboard.press("ArrowLeft")
        expect(page.locator('.word[data-word="1"]')).to_be_focused()
        rows = page.get_by_role("list", name="Tags that “cat” could have").get_by_role("listitem")
        for number, one in enumerate(found["words"][1]["tags"]):
            percent = 100 * one["probability"]
            shown = "<\\s1" if percent < 1 else ">\\s99" if percent > 99 else f"{percent:.0f}"
            expect(rows.nth(number)).to_have_text(
                re.compile(rf"^{re.escape(one['tag'])}\s*{shown}\s%\s*$")
            )
        page.get_by_role("textbox", name="Text to tag").fill(f"{TEXT} dog")
        expect(page.get_by_text("Click a word")).to_be_visible()


def test_a_text_that_is_read_in_parts_says_so(opened: Open) -> None:
    with opened("#tag?run=spans") as page:
        text = f"{TEXT} " * 12
        tag(page, text)
        (found,) = told(page, "v1/tag", text=text)["texts"]
        assert found["parts"] > 1
        expect(page.get_by_text(f"read in {found['parts']} parts")).to_be_visible()


KOREAN = "h2:not([translate]), h3, dt, caption, thead th, figcaption"
"""What is not the name of a run."""


def test_examples_and_scores_are_of_the_run(opened: Open) -> None:
    with opened("#tag?run=spans") as page:
        example = page.locator(".examples button").first
        text = example.inner_text()
        example.click()
        expect(page.get_by_role("textbox", name="Text to tag")).to_have_value(text)
        expect(page.locator(".words .word")).to_have_text(text.split())
        page.get_by_role("tab", name="Run").click()
        expect(page.locator("figure svg").first).to_be_visible()
        means = page.locator(".scores .term", has_text="F1").locator(".means")
        expect(means).to_contain_text("over all spans")
    with opened("#run?run=spans", language="ko") as page:
        expect(page.locator("figure svg").first).to_be_visible()
        left = [
            one for one in page.locator(KOREAN).all_inner_texts()
            if re.search("[A-Za-z]{3}", re.sub("SHA-256|nat", "", one))
        ]  # fmt: skip
        assert not left, left
        expect(page.locator(".samples .who").first).to_contain_text(re.compile("모델"))
        expect(page.get_by_text("참조 번역")).to_have_count(0)


@in_every_look
def test_accessible_and_within_the_window(opened: Open, look: dict[str, Any]) -> None:
    with opened("#tag?run=spans", **look) as page:
        with_spans(page, 0.99, 0.6, 0.9, 0.4, 0.8)
        accessible_and_fits(page)
        page.locator("textarea").fill("New York likes Ada Bob")
        expect(page.locator("p.words")).to_have_attribute("data-status", "done")
        page.locator(".words .word").nth(1).click()
        for summary in page.locator("main details:not(.opens) > summary:visible").all():
            summary.click()
        accessible_and_fits(page)
