"""The report page and the card: whole, closed to the outside, and safe from what data contains."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np

from dragoman.forms.tree import Tree
from dragoman.pictures.card import card_markdown
from dragoman.pictures.records import (
    AttentionRecord,
    Chart,
    Hops,
    RunSummary,
    Series,
    ShownSample,
    ShownScore,
    Table,
    TreePair,
)
from dragoman.pictures.report import report_html

EVIL = "</script><script>alert(1)</script><img src=https://evil.example/x onerror=alert(1)>'\"&\x00"
VOID = {"meta", "link", "br", "img", "input", "hr"}


def record(layers: int = 2, heads: int = 2) -> AttentionRecord:
    rng = np.random.default_rng(0)
    source, target = ("it", "works", EVIL), ("es", "geht")

    def weights(rows: int, columns: int) -> np.ndarray:
        return rng.dirichlet(np.ones(columns), (layers, heads, rows)).astype(np.float32)

    return AttentionRecord(source, target, weights(3, 3), weights(2, 2), weights(2, 3))


def summary() -> RunSummary:
    first = record()
    hops = Hops(
        first.source, first.target, 0, 0, first.cross[0, 0, 0], first.encoder[0, 0, 0], EVIL, EVIL
    )
    return RunSummary(
        name=EVIL,
        languages=("en", EVIL),
        notice=EVIL,
        facts=((EVIL, EVIL),),
        scores=(ShownScore("BLEU", 36.44, EVIL, f"nrefs:1|{EVIL}"),),
        samples=(
            ShownSample("A b.", "Der alte Mann", "Der junge Mann"),
            ShownSample(EVIL, EVIL, EVIL),
            ShownSample("empty", "", "etwas"),
            *(ShownSample(f"s{i}", "x") for i in range(10)),
        ),
        charts=(Chart(EVIL, (Series(EVIL, (1, 2), (3, 4)),)),),
        hops=(hops,),
        attention=(first, record()),
        data=(Table(EVIL, ("filter", "dropped"), ((EVIL, 12345), ("empty", 0)), EVIL),),
        recipe=f"# note\n[model]\nname = '{EVIL}'\n",
        machine=((EVIL, EVIL),),
        limits=(EVIL,),
        made_by=EVIL,
    )


class Page(HTMLParser):
    """Reads a page strictly: every tag that opens must close in its place."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.scripts: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1] == tag, f"</{tag}> closes <{self.open[-1]}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        elif not self.open or self.open[-1] != "style":
            self.text += data


def test_page_is_well_formed_and_text_stays_text() -> None:
    html = report_html(summary())
    page = Page(html)
    assert len(page.scripts) == 2  # the records and our own
    assert not set("<>&") & set(page.scripts[0])
    assert "alert" not in page.scripts[1]
    assert not any(name.startswith("on") for _, name, _ in page.attributes)
    assert not any(tag == "img" for tag, _, _ in page.attributes)
    assert EVIL.replace("\x00", "␀") in page.text
    html.encode("utf-8")
    assert not re.search(r"[\x00-\x08\x0b-\x1f]", html)


def test_page_asks_nothing_of_any_server() -> None:
    html = report_html(summary())
    page = Page(html)
    for tag, name, value in page.attributes:
        if name in ("src", "href", "action", "srcset", "data", "poster"):
            assert value.startswith("data:"), (tag, name, value)
    for style in re.findall(r"<style>(.*?)</style>", html, re.S):
        assert "url(" not in style
        assert "@import" not in style
    policy = next(value for tag, name, value in page.attributes if value.startswith("default-src"))
    assert policy.startswith("default-src 'none'")
    script = page.scripts[1]
    assert not re.search(r"https?:|fetch\(|XMLHttpRequest|import\(|innerHTML|eval\(", script)


def test_page_carries_the_weights_for_its_script() -> None:
    page = Page(report_html(summary()))
    records = json.loads(page.scripts[0])
    assert records[0]["asked"] == 0  # the word of the hops
    packed = records[1]["cross"]
    weights = np.frombuffer(base64.b64decode(packed["weights"]), np.uint8) / 255
    shape = [packed[name] for name in ("layers", "heads", "rows", "columns")]
    np.testing.assert_allclose(weights.reshape(shape), record().cross, atol=0.5 / 255 + 1e-7)


def test_too_many_weights_leave_only_the_means() -> None:
    big = np.full((1, 12, 300, 300), 1 / 300, np.float32)
    long = AttentionRecord(["w"] * 300, ["w"] * 300, big, big, big)
    html = report_html(replace(summary(), attention=(long,), hops=()))
    assert json.loads(Page(html).scripts[0])[0]["encoder"]["heads"] == 1
    assert len(html) < 1_000_000


def test_what_differs_from_the_reference_is_marked() -> None:
    html = report_html(summary())
    assert "Der <mark>alte</mark> Mann" in html
    assert "1 of 3 are word for word the reference" in html
    assert "5 more" in html
    korean = replace(summary(), samples=(ShownSample("a", "我是老師", "我是學生"),))
    assert "我是<mark>老師</mark>" in report_html(korean)


def test_trees_are_drawn_beside_each_other() -> None:
    leaf = Tree("XX", word=EVIL)
    wanted, given = Tree("S", (Tree("NP", (leaf,)),)), Tree("S", (Tree("VP", (leaf,)),))
    same = ShownSample("b", str(wanted), str(wanted), TreePair(wanted, wanted, {}, {}, "XX"))
    other = ShownSample("a", str(given), str(wanted), TreePair(wanted, given, {1}, {1}, "XX"))
    html = report_html(replace(summary(), samples=(other, same), hops=(), charts=()))
    page = Page(html)
    assert "1 of 2 have every bracket" in page.text and "word for word" not in page.text
    assert "(NP" not in page.text and page.text.count("the same brackets") == 1
    drawn = html[html.index("<h2>What it writes") :].split("<svg ")[1:5]
    marked = [re.findall(r'class="f1" [^>]*>(\w+)<', one) for one in drawn]
    assert marked == [["NP"], ["VP"], [], []]
    assert ">XX<" not in html


def test_a_run_of_no_known_language_is_titled_by_its_name() -> None:
    run = replace(summary(), name="wsj", languages=("und",))
    html, card = report_html(run), card_markdown(run)
    assert "<title>wsj</title>" in html and html.count("<h1>wsj</h1>") == 1
    assert 'class="eyebrow"' not in html and "\n# wsj\n" in card
    assert "- und" not in card
    known = replace(run, languages=("und", "en"))
    assert "<h1>und → en</h1>" in report_html(known) and "\n# wsj: und → en\n" in card_markdown(
        known
    )


def test_languages_are_named_for_screen_readers_only_if_they_are_codes() -> None:
    page = Page(report_html(summary()))
    assert {value for _, name, value in page.attributes if name == "lang"} == {"en"}


def test_scores_come_with_their_signature_and_numbers_are_set_apart() -> None:
    page = Page(report_html(summary()))
    assert "36.4" in page.text
    assert "nrefs:1|" in page.text
    assert "12,345" in page.text


def test_a_run_that_has_nothing_yet_has_a_page_and_a_card() -> None:
    bare = RunSummary("run", ("en", "de"))
    page = Page(report_html(bare))
    assert "en → de" in page.text
    assert not page.scripts
    assert len(report_html(bare)) < 20_000
    assert card_markdown(bare).startswith("---\n")


def test_a_usual_page_is_small() -> None:
    assert len(report_html(summary())) < 60_000


def test_card_keeps_text_out_of_the_markup() -> None:
    card = card_markdown(summary())
    outside = re.sub(r"(?ms)^(`{3,})\w*$.*?^\1$", "", card)
    assert "alert" in outside
    assert not re.search(r"(?<!\\)<", outside.split("\n---\n", 1)[1])
    header = card.split("\n---\n")[0]
    assert "language:\n- en" in header
    assert "36.44" in card
    fenced = card_markdown(replace(summary(), samples=(ShownSample("````\n# x", "y"),)))
    assert "`````text" in fenced
