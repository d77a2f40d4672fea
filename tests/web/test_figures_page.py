"""The tab Figures in a real browser: every figure, its sliders, captions in both languages."""

from __future__ import annotations

import re
from typing import Any

import pytest
from opening import Open, accessible, fits, in_every_look, opening
from playwright.sync_api import Browser, Page, Route, expect

from dragoman.insight.figures.captions import captions

FORMULA = r"[QKV]|\d: .*|PE.*|n = .*"
NAMED = ".panels :is(th, td, .axis, .title, .unit, .legend), .panels .chart text, .note, .from cite"
SENTENCES = {
    "order": "td", "length-penalty": "td", "pronoun": ".note",
    **{f"attention-{part}": ".note" for part in ("encoder", "decoder", "cross")},
}  # fmt: skip
"""Where sentences stand among them."""
KEPT = re.compile(
    r"“.*”|Attention Is All You Need|Michel et al\.|Och and Ney|Wu et al\.|MultiHead.*|LayerNorm.*"
    r"|ULMFiT|BERT|GPT|[GT]PU"
    r"|softmax|QKT|cos|Concat|log P|CSV|LSTM|d_model|AER|masking out.*|mapping a query.*|demo|nat\b"
)
"""What is the same in both languages."""
SLOW = {"cost", "cost-length"}
"""They time layers on the machine they are shown on."""
OF_FILES = {
    "picture-reading": "이미지의 패치를 보여 줍니다. 이 transformer 모델은 이미지를 읽지 않습니다.",
    "picture-rollout": "이미지의 패치를 보여 줍니다. 이 transformer 모델은 이미지를 읽지 않습니다.",
    "picture-positions": "패치의 학습된 위치 임베딩을 보여 줍니다.",
    "ctc-spikes": "녹음 위에 CTC를 보여 줍니다. 이 transformer 모델은 CTC를 배우지 않았습니다.",
    "band-heads": "주파수 대역을 나누어 보는 헤드를 보여 줍니다.",
}
"""What is said of these beside a translator."""


@pytest.fixture
def opened(chromium: Browser, address: str) -> Open:
    return opening(chromium, address)


def shown(page: Page) -> None:
    expect(page.locator("article")).to_have_attribute("aria-busy", "false")


def plain(title: str) -> str:
    """A title as its letters are read where the page sets its formulas."""
    return title.replace("√d_k", "dk")


def test_every_figure_is_drawn(opened: Open) -> None:
    """In Korean, where a title that has no translation shows."""
    with opened("#figures", language="ko") as page:
        shown(page)
        expect(page.get_by_role("heading", name="위치 인코딩: 사인과 코사인")).to_be_visible()
        links = page.locator("nav a")
        assert links.count() == len(captions())
        for name, words in captions().items():
            if name in SLOW:
                continue
            page.locator("nav details").evaluate_all("all => all.forEach((one) => one.open = true)")
            page.locator(f"nav a[href$='figure={name}']").click()
            expect(page.locator("article h2")).to_have_text(plain(words.title.korean))
            shown(page)
            if name in OF_FILES:
                expect(page.locator("p.remark")).to_contain_text(OF_FILES[name])
                continue
            if name == "position-learned":
                expect(page.locator(".command")).to_contain_text("dragoman figure position-learned")
                page.get_by_role("button", name="복사").click()
                copied = page.evaluate("navigator.clipboard.readText()")
                assert copied == "dragoman figure position-learned"
                continue
            drawn = page.locator(".panels :is(canvas, svg, table)")
            assert drawn.count() >= 1, name
            assert words.text.korean[-8:] in page.locator(".caption").inner_text()
            # Not their inner texts: those break lines inside a formula.
            for title in page.locator(".panels :is(figcaption, caption)").all_text_contents():
                first = title.strip()
                assert re.search("[가-힣]", first) or re.fullmatch(FORMULA, first), first
            sentences = page.locator(SENTENCES.get(name, "no-such")).all_text_contents()
            english = [
                text
                for text in page.locator(NAMED).all_text_contents()
                if not re.search("[가-힣]", text) and re.search("[A-Za-z]{3}", KEPT.sub("", text))
            ]
            assert set(english) <= set(sentences), (name, english)


def test_another_encoding_keeps_the_sizes_that_it_can_have(opened: Open) -> None:
    with opened("#figures?figure=position-sinusoidal") as page:
        shown(page)
        expect(page.locator(".encodings button")).to_have_text(
            ["index", "index ÷ length", "binary", "sines"]
        )
        dimensions = page.get_by_role("slider", name="dimensions")
        expect(dimensions).to_have_attribute("aria-valuetext", "512")
        for button, formula in (("index", "PE(pos) = pos"), ("sines", "positions 0–127, 128")):
            page.get_by_role("button", name=button, exact=True).click()
            expect(page.locator(".panels figcaption").first).to_contain_text(formula)
            expect(dimensions).to_have_attribute("aria-valuetext", "128")
            length = page.get_by_role("slider", name="length")
            expect(length).to_have_attribute("aria-valuetext", "128")


def test_the_list_of_figures_is_the_server_s(opened: Open) -> None:
    """What is about what, and which take a sentence, the page does not know by their names."""

    def answer(route: Route) -> None:
        told = route.fetch().json()
        for one in told["figures"]:
            one["group"] = "attention" if one["name"] == "timeline" else "training"
            one["sentence"] = "first" if one["name"] == "scale" else None
            one["encoding"] = None
        told["figures"].reverse()
        route.fulfill(json=told)

    with opened("#figures?figure=lookup") as page:
        page.route("**/v1/figures?*", answer)
        page.reload()
        shown(page)
        groups = page.locator("nav ul")
        expect(page.locator("nav summary")).to_have_text(
            ["Attention", "Cost, training, decoding", "Not of this run"]
        )
        expect(groups.first.locator("a")).to_have_text([captions()["timeline"].title.english])
        expect(page.get_by_label("Sentence")).to_have_count(0)
        page.locator("nav a[href$='figure=scale']").click()
        shown(page)
        expect(page.get_by_label("Sentence")).to_have_count(1)
        expect(page.locator(".encodings")).to_have_count(0)


def test_sliders_compute_anew(opened: Open) -> None:
    with opened("#figures?figure=position-sinusoidal") as page:
        shown(page)
        title = page.locator(".panels figcaption").first
        expect(title).to_contain_text("positions 0–127, 512 dimensions")
        page.get_by_role("slider", name="dimensions").fill("3")
        expect(title).to_contain_text("16 dimensions")
        page.get_by_role("slider", name="length").focus()
        page.keyboard.press("Home")
        expect(title).to_contain_text("positions 0–3, 16 dimensions")
        places = page.locator(".chart svg text[text-anchor=middle]")
        expect(places).to_have_text(["0", "1", "2", "3"])
        page.get_by_role("button", name="index", exact=True).click()
        shown(page)
        expect(page.get_by_role("slider", name="dimensions")).to_have_attribute(
            "aria-valuetext", "16"
        )
        expect(page.locator(".panels figcaption").first).to_contain_text("PE(pos) = pos")
        page.get_by_role("application").first.focus()
        page.keyboard.press("ArrowDown")
        expect(page.locator(".foot .told").first).to_contain_text("→")
        page.wait_for_url("**dimension=16**")
        page.reload()
        shown(page)
        expect(page.get_by_role("slider", name="dimensions")).to_have_attribute(
            "aria-valuetext", "16"
        )
        page.go_back()
        expect(page.locator(".panels figcaption").first).to_contain_text("positions 0–3")


@pytest.mark.parametrize(
    ("name", "slider", "place", "told"),
    [
        ("temperature", "temperature", "19", "T = 2"),
        ("length-penalty", "α", "20", "α = 1"),
        ("heads", "heads", "1", "trained with 4 heads"),
        ("attention-cross", "head", "2", ", head 2"),
    ],
)
def test_sliders_of_a_run(opened: Open, name: str, slider: str, place: str, told: str) -> None:
    with opened(f"#figures?figure={name}") as page:
        shown(page)
        if name in ("temperature", "length-penalty"):  # which look for a sentence of their own
            field = page.get_by_label("Sentence")
            expect(field).to_have_attribute("placeholder", "Type a sentence…")
        page.get_by_role("slider", name=slider).fill(place)
        shown(page)
        expect(page.locator("article")).to_contain_text(told)


def test_ones_own_sentence_and_numbers(opened: Open) -> None:
    with opened("#figures?figure=attention-encoder") as page:
        shown(page)
        page.get_by_label("Sentence").fill("The small cat sees <b>it</b>.")
        page.get_by_role("button", name="Show", exact=True).click()
        shown(page)
        expect(page.locator(".remark").first).to_contain_text("The small cat sees <b>it</b>.")
        with page.expect_download() as download:
            page.get_by_role("button", name="Numbers (CSV)").click()
        assert download.value.suggested_filename == "attention-encoder.csv"
        header = download.value.path().read_text(encoding="utf-8").splitlines()[0]
        assert header == "layer,head,row,looking,column,looked at,weight"


@in_every_look
def test_accessible(opened: Open, look: dict[str, Any]) -> None:
    with opened("#figures", **look) as page:
        for name in ("position-binary", "four-steps", "pronoun", "attention-cross"):
            page.evaluate("where => { location.hash = where; }", f"figures?figure={name}")
            title = captions()[name].title
            written = title.korean if look["language"] == "ko" else title.english
            expect(page.locator("article h2")).to_have_text(plain(written))
            shown(page)
            expect(page.locator(".panels")).to_be_visible()
            accessible(page)
            fits(page)
            if look["language"] == "ko":
                assert re.search("[가-힣]{2}", page.locator(".caption").inner_text())
