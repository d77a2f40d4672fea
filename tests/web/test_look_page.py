"""The tab Look in a real browser: over the demo run, and over a larger one with a long text."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import pytest
from opening import Open, accessible, fits, in_every_look, opening, saved, told
from playwright.sync_api import Browser, Page, Route, expect
from untrained_run import untrained_run
from warm_server import serving

from dragoman.demo.corpus import demo_corpus
from dragoman.tasks.catalogue import Recipe

SENTENCE = "The animal didn't cross the street because it was too tired."
LOOK = f"#look?text={quote(SENTENCE)}&word=none"
TWO = f"The small man eats the dinosaur. {SENTENCE}"
LARGE = (
    "name=large", "model.model_dim=64", "model.ffn_dim=128", "model.encoder_layers=6",
    "model.decoder_layers=6", "model.attention.num_heads=8", "search.beam=2",
    "search.max_length=500", "search.min_length=450",
)  # fmt: skip
"""Twelve layers of eight heads. Its weights are random, and what it writes is noise: how quickly
the page follows does not depend on that."""


@pytest.fixture
def opened(chromium: Browser, address: str) -> Open:
    return opening(chromium, address)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder of the large model."""
    folder = tmp_path_factory.mktemp("large") / "large"
    folder.mkdir()
    return untrained_run(folder, *LARGE)


@pytest.fixture(scope="module")
def opened_large(chromium: Browser, large: Path, built: Path) -> Iterator[Open]:
    with serving(large) as address:
        yield opening(chromium, address)


def looked(page: Page) -> None:
    """Wait until what is shown belongs to what was asked."""
    expect(page.locator(".passage")).to_have_attribute("aria-busy", "false")


def word(page: Page, side: str, text: str) -> Any:
    return page.locator(f".text.{side} .w", has_text=re.compile(f"^{re.escape(text)}$")).first


def translation(page: Page) -> str:
    return " ".join(page.locator(".text.target .w").all_inner_texts())


def test_a_word_is_followed_through_everything(opened: Open) -> None:
    with opened(LOOK) as page:
        looked(page)
        expect(word(page, "target", "es")).to_be_visible()
        word(page, "target", "es").hover()
        told = page.locator(".told").first
        expect(told).to_contain_text(re.compile("To choose “es” the model looked at: .*%"))
        word(page, "target", "es").click()
        expect(word(page, "target", "es")).to_have_attribute("aria-pressed", "true")
        expect(page.locator(".choices li button")).to_have_count(8)
        model = Recipe.load("demo").model
        decoder = model.decoder_layers
        way = page.locator("section", has_text="The way through")
        expect(way.locator("canvas")).to_have_count(3 + decoder)  # the sum's two parts, it, layers
        for part, layers in (
            ("Encoder", model.encoder_layers), ("Decoder", decoder), ("Cross", decoder),
        ):  # fmt: skip
            page.get_by_role("button", name=re.compile(f"^{part} ")).click()
            heads = page.get_by_role("radio")
            each = model.attention.num_heads + 1
            expect(heads).to_have_count(layers * each)  # the mean, and the heads of each layer
            heads.nth(2).click()
            expect(heads.nth(2)).to_be_checked()
            expect(page.get_by_role("heading", name=f"{part}, layer 1, head 2")).to_be_visible()
        page.locator("summary", has_text="As a table").click()
        shares = page.locator(".told-of td.figure").all_inner_texts()
        total = sum(float(share.removesuffix("\u00a0%")) for share in shares)
        assert total == pytest.approx(100, abs=0.5), "a row sums to one"
        page.get_by_role("button", name="Pieces").click()
        assert page.locator(".text.source .w").count() > len(SENTENCE.split()) + 1


def test_a_row_reads_one_word_and_chooses_the_next(opened: Open) -> None:
    """What a word of the translation starts from is the word before it, and is named so."""
    with opened(LOOK) as page:
        looked(page)
        word(page, "target", "es").click()
        way = page.locator("section", has_text="The way through")
        expect(way).to_contain_text("The row that reads “weil” and chooses “es”")
        expect(way.locator(".strip").first).to_have_text(re.compile(r"^weil \d+\s*→ chooses es$"))
        answer = told(page, "v1/look", text=SENTENCE, choices=8)
        likeliest = answer["choices"][answer["target_tokens"].index("▁es")][0]
        assert likeliest["piece"] == "▁es"
        percent = round(100 * likeliest["probability"])
        shown = re.search(r"chooses es, (>\s99|\d+)\s%", way.inner_text())
        assert shown is not None and abs(int(shown[1].lstrip(">\xa0")) - percent) <= 1
        page.get_by_role("button", name=re.compile("^Decoder ")).click()
        page.get_by_role("application").focus()
        page.keyboard.press("ArrowLeft")
        expect(page.locator(".foot .told").first).to_contain_text("reads weil, chooses es → <s>")
        page.get_by_role("button", name="Pieces").click()
        expect(word(page, "target", "es")).to_have_attribute("aria-pressed", "true")


def test_one_sentence_of_several_is_chosen(opened: Open) -> None:
    """As Translate cuts the text; a word is in focus without a click."""
    with opened("#look") as page:
        expect(page.locator(".empty")).to_be_visible()
        tried = page.locator(".ask .link")
        expect(tried).to_have_count(4)
        tried.first.click()
        page.mouse.move(1, 1)  # off the word that comes to stand under it
        looked(page)
        expect(word(page, "target", "es")).to_have_attribute("aria-pressed", "true")
        expect(page.locator(".told").first).to_contain_text("To choose “es”")
        page.get_by_role("textbox", name="Sentence to look into").fill(TWO)
        expect(page.get_by_text("2 sentences, translated one by one")).to_be_visible()
        looked(page)
        assert translation(page).split()[-2:] == ["Dinosaurier.", "</s>"]
        chosen = page.get_by_role("combobox", name="Sentence to look into")
        chosen.select_option("1")
        expect(word(page, "target", "es")).to_be_visible()
        assert "Dinosaurier." not in translation(page)
        chosen.select_option("all")
        expect(page.locator(".text.source .w")).to_have_count(len(TWO.split()) + 1)


def test_all_that_is_made_outlives_a_reload(opened: Open) -> None:
    """Sentence, words hidden and forced, heads off, what is chosen: in the address, for others."""
    with opened(f"#look?text={quote(TWO)}&sentence=2&word=none") as page:
        looked(page)
        word(page, "source", "tired.").click()
        page.get_by_role("button", name="Hide this word").click()
        looked(page)
        page.get_by_role("radio", name="Cross, layer 1, head 2").click()
        page.get_by_role("button", name="Switch this head off").click()
        looked(page)
        word(page, "target", "weil").click()
        page.locator(".choices li button").nth(1).click()
        looked(page)
        expect(page.locator(".new mark").first).to_be_visible()
        made = page.locator(".new").inner_text()
        page.get_by_role("button", name="Link").click()
        expect(page.get_by_text("Link copied")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == page.url
        assert len(page.url.partition("#")[2]) < 2000
        page.evaluate("sessionStorage.clear(); history.replaceState(null, '', location.hash)")
        page.reload()
        expect(page.locator(".new")).to_have_text(made)
        expect(page.locator(".text.source .gone")).to_have_text(re.compile("tired."))
        expect(page.get_by_text("Cross, layer 1, head 2 off")).to_be_visible()
        expect(page.get_by_role("radio", name="Cross, layer 1, head 2")).to_be_checked()
        expect(page.locator('.text.target .w[aria-pressed="true"]')).to_have_count(1)


def test_two_sentences_side_by_side(opened: Open) -> None:
    """The same heads, the word of the same place, and what differs is marked."""
    with opened(f"{LOOK}&at=cross.1.4") as page:
        looked(page)
        page.get_by_role("button", name="Two side by side").click()
        both = page.locator(".passage")
        expect(both).to_have_count(2)
        expect(both.last.locator(".text.target .w", has_text="breit")).to_be_visible()
        expect(page.locator(".card .differs")).to_have_text(
            ["tired.", "es", "müde", "wide.", "sie", "breit"]
        )
        both.first.locator(".w", has_text=re.compile("^es$")).click()
        told = page.locator(".told")
        looked_at = re.compile(r"To choose “sie” the model looked at: .*\bit (?:\d+|>\s99)\s%")
        expect(told.nth(1)).to_contain_text(looked_at)
        page.get_by_role("radio", name="Cross, layer 1, head 3").click()
        expect(page.get_by_role("heading", name="Cross, layer 1, head 3")).to_have_count(2)
        page.wait_for_url("**beside=**")
        page.reload()
        expect(both).to_have_count(2)
        page.get_by_role("button", name="Take the second sentence away").click()
        expect(both).to_have_count(1)


def test_all_heads_at_a_glance_and_a_cell_opened(opened: Open) -> None:
    with opened(LOOK) as page:
        looked(page)
        model = Recipe.load("demo").model
        heads = page.locator(".all button")
        every = (model.encoder_layers + 2 * model.decoder_layers) * model.attention.num_heads
        expect(heads).to_have_count(every)
        expect(page.get_by_text("the less probable this translation becomes")).to_be_visible()
        assert len({one.get_attribute("style") for one in heads.all()}) > every / 2, "colours"
        cross = page.get_by_role("button", name=re.compile("^Cross, layer 1, head 4: log P"))
        cross.click()
        expect(page.get_by_role("radio", name="Cross, layer 1, head 4")).to_be_checked()
        page.get_by_role("application").focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        cell = page.get_by_role("group", name="How “Tier” looks at “animal”")
        expect(cell).to_contain_text(re.compile(r"q · k = -?[\d.]+, divided by √d_k = 5.66 gives"))
        expect(cell.locator("canvas")).to_have_count(5)
        shown = page.locator(".foot .told").first.inner_text()
        share = shown.rpartition("animal ")[2]
        expect(cell.locator("p").first).to_contain_text(f"looked at: {share}")
        page.get_by_role("radio").first.click()
        page.get_by_role("application").focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.get_by_role("button", name=re.compile("^Open head ")).click()
        expect(page.locator(".cell canvas")).to_have_count(5)


@pytest.mark.parametrize(
    ("language", "said"),
    [("en", "rows of numbers are shown of words of 50"), ("ko", "서브워드가 50개를 넘는 단어는")],
)
def test_a_word_of_too_many_pieces_is_said_and_not_asked_for(
    opened: Open, language: str, said: str
) -> None:
    with opened(f"#look?text={'house' * 30}&word=none", language=language) as page:
        looked(page)
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.locator(".units button").first.click()
        page.locator(".text.source .w").first.click()
        expect(page.get_by_text(said)).to_be_visible()
        page.wait_for_timeout(1_000)  # a request would be on its way
        assert not [one for one in asked if one.endswith("/v1/look/word")]


def test_the_map_and_its_numbers_are_saved(opened: Open) -> None:
    with opened(f"{LOOK}&at=encoder.1.2") as page:
        looked(page)
        expect(page.get_by_role("application")).to_be_visible()
        header, *rows = csv.reader(saved(page, "Numbers (CSV)", "Encoder, layer 1").splitlines())
        words = page.locator(".text.source .w").all_inner_texts()
        assert header[1:] == [row[0] for row in rows] and header[1 : len(words) + 1] == words
        sums = [sum(map(float, row[1:])) for row in rows]
        assert sums == pytest.approx([1] * len(rows), abs=0.01)
        picture = ElementTree.fromstring(saved(page, "Picture (SVG)", "Encoder, layer 1"))
        squares = [one for one in picture.iter() if one.get("fill-opacity")]
        assert len(squares) == len(rows) ** 2


def test_the_search_and_its_numbers_are_saved(opened: Open) -> None:
    """All of it, while the page draws its first step only."""
    with opened(LOOK) as page:
        looked(page)
        page.get_by_role("slider", name="Step").fill("1")
        rows = list(csv.DictReader(saved(page, "Numbers (CSV)", "The search").splitlines()))
        won = [row for row in rows if row["won"] == "1"]
        assert [int(row["step"]) for row in won] == [*range(1, len(won) + 1)]
        assert won[-1]["piece"] == "</s>" and won[-1]["outcome"] == "ended"
        total = sum(math.log(float(row["probability"])) for row in won)
        assert total == pytest.approx(float(won[-1]["log_p"]), abs=0.01)
        assert max(float(row["probability"]) for row in rows) <= 1
        picture = ElementTree.fromstring(saved(page, "Picture (SVG)", "The search"))
        dashed = [one for one in picture.iter() if one.get("stroke-dasharray")]
        assert len(dashed) == sum(row["outcome"] == "dropped" for row in rows)
        written = [one.text or "" for one in picture.iter() if one.tag.endswith("text")]
        assert written[0] == "The search, step by step"
        assert sum("\u00a0%" in text for text in written) == len(rows)


def test_a_map_of_many_words_keeps_labels(opened: Open) -> None:
    """As many as there is room for, with no word in focus."""
    long = quote(f"{SENTENCE} " * 6)
    with opened(f"#look?text={long}&sentence=all&word=none&at=cross.1.1") as page:
        looked(page)
        assert page.locator(".text.source .w").count() > 60
        assert page.locator(".map .end text").count() > 3


def test_a_head_that_is_off_draws_nothing_and_is_in_no_mean(opened: Open) -> None:
    with opened(LOOK) as page:
        looked(page)
        heads = page.get_by_role("radio")
        mean = heads.first.locator(".most")
        over = page.locator(".passage .over > *")
        for head in range(2, heads.count()):
            heads.nth(head).click()
            expect(over.first).to_be_attached()
            page.get_by_role("button", name="Switch this head off").click()
            looked(page)
            expect(over).to_have_count(0)
        # What is written without any of them depends on the model.
        first = page.locator(".text.target .w").first
        chosen = first.inner_text()
        first.click()
        expect(page.locator(".told").first).to_contain_text("Switched off")
        expect(mean).to_have_text(heads.nth(1).locator(".most").inner_text())
        heads.first.click()
        expect(page.locator(".told").first).to_contain_text(f"To choose “{chosen}”")
        expect(over.first).to_be_attached()


@pytest.fixture(scope="module")
def opened_kinds(
    chromium: Browser, built: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Open]:
    """A recurrent and a convolutional run, behind one address."""
    runs = []
    for kind in ("recurrent", "convolutional"):
        runs.append(tmp_path_factory.mktemp("kinds") / kind)
        runs[-1].mkdir()
        # Untrained, it would go on for ever.
        untrained_run(runs[-1], "search.max_length=12", recipe_name=f"demo-{kind}")
    with serving(*runs) as address:
        yield opening(chromium, address)


@pytest.mark.parametrize(
    ("kind", "layers", "read"),
    [
        pytest.param("recurrent", 1, ["embedding × √d"], marks=pytest.mark.slow),
        ("convolutional", 2, ["embedding", "position", "sum"]),
    ],
)
def test_a_model_that_attends_to_its_source_alone_is_shown_with_that_alone(
    opened_kinds: Open, kind: str, layers: int, read: list[str]
) -> None:
    """An LSTM, convolutions: no self-attention, one head from target to source, no layers with
    numbers, and only what they read is told of the way."""
    with opened_kinds(f"{LOOK}&run={kind}") as page:
        looked(page)
        parts = page.get_by_role("group", name="Which attention").get_by_role("button")
        expect(parts).to_have_count(1)
        expect(parts).to_contain_text("Cross")
        heads = page.get_by_role("radio")
        expect(heads).to_have_count(2 * layers)  # of each the mean, and the one head
        heads.nth(1).click()
        expect(page.get_by_role("heading", name="Cross, layer 1, head 1")).to_be_visible()
        expect(page.get_by_label(re.compile("^Attention, Cross, layer 1, head 1"))).to_be_visible()
        way = page.locator("section", has_text="The way through")
        for side, told in (("source", "looked at by|Nothing looked"), ("target", "looked at")):
            page.locator(f".text.{side} .w").first.click()
            expect(page.locator(".told").first).to_contain_text(re.compile(told))
            expect(parts).to_have_attribute("aria-pressed", "true")
            expect(way.locator("canvas")).to_have_count(len(read))
        names = [*read[1:], "logits → softmax"]
        which = re.compile(f"^{read[0]} ?of “<s>”, which is read")
        expect(way.locator("tbody th")).to_have_text(["token numbers", which, *names])
        page.get_by_role("button", name="Switch this head off").click()
        looked(page)
        expect(page.get_by_text("Cross, layer 1, head 1 off")).to_be_visible()
        expect(page.get_by_role("alert")).to_have_count(0)
        accessible(page)


def test_what_if(opened: Open) -> None:
    """A word hidden, a head off, another continuation: the translation changes beside the old."""
    with opened(LOOK) as page:
        looked(page)
        before = translation(page)
        word(page, "target", "es").click()
        page.locator(".choices li button").filter(has_text="sie").first.click()
        looked(page)
        expect(page.locator(".new mark").first).to_have_text("sie")
        page.get_by_role("button", name="Take all back").click()
        looked(page)
        assert translation(page) == before
        word(page, "source", "tired.").click()
        page.get_by_role("button", name="Hide this word").click()
        looked(page)
        expect(page.locator(".text.source .gone")).to_have_count(1)
        expect(page.get_by_text(re.compile("How likely the model finds .* before"))).to_be_visible()
        assert "müde" not in translation(page), "nothing else tells how the animal feels"
        every = page.get_by_role("radio", name=re.compile(r"^Cross, layer \d+, head \d+$"))
        names = [head.get_attribute("aria-label") or "" for head in every.all()]
        assert len(names) >= 4
        for name in names:
            page.get_by_role("radio", name=name, exact=True).click()
            page.get_by_role("button", name="Switch this head off").click()
            expect(page.get_by_text(f"{name} off")).to_be_visible()
            looked(page)
        expect(page.locator(".new")).not_to_have_text(before)
        page.get_by_role("button", name="Take all back").click()
        looked(page)
        assert translation(page) == before


def test_where_the_plain_model_alone_differs_is_marked_and_said(opened: Open) -> None:
    own = {"text": "Das Tier schläft.", "place": 2}

    def answer(route: Route) -> None:
        told = route.fetch().json()
        route.fulfill(json=told if route.request.post_data_json["hidden"] else {**told, "own": own})

    with opened() as page:
        page.route("**/v1/look", answer)
        expect(page.locator("p.text")).to_have_attribute("data-status", "done")
        page.evaluate(f"location.hash = {LOOK!r}")
        looked(page)
        marked = page.locator(".text.target .own")
        expect(marked).to_have_count(1)
        expect(page.locator(".passage .note")).to_contain_text(own["text"])
        accessible(page)
        word(page, "source", "tired.").click()
        page.get_by_role("button", name="Hide this word").click()
        looked(page)
        expect(page.locator(".old")).to_have_text(own["text"])
        expect(page.get_by_text("in the plain model")).to_be_visible()
        expect(marked).to_have_count(0)


def test_the_beam_grows(opened: Open) -> None:
    with opened(LOOK) as page:
        looked(page)
        slider = page.get_by_role("slider", name="Step")
        last = int(slider.get_attribute("max") or 0)
        assert last >= 10
        slider.fill("1")
        page.locator("summary", has_text="What step 1 chose among").click()
        first = page.locator("section", has_text="The search").locator("tbody tr")
        expect(first.first.locator("td").first).to_have_text("Das")
        expect(first.first.locator("th")).to_have_text("<s>")
        assert first.filter(has_text="goes on").count() == 4, "a beam of four"
        page.get_by_role("button", name="Step on").click()
        expect(slider).to_have_value("2")
        expect(
            page.get_by_role("region", name=re.compile("Tree of the search at step 2"))
        ).to_be_visible()
        slider.fill(str(last - 1))
        page.get_by_role("button", name="Play").click()
        expect(slider).to_have_value(str(last))
        expect(page.get_by_role("button", name="Play")).to_be_visible()
        word(page, "target", "weil").click()
        expect(slider).to_have_value("8")
        columns = page.locator(".tree svg text").evaluate_all(
            "all => new Set(all.filter((one) => /^\\d+$/.test(one.textContent))"
            ".map((one) => one.textContent)).size"
        )
        assert columns > 8, "what follows the chosen step stays"
        page.locator(".choices li button").nth(1).click()
        looked(page)
        expect(page.get_by_text("You chose the first 8 pieces")).to_be_visible()
        slider.fill("1")
        assert first.count() > 4, "the tree begins where the search was free"
        assert int(slider.get_attribute("max") or 0) < last
        page.locator("select").filter(has_text="run's own").select_option("1")
        looked(page)
        expect(page.get_by_text("Greedy search")).to_be_visible()


def test_by_keyboard_alone(opened: Open) -> None:
    with opened(LOOK) as page:
        looked(page)
        page.locator(".text.target .w").first.focus()
        page.keyboard.press("ArrowRight")
        expect(page.locator(".text.target .w").nth(1)).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator(".text.target .w").nth(1)).to_have_attribute("aria-pressed", "true")
        page.get_by_role("radio", checked=True).focus()
        page.keyboard.press("ArrowRight")
        expect(page.get_by_role("radio", checked=True)).to_be_focused()
        frame = page.get_by_role("application")
        frame.focus()
        page.keyboard.press("ArrowDown")
        expect(page.locator(".foot .told").first).to_contain_text("→")
        page.keyboard.press("Enter")
        expect(page.locator('.w[aria-pressed="true"]')).to_have_count(1)


def test_text_is_never_html(opened: Open) -> None:
    hostile = "<img src=x onerror=alert(1)> <b>the dog</b> ▁ </s> &amp;"
    with opened(f"#look?text={quote(hostile)}") as page:
        looked(page)
        assert page.locator(".passage img, .passage b").count() == 0
        assert "onerror" in page.locator(".text.source").inner_text()


@in_every_look
def test_accessible(opened: Open, look: dict[str, Any]) -> None:
    with opened(LOOK, **look) as page:
        looked(page)
        accessible(page)
        page.locator(".text.target .w").nth(2).click()
        expect(page.locator(".choices li button").first).to_be_visible()
        for summary in page.locator(".look summary").all():
            summary.click()
        page.locator(".text.source .w").nth(1).click()
        page.locator(".acts button").click()
        looked(page)
        accessible(page)
        fits(page)


FRAMES = """async (moves) => {
  const words = [...document.querySelectorAll('.text.target .w')];
  const block = document.querySelector('.text.target');
  const times = [];
  let last = await new Promise(requestAnimationFrame);
  for (let i = 0; i < moves; i++) {
    const word = words[(i * 7) % words.length];
    word.dispatchEvent(new PointerEvent('pointerover', {bubbles: true, pointerType: 'mouse'}));
    if (i % 3 === 0) block.scrollTop = (i * 13) % block.scrollHeight;
    const now = await new Promise(requestAnimationFrame);
    times.push(now - last);
    last = now;
  }
  return times.slice(2).sort((a, b) => a - b);
}"""


@pytest.mark.slow  # a large model, and a minute's work of a page: it tells how long frames take
def test_five_hundred_tokens(opened_large: Open, capsys: pytest.CaptureFixture[str]) -> None:
    """Twelve layers of eight heads over 500 tokens on either side: all can be
    used; how long frames take is told."""
    sentences = [
        pair.source for pair in demo_corpus(train_pairs=120, dev_pairs=1, test_pairs=1).train
    ]
    text = ""
    while len(text.split()) < 400:
        text += sentences.pop() + " "
    with opened_large() as page:
        asked: list[int] = []
        page.on("response", lambda r: asked.append(int(r.headers.get("content-length", 0))))
        page.evaluate("location.hash = '#look'")
        page.get_by_role("textbox", name="Sentence to look into").fill(text)
        page.get_by_role("combobox", name="Sentence to look into").select_option("all")
        expect(page.locator(".text.target .w").nth(100)).to_be_visible(timeout=120_000)
        looked(page)
        page.get_by_role("button", name="Pieces").click()
        pieces = [page.locator(f".text.{side} .w").count() for side in ("source", "target")]
        assert min(pieces) >= 450, pieces
        expect(page.get_by_role("application")).to_be_visible()
        assert max(asked) < 2_000_000, "attention comes in small pieces"
        word = page.evaluate(FRAMES, 120)
        page.get_by_role("radio").nth(12).click()
        expect(page.get_by_role("application")).to_be_visible()
        chosen = page.evaluate(FRAMES, 60)
        page.locator(".text.target .w").nth(40).click()
        expect(page.locator(".choices li button").first).to_be_visible()
        assert page.get_by_role("radio").count() == 6 * 9
        slider = page.get_by_role("slider", name="Step")
        slider.fill("200")
        expect(page.get_by_role("region", name=re.compile("at step 200"))).to_be_visible()
        page.get_by_role("button", name="Zoom in").first.click()
        accessible(page)
        fits(page)
    with capsys.disabled():
        for name, times in (("mean of the heads", word), ("one head", chosen)):
            middle, late = times[len(times) // 2], times[int(len(times) * 0.95)]
            print(
                f"\n{pieces[0]} x {pieces[1]} tokens, {name}: half of the frames within "
                f"{middle:.1f} ms, 95 % within {late:.1f} ms, the slowest {times[-1]:.1f} ms",
                end="",
            )
