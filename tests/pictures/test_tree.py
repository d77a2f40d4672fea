from __future__ import annotations

import random
import re
from itertools import pairwise
from xml.etree import ElementTree

from random_trees import random_tree

from dragoman.forms.tree import Tree, read_trees
from dragoman.pictures.labels import text_width
from dragoman.pictures.tree import tree_svg, tree_text

SVG = "{http://www.w3.org/2000/svg}"
((_, CAT),) = read_trees(["(S (NP (DT The) (NN cat)) (VP (VBZ sleeps)))"])


def test_a_terminal_shows_it_from_left_to_right() -> None:
    assert tree_text(CAT).splitlines() == [
        "S", "├─ NP", "│  ├─ DT The", "│  └─ NN cat", "└─ VP ─ VBZ sleeps",
    ]  # fmt: skip
    bare = Tree("S", (Tree("XX", word="a"), Tree("X", (Tree("XX", word="b\x1b[2J"),))))
    assert tree_text(bare, "XX").splitlines() == ["S", "├─ a", "└─ X ─ b␛[2J"]


def test_its_words_stand_in_a_row_beside_each_other() -> None:
    draw = random.Random(2)
    trees = [random_tree(draw, draw.randint(1, 30)) for _ in range(20)]
    wide = Tree("S", (Tree("a-long-label", (Tree("XX", word="a"),)), Tree("XX", word="b")))
    for tree in [*trees, wide, wide.children[0]]:
        picture = ElementTree.fromstring(tree_svg(tree))
        texts = picture.findall(f"{SVG}text")
        lowest = max(float(text.get("y", "0")) for text in texts)
        row = [text for text in texts if float(text.get("y", "0")) == lowest]
        assert [text.text for text in row] == tree.words
        rows: dict[str | None, list[tuple[float, float]]] = {}
        for text in texts:
            x, half = float(text.get("x", "0")), text_width(text.text or "", 13) / 2
            rows.setdefault(text.get("y"), []).append((x - half, x + half))
            assert half <= x <= float(picture.get("width", "0")) - half
        for places in rows.values():
            places.sort()
            gaps = [begin - end for (_, end), (begin, _) in pairwise(places)]
            assert min(gaps, default=0) > -0.2, tree


def test_marked_brackets_are_underlined() -> None:
    drawn = ElementTree.fromstring(tree_svg(CAT, marked={2}))
    kinds = {text.text: text.get("class") for text in drawn.iter(f"{SVG}text")}
    assert (kinds["S"], kinds["NP"], kinds["VP"]) == ("f0", "f0", "f1"), "S is 0, NP 1, VP 2"
    (line,) = (path for path in drawn.iter(f"{SVG}path") if path.get("class") == "line s1")
    (label,) = (text for text in drawn.iter(f"{SVG}text") if text.text == "VP")
    left, y, right = map(float, re.findall(r"[\d.]+", line.get("d", "")))
    x, baseline = (float(label.get(name, "")) for name in ("x", "y"))
    assert left < x < right and baseline < y < baseline + 6
    assert "s1" not in {path.get("class") for path in ElementTree.fromstring(tree_svg(CAT)).iter()}


def test_what_the_words_hold_is_only_shown() -> None:
    drawn = tree_svg(Tree("X", (Tree("XX", word="<script>&\x00"),)), "XX")
    assert "<script>" not in drawn and "&lt;script&gt;&amp;␀" in drawn
    assert not re.search(r">XX<", drawn)
