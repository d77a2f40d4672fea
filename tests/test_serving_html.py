"""HTML: what of it is text, and that tags keep their order, their nesting and their words."""

from __future__ import annotations

import asyncio
import re
from html import unescape
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from serving_echo import TEXT, client_of, echo_run, tiny_model

from dragoman.search.hypothesis import Hypothesis
from dragoman.serving.aligner import Aligner
from dragoman.serving.markup import Markup, Running, Tag
from dragoman.serving.passage import cut
from dragoman.serving.tag_projection import Alignment, project, spans
from dragoman.serving.tagged import Translated, with_tags
from dragoman.serving.words import words_by_spaces, words_of

TAG = re.compile(r"<[^>]*>")
WORDS = st.sampled_from(["Das", "Tier", "is", "müde.", "Where?", "3", "&amp;", " ", "\n "])
TAGS = st.sampled_from(
    ["<b>", "</b>", "<i class='x'>", "</i>", "<br>", "<img src=x>", "<p>", "</p>"]
)
DOCUMENTS = st.lists(WORDS | TAGS, max_size=14).map("".join)


def in_place(markup: Markup) -> list[list[str]]:
    """The texts as their own translations, cut at their tags."""
    parts = []
    for running in markup.texts:
        edges = [0, *(tag.place for tag in running.tags), len(running.text)]
        parts.append([running.text[a:b] for a, b in pairwise(edges)])
    return parts


def shown(document: str) -> list[str]:
    return unescape(TAG.sub("", document)).split()


@given(st.text(alphabet="ab<>/!-\"'= &;\n", max_size=60) | st.text(max_size=30) | DOCUMENTS)
def test_any_string_is_markup_and_its_tags_are_kept(source: str) -> None:
    markup = Markup.cut(source)
    again = Markup.cut(markup.join(in_place(markup)))
    assert again.texts == markup.texts


def test_what_is_text_in_html() -> None:
    source = (
        '<p title="a > b">One <b>two</b> &amp; three</p><!-- no --><pre>no</pre>'
        '<code>no <i>no</i></code><span translate="no">no</span><script>"</p>" no</script>'
        "<div class='x notranslate'>no <div>no</div> no</div> five < six <hr> * <br>"
    )
    markup = Markup.cut(source)
    assert [running.text for running in markup.texts] == ["One two & three", "five < six"]
    assert [tag.written for tag in markup.texts[0].tags] == ["<b>", "</b>"]
    joined = markup.join([["<1> ", "2", " 3"], ["4"]])
    assert joined.startswith('<p title="a > b">&lt;1&gt; <b>2</b> 3</p><!-- no -->')
    assert joined.endswith("</div> 4 <hr> * <br>")
    assert joined.count("no") == source.count("no")


def test_what_is_kept_within_a_sentence_stands_apart_from_words() -> None:
    markup = Markup.cut("Use <code>ls</code> now, (<var>x</var>)-fold.")
    (running,) = markup.texts
    assert running.text == "Use now, ()-fold."
    assert markup.join([["Jetzt", " ", "-fach."]]) == "Jetzt <code>ls</code> <var>x</var>-fach."
    assert markup.join([["", "Jetzt (", ")"]]) == "<code>ls</code> Jetzt (<var>x</var>)"


@pytest.mark.parametrize(
    "part", ["<a ", "<a '", "<!--", "&", "<", '<a b="', "</", "<a x='\"", "<b>", "x<b>", "<code>"]
)
def test_hostile_html_takes_no_longer_than_it_is_long(part: str) -> None:
    Markup.cut(part * 20_000)  # quadratic time would be minutes


def divided(source: str, target: str, alignment: Alignment | None = None) -> str:
    """A sentence with tags and its translation, tokens aligned one to one -> HTML."""
    markup = Markup.cut(source)
    (running,) = markup.texts
    ids = [TEXT.encode([text])[0] for text in (running.text, target)]
    pieces = [TEXT.pieces(one) for one in ids]
    words = words_of(target, pieces[1], [0.0] * len(ids[1]))
    if alignment is None:
        alignment = np.eye(len(ids[1]), len(ids[0]))
    return markup.join([project(running.tags, running.text, pieces[0], words, alignment)])


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
    # Of two spaces with nothing shown between them, one stays.
    assert divided(source, Markup.cut(source).texts[0].text) == source.replace("> <img", "><img")


def test_tags_go_where_their_words_went() -> None:
    # Where is the bread? -> Das Brot is where?
    source, target = "Where is <b>the bread</b>?", "Das Brot is Where ?"
    ids = [TEXT.encode([text])[0] for text in ("Where is the bread?", target)]
    ends = spans(TEXT.pieces(ids[0]), len("Where is the bread?"))
    alignment = np.zeros((len(ids[1]), len(ids[0])))
    words = words_of(target, TEXT.pieces(ids[1]), [0.0] * len(ids[1]))
    for word in words:
        begin = {"Das": 9, "Brot": 13, "is": 6, "Where": 0, "?": 18}[word.text]
        column = int(np.argmax(ends[:, 1] > begin))
        alignment[word.first : word.first + word.count, column] = 1
    assert divided(source, target, alignment) == "<b>Das Brot</b> is Where ?"


@given(st.data())
def test_whatever_was_looked_at_tags_keep_their_order_and_words_theirs(data: st.DataObject) -> None:
    source = data.draw(DOCUMENTS)
    for running in Markup.cut(source).texts:
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
        markup, run = Markup.cut(source), echo_run()
        passages = cut(
            [r.text for r in markup.texts], TEXT, language="en", into="de", longest=99, whole=False
        )
        translated = [
            Translated(
                running,
                passage,
                [
                    Hypothesis(tuple(ids), 0.0, 0.0, (0.0,) * (len(ids) + 1), True)
                    for ids in (piece.ids[:-1].tolist() for piece in passage.pieces)
                ],
            )
            for running, passage in zip(markup.texts, passages, strict=True)
        ]
        parts = await with_tags(run, translated)
        got = markup.join(parts)
        assert TAG.findall(got) == TAG.findall(source)
        assert "".join(shown(got)) == "".join(shown(source))
        for one, passage in zip(parts, passages, strict=True):
            assert "".join(one) == passage.join([piece.text for piece in passage.pieces])

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
            assert got == source.replace(".  ", ". ")

    asyncio.run(check())


def test_alignment_is_the_models_own_attention_whoever_is_beside() -> None:
    model = tiny_model()
    aligner = Aligner(model, bos=TEXT.bos, eos=TEXT.eos)
    pairs = [([5, 6, 7], [8, 9]), (list(range(3, 40)), list(range(50, 70))), ([4], [3, 3, 3])]

    async def check() -> None:
        together = await aligner.align(pairs)
        for pair, found in zip(pairs, together, strict=True):
            (alone,) = await aligner.align([pair])
            assert found.shape == (len(pair[1]), len(pair[0]))
            assert np.allclose(found, alone, atol=1e-5)
            assert (found >= 0).all() and (found.sum(axis=1) <= 1 + 1e-5).all()
        assert await aligner.align([]) == []

    asyncio.run(check())
    aligner.close()
    assert torch.is_grad_enabled()


def test_tokens_that_do_not_spell_the_text_are_shared_out() -> None:
    words = words_by_spaces(" Das  Tier schläft.", 5)
    assert "".join(word.before + word.text for word in words) == " Das  Tier schläft."
    assert [word.text for word in words] == ["Das", "Tier", "schläft."]
    assert all(word.first >= 0 and word.first + word.count <= 5 for word in words)
    assert all(word.count > 0 for word in words_by_spaces("a b c d e f", 2))


def test_tags_between_sentences_stay_between_them() -> None:
    running = Running(
        "Wo? Da.", (Tag(3, "</b>", closes=True), Tag(4, "<i>"), Tag(6, "</i>", closes=True))
    )
    (passage,) = cut([running.text], TEXT, language="en", into="de", longest=99, whole=False)
    assert len(passage.pieces) == 2
    found = [
        Hypothesis(tuple(TEXT.encode([t])[0].tolist()), 0.0, 0.0, (0.0,) * 9, True)
        for t in ("Where?", "is.")
    ]
    (parts,) = asyncio.run(with_tags(echo_run(), [Translated(running, passage, found)]))
    assert parts == ["Where?", " ", "is", "."]
