"""HTML: what of it is text, and that tags keep their order, their nesting and their words."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from html import unescape

import numpy as np
import pytest
import torch
from bounded import bounded
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser, LexborNode
from serving_echo import TEXT, client_of, echo_run, served_by, tiny_model

from dragoman.documents.placing import Translated
from dragoman.documents.projection import Alignment, project
from dragoman.formats.html.document import HtmlDocument
from dragoman.formats.html.open_elements import FORMATTING, KEPT, NEVER, SHOWN
from dragoman.formats.units.document import Code, Target, Unit, target_of
from dragoman.forms.shown_words import piece_spans, words_of
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.settings import SearchSettings
from dragoman.serving.queue.fair_executor import FairExecutor
from dragoman.serving.service.served_run import ServedRun
from dragoman.tasks.translation.libretranslate import with_tags

TAG = re.compile(r"<[^>]*>")
WORDS = st.sampled_from(["Das", "Tier", "is", "müde.", "Where?", "3", "&amp;", " ", "\n "])
TAGS = st.sampled_from(
    ["<b>", "</b>", "<i class='x'>", "</i>", "<br>", "<img src=x>", "<p>", "</p>"]
)
DOCUMENTS = st.lists(WORDS | TAGS, max_size=14).map("".join)


def cut(source: str) -> HtmlDocument:
    document = HtmlDocument()
    for _ in document.reading(source):
        pass
    return document


def in_place(document: HtmlDocument) -> list[Target]:
    """The texts as their own translations."""
    return [running.as_it_is for running in document.texts]


def join(document: HtmlDocument, translations: Sequence[Sequence[str]]) -> str:
    """Each translation is cut at its tags: one part more than there are tags."""
    return document.join([target_of(parts) for parts in translations])


def shown(document: str) -> list[str]:
    return unescape(TAG.sub("", document)).split()


@given(st.text(alphabet="ab<>/!-\"'= &;\n", max_size=60) | st.text(max_size=30) | DOCUMENTS)
def test_any_string_is_markup_and_its_tags_are_kept(source: str) -> None:
    document = cut(source)
    again = cut(document.join(in_place(document)))
    assert again.texts == document.texts


def test_what_is_text_in_html() -> None:
    source = (
        '<p title="a > b">One <b>two</b> &amp; three</p><!-- no --><pre>no</pre>'
        '<code>no <i>no</i></code><span translate="no">no</span><script>"</p>" no</script>'
        "<div class='x notranslate'>no <div>no</div> no</div> five < six <hr> * <br>"
    )
    document = cut(source)
    assert [running.text for running in document.texts] == [
        "a > b",
        "One two & three",
        "five < six",
    ]
    assert [tag.written for tag in document.texts[1].tags] == ["<b>", "</b>"]
    joined = join(document, [["a > b"], ["<1> ", "2", " 3"], ["4"]])
    assert joined.startswith('<p title="a > b">&lt;1&gt; <b>2</b> 3</p><!-- no -->')
    assert joined.endswith("</div> 4 <hr> * <br>")
    assert joined.count("no") == source.count("no")


def test_what_is_kept_within_a_sentence_stands_apart_from_words() -> None:
    document = cut("Use <code>ls</code> now, (<var>x</var>)-fold.")
    (running,) = document.texts
    assert running.text == "Use now, ()-fold."
    assert join(document, [["Jetzt", " ", "-fach."]]) == "Jetzt <code>ls</code> <var>x</var>-fach."
    assert join(document, [["", "Jetzt (", ")"]]) == "<code>ls</code> Jetzt (<var>x</var>)"
    (written, named) = (cut(f"un <var>x</var>{letter}s").texts[0] for letter in ("é", "&eacute;"))
    assert named.tags == written.tags and not written.tags[0].apart_behind


@pytest.mark.parametrize(
    ("part", "times"),
    [
        *(
            (part, 300_000)
            for part in ("<a ", "<a '", "<!--", "&", "<", '<a b="', "</", "<a x='\"")
        ),
        *((part, 20_000) for part in ("<b>", "<p></b><i>")),
        ("x<code>", 8_000),
    ],
)
def test_hostile_html_takes_no_longer_than_it_is_long(part: str, times: int) -> None:
    """As many times as take some seconds at most, and minutes if each looked at all the others."""
    document = part * times
    with bounded(len(document)):
        cut(document)


# ---- as browsers see it: Lexbor, an HTML5 parser, says what is translated

BARE_TAGS = ["", "/", " /", ' href="x""', " x='translate=no'", " a=/", ' b="<b>"', "\n c = d"]
TITLES = [" title=O'Reilly", " alt='a \"b\" c' x", ' placeholder="d &amp; e&lt"', " title=' f '"]
MARKS = [
    " translate=no", ' TRANSLATE="No"', " translate=yes", " translate", "\ntranslate = 'no'",
    " class='x notranslate'", " class=notranslated", " x=1 x=2 translate=no translate=yes",
]  # fmt: skip
ODDITIES = [
    "<!-->", "<!--->", "<!-- x --!>", "<!-- a -- b -->", "<!", "<?php x ?>", "</ x>", "</>", "< ",
    "<!DOCTYPE html>", "<![CDATA[ x ]]>", "&lt;b&gt;", "<3 ", "<!--<!-->", "<!----!>", "-->",
    "<!--", "<script>", "</script >", "<a href='x",
]  # fmt: skip
BLOCKS = [
    "p", "div", "ul", "ol", "dl", "dt", "dd", "li", "table", "tbody", "tr", "td", "th", "caption",
    "h1", "h2", "section", "address", "hr", "br", "pre", "button", "object", "svg", "math",
    "script", "style", "title", "textarea", "template",
]  # fmt: skip
INLINE = sorted(FORMATTING - {"code"})


@st.composite
def pages(draw: st.DrawFn, marked: list[str], bare: list[str]) -> str:
    """Tags in any order; only those of ``marked`` say whether they are translated.

    A browser moves what stands in a block out of the ``<b>`` that began before it, once that ends:
    who marked both, and differently, gets another answer from us, who read on and never back.
    """
    own = st.sampled_from(marked)
    free = st.sampled_from(bare)
    written = draw(
        st.lists(
            st.just("#")
            | st.builds("<{}{}>".format, own, st.sampled_from(BARE_TAGS + TITLES + MARKS))
            | st.builds("<{}{}>".format, free, st.sampled_from(BARE_TAGS + TITLES))
            | st.builds("</{}>".format, own | free)
            | st.sampled_from(ODDITIES),
            max_size=24,
        )
    )
    return "".join(f" w{n} " if one == "#" else one for n, one in enumerate(written))


def seen_by_a_browser(source: str) -> tuple[set[str], set[str]]:
    """The words that are to be translated, and the values of attributes."""
    words: set[str] = set()
    values: set[str] = set()

    def walk(node: LexborNode, translates: bool) -> None:
        for inner in node.iter(include_text=True):
            if inner.tag == "-text":
                words.update(re.findall(r"w\d+", inner.text_content or "") if translates else ())
            elif inner.tag and inner.tag[0] not in "-!":
                attributes, own = inner.attributes, translates
                if "notranslate" in (attributes.get("class") or "").split():
                    own = False
                elif "translate" in attributes:
                    said = (attributes["translate"] or "").lower()
                    own = {"no": False, "yes": True, "": True}.get(said, own)
                elif inner.tag in KEPT:
                    walk(inner, False)
                    continue
                if own and inner.tag not in ("script", "style", "svg", "math"):
                    values.update(attributes.get(name) or "" for name in SHOWN)
                if inner.tag not in NEVER:
                    walk(inner, own)

    root = LexborHTMLParser(source).root
    if root is not None:
        walk(root, True)
    return words, values


@settings(max_examples=100)
@given(pages(BLOCKS, ["span"]) | pages(INLINE, ["p", "div", "li", "td", "table", "ul", "h1"]))
def test_what_is_translated_is_what_a_browser_says(source: str) -> None:
    document = cut(source)
    texts = [running.text for running in document.texts]
    words, values = seen_by_a_browser(source)
    assert {word for text in texts for word in re.findall(r"w\d+", text)} == words
    shown = {" ".join(value.split()) for value in values} - {""}
    assert {" ".join(text.split()) for text in texts} >= shown
    again = cut(document.join(in_place(document)))
    assert again.texts == document.texts


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("<a title=O'Reilly>one</a> <b>two</b>", ["O'Reilly", "one two"]),
        ('<a href="x"">one</a> <b>two</b>', ["one two"]),
        ("<p>one<script/>no</script> two<pre/>no</pre>three", ["one", "two", "three"]),
        ("<p>one <b title='translate=no'>two</b>", ["translate=no", "one two"]),
        ("one <!-->two<!-- no --!> three", ["one two three"]),
        ("<p translate=no>no<p>one<ul><li translate=no>no<li>two</ul>", ["one", "two"]),
        ("<div translate=no>no <b translate=yes>one</b> <p>no</p></div>two", ["one", "two"]),
        ("<code>no <i translate=yes>one</i></code>", ["one"]),
        ("<script><!-- <script> no </script> no --></script>one", ["one"]),
        ("<title>one <b> two</title>", ["one <b> two"]),
        ('<img alt="one"><input placeholder=two title="">', ["one", "two"]),
        ('<p translate=no title="no">no<img alt="no"><img translate=yes alt="one"></p>', ["one"]),
        ('<style title="no"></style><svg title="no"><text title="no">no</text></svg>', []),
        ("one <b unfinished", ["one"]),
        ("<b>one<svg><foreignObject></b>no</svg> two", ["one two"]),
    ],
)
def test_markup_that_browsers_accept(source: str, texts: list[str]) -> None:
    assert [running.text for running in cut(source).texts] == texts


def test_attributes_are_translated_in_their_place_and_quotes() -> None:
    source = """<img alt="a b" src='x'><p title='c'>one <i placeholder=d>two</i></p>"""
    document = cut(source)
    of_text = {"a b": 'A "&" B', "c": "it's", "d": "D E"}
    parts = [
        [of_text[running.text]] if running.text in of_text else ["ONE ", "TWO"]
        for running in document.texts
    ]
    assert join(document, parts) == (
        """<img alt="A &quot;&amp;&quot; B" src='x'><p title='it&#39;s'>ONE """
        """<i placeholder="D E">TWO</i></p>"""
    )


async def tagged(run: ServedRun, translated: list[Translated]) -> list[Target]:
    turns = FairExecutor("texts")
    targets = await with_tags(run, translated, turns, "me")
    turns.close()
    return targets


def divided(source: str, target: str, alignment: Alignment | None = None) -> str:
    """A sentence with tags and its translation, tokens aligned one to one -> HTML."""
    document = cut(source)
    (running,) = document.texts
    ids = [TEXT.encode([text])[0] for text in (running.text, target)]
    pieces = [TEXT.pieces(one) for one in ids]
    words = words_of(target, pieces[1], [0.0] * len(ids[1]))
    if alignment is None:
        alignment = np.eye(len(ids[1]), len(ids[0]))
    return join(document, [project(running.tags, running.text, pieces[0], words, alignment)])


@pytest.mark.parametrize(
    "source",
    [
        "Where <b>is</b> the bread?",
        "<i>A small</i> <b>man</b>, eats",
        "A <i>small <b>man</b></i> eats",
        "A<b> small </b>man eats",
        "Wo ist <a href='x?y=1&z'>das</a>, <!-- hm --> <img src=x>Brot?",
    ],
)
def test_equal_sentences_keep_their_tags_where_they_are(source: str) -> None:
    assert divided(source, cut(source).texts[0].text) in (
        source,
        source.replace("> <img", "><img"),  # of two spaces with nothing between them, one stays
    )


def test_tags_go_where_their_words_went() -> None:
    # Where is the bread? -> Das Brot is where?
    source, target = "Where is <b>the bread</b>?", "Das Brot is Where ?"
    ids = [TEXT.encode([text])[0] for text in ("Where is the bread?", target)]
    ends = piece_spans(TEXT.pieces(ids[0]), len("Where is the bread?"))
    alignment = np.zeros((len(ids[1]), len(ids[0])))
    words = words_of(target, TEXT.pieces(ids[1]), [0.0] * len(ids[1]))
    for word in words:
        begin = {"Das": 9, "Brot": 13, "is": 6, "Where": 0, "?": 18}[word.text]
        column = int(np.argmax(ends[:, 1] > begin))
        alignment[word.first : word.first + word.count, column] = 1
    assert divided(source, target, alignment) == "<b>Das Brot</b> is Where ?"


def test_an_element_does_not_begin_with_the_comma_of_the_word_before() -> None:
    source = "A man, <a href=x>Das Tier</a>, eats"
    target = "A man, Das Tier, eats"
    pieces = TEXT.pieces(TEXT.encode([target])[0])
    comma = pieces.index(",")
    alignment = np.eye(len(pieces))
    alignment[comma] = np.eye(len(pieces))[comma + 1]  # it looked at the word behind it
    assert divided(source, target, alignment) == source


@given(st.integers(0, 99))
def test_no_element_is_left_without_words_where_there_are_enough(seed: int) -> None:
    """Whatever the model looked at: also where it left the marked word out."""
    source, target = "A <i>small</i> <a href=x>man</a>, eats", "Das Brot, is müde."
    ids = [TEXT.encode([text])[0] for text in ("A small man, eats", target)]
    alignment = np.random.default_rng(seed).dirichlet([0.1] * len(ids[0]), size=len(ids[1]))
    alignment[:, 1:] *= seed % 2  # or it looked at the first word alone
    got = divided(source, target, alignment)
    inside = re.search(r"<i>(.*)</i>.*<a href=x>(.*)</a>", got)
    assert inside is not None and all(re.search(r"\w", part) for part in inside.groups()), got


@given(st.data())
def test_whatever_was_looked_at_tags_keep_their_order_and_words_theirs(data: st.DataObject) -> None:
    source = data.draw(DOCUMENTS)
    for running in cut(source).texts:
        target = data.draw(st.sampled_from(["Das Tier.", "x", "A small man eats, a dinosaur!", ""]))
        ids = [TEXT.encode([text])[0] for text in (running.text, target)]
        seed = data.draw(st.integers(0, 99))
        alignment = np.random.default_rng(seed).dirichlet([0.1] * len(ids[0]), size=len(ids[1]))
        words = words_of(target, TEXT.pieces(ids[1]), [0.0] * len(ids[1]))
        parts = project(running.tags, running.text, TEXT.pieces(ids[0]), words, alignment)
        assert len(parts) == len(running.tags) + 1 and "".join(parts) == target


@given(DOCUMENTS)
def test_a_document_keeps_every_tag_and_its_sentences_are_translated_whole(source: str) -> None:
    """The echo translates each sentence into itself, so all must come back as it was shown."""

    async def check() -> None:
        document, run = cut(source), echo_run()
        passages = run.engine.cut([r.text for r in document.texts], whole=False)
        translated = [
            Translated(
                running,
                passage,
                [
                    Hypothesis(tuple(ids), 0.0, 0.0, (0.0,) * (len(ids) + 1), True)
                    for ids in (piece.values[:-1] for piece in passage.pieces)
                ],
                run.engine.source,
            )
            for running, passage in zip(document.texts, passages, strict=True)
        ]
        targets = await tagged(run, translated)
        got = document.join(targets)
        assert TAG.findall(got) == TAG.findall(source)
        assert "".join(shown(got)) == "".join(shown(source))
        for one, passage in zip(targets, passages, strict=True):
            assert "".join(filter(lambda piece: isinstance(piece, str), one)) == passage.join(
                [piece.text for piece in passage.pieces]
            )

    asyncio.run(check())


def test_a_page_comes_back_with_its_tags() -> None:
    source = (
        "<h1>Wo ist das Brot?</h1>\n<p>A <b>small</b> man eats a <i>dinosaur</i>.  "
        "<a href='x'>Das Tier</a> ist müde.</p><ul><li>the bread<li><b>Brot</b></ul>"
    )

    async def check() -> None:
        async with client_of() as client:
            body = {"q": source, "source": "en", "target": "de", "format": "html"}
            got = (await client.post("/translate", json=body)).json()["translatedText"]
            assert got == source

    asyncio.run(check())


def test_alignment_is_the_models_own_attention_whoever_is_beside() -> None:
    served = served_by(tiny_model(), search=SearchSettings())
    pairs = [([5, 6, 7], [8, 9]), (list(range(3, 40)), list(range(50, 70))), ([4], [3, 3, 3])]

    async def check() -> None:
        together = await served.align(pairs, "me")
        for pair, found in zip(pairs, together, strict=True):
            (alone,) = await served.align([pair], "me")
            assert found.shape == (len(pair[1]), len(pair[0]))
            assert np.allclose(found, alone, atol=1e-5)
            assert (found >= 0).all() and (found.sum(axis=1) <= 1 + 1e-5).all()
        assert await served.align([], "me") == []

        await served.close()

    asyncio.run(check())
    assert torch.is_grad_enabled()


def test_tokens_that_do_not_spell_the_text_are_shared_out() -> None:
    words = words_of(" Das  Tier schläft.", ["▁x"] * 5, [-1.0, -2.0, -3.0, -4.0, -5.0, -6.0])
    assert "".join(word.before + word.text for word in words) == " Das  Tier schläft."
    assert [word.text for word in words] == ["Das", "Tier", "schläft."]
    assert [(word.first, word.count) for word in words] == [(0, 1), (1, 1), (2, 3)]
    assert [word.log_probability for word in words] == [-1.0, -2.0, -12.0]
    few = words_of("a b c d e f", ["▁x"] * 2, [-1.0, -1.0])
    assert [(word.before, word.text, word.count) for word in few] == [
        ("", "a b c d", 1), (" ", "e f", 1),
    ]  # fmt: skip
    (nothing,) = words_of("", ["▁x"], [-1.0])
    assert (nothing.text, nothing.count) == ("", 1)


def test_tags_between_sentences_stay_between_them() -> None:
    running = Unit(
        "Wo? Da.", (Code(3, "</b>", closes=True), Code(4, "<i>"), Code(6, "</i>", closes=True))
    )
    run = echo_run()
    (passage,) = run.engine.cut([running.text], whole=False)
    assert len(passage.pieces) == 2
    found = [
        Hypothesis(tuple(TEXT.encode([t])[0].tolist()), 0.0, 0.0, (0.0,) * 9, True)
        for t in ("Where?", "is.")
    ]
    (target,) = asyncio.run(tagged(run, [Translated(running, passage, found, run.engine.source)]))
    assert target == ["Where?", 0, " ", 1, "is", 2, "."]
