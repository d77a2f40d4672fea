"""Constructions that must not come back to what people read, each with its reason.

They are those of a text that was translated in the head: English readers stumble over them.
"""

from __future__ import annotations

import ast
import re
import runpy
from functools import cache
from pathlib import Path

import pytest

from dragoman.cli.app import PANELS
from dragoman.cli.data import GROUP

ROOT = Path(__file__).parents[2]
RECORDS = {"results.md", "experiments.md"}
"""What was written down once; each has a summary in plain words on top."""

NOT_SO = {
    r"\basked of\b": "an inversion: say who does what (“the server checks …”)",
    r"\bof one's own\b": "say “your”",
    r"\btook the place of\b": "say “replaced”",
    r"\bin the place of\b": "say “instead of”",
    r"\bmay be given again\b": "say “May be repeated.”",
    r"\bif (?:not said|none is said)\b": "say “Default: …”",
    r"\b(?:is|are) (?:then )?told where\b": "say what the message names",
    r"\bat (?:most|least) so many\b|(?<![a-z,] )So many \w": "say “this many”, “the most”",
    r"\bbehind one another\b": "say “in a row”, or leave it out",
    r"\bas it (?:was|is) there\b": "a riddle: name the thing",
    r"\b[Ww]ho(?:ever)? (?:asks|installs|looks inside|has read)\b": "name the client, or say “you”",
    r"\bpassed over\b": "say “skipped”, or “ignored”",
    r"\bthe others? (?:are|is) asked again\b": "say “computed again”",
    r"\bstands? beside it what\b": "an inversion",
}


PLAIN = (
    "README", "CHANGELOG", "SECURITY", "index", "install", "first-translator", "training",
    "translate", "look", "tasks", "coming-from", "machines", "measure", "how-it-is-built", "expect",
    "glossary", "questions", "sources", "label-pictures", "label-recordings", "text-in-pictures",
    "transcribe", "painting", "boxes", "documents", "labels", "tags", "trees", "serve", "http-api",
    "page", "scale", "language-models", "masked-models", "files", "processes", "python", "recipes",
    "korean",
)  # fmt: skip
"""Pages that keep to more than the others, as do those of ``docs/decisions/``."""
DECISIONS = tuple(
    f"decisions/{path.stem}" for path in sorted((ROOT / "docs" / "decisions").glob("*.md"))
)

DIALECT = {
    r"\bbeside\b": "say “next to”, “compared with”, or “besides”",
    r"\banew\b": "say “again”, or leave it out",
    r"\b(?:is|are|be) told\b": "say what the message names, or “described”",
    r"\blies? (?:in|on)\b": "say “is in”",
    r"\bstands? (?:in|on|there)\b": "say “is in”, “depends on”",
    r"\b(?:is|are) named, and\b": "say “the message names …”",
    r"\bin (?:the )?place of\b": "say “instead of”",
    r"(?:^|[.:] )Of (?:a|an|the|some|several|each|such|one|text) ": "begin with the subject",
}
"""What the oldest guides were written in, which these pages are free of."""

NOT_IN_MESSAGES = {
    r"(?<!here )\bis no (?!longer\b)[\w.]+": "say “is not a …”",
    r"\bis wanted\b": "say what is missing",
    r"\bno use for\b|\bhas no place\b": "say “does not work with …”",
    r"\bof (?:its|their|his|your) own\b": "say “its own …”, or “separate”",
    r"\bis there already\b|\bnot there any more\b": "say “already exists”, “no longer exists”",
    r"\bscores flatter\b": "say that scores may be too high",
}
"""What errors, warnings and notes were written in."""


@cache
def guides() -> dict[str, str]:
    """The pages that people read, without their blocks of code."""
    names = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
    paths = [*(ROOT / name for name in names), *(ROOT / "docs").glob("*.md")]
    pages = {path.name: path.read_text(encoding="utf-8") for path in paths}
    for name in DECISIONS:
        pages[f"{name}.md"] = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    site = runpy.run_path(str(ROOT / "docs" / "site.py"))
    pages |= {name: site["generated"](name) for name in site["GENERATED"]}
    return {
        name: re.sub(r"^```.*?^```|^<!--.*?-->\s*", "", text, flags=re.M | re.S)
        for name, text in pages.items()
        if name not in RECORDS
    }


def helps() -> dict[str, str]:
    """What ``--help`` prints, by verb."""
    found = {}
    for name, verb in [pair for panel in PANELS.values() for pair in panel.items()]:
        for one, made in GROUP.commands.items() if verb is GROUP else [("", verb)]:
            text = " ".join([made.help or "", *made.help_of_fields().values()])
            found[f"{name} {one}".strip()] = text
    return found


@pytest.mark.parametrize("pattern", NOT_SO)
def test_a_construction_that_readers_stumble_over_stays_away(pattern: str) -> None:
    found = [
        f"{where}: {match[0]!r}"
        for where, text in {**guides(), **helps()}.items()
        for match in re.finditer(pattern, " ".join(text.split()))
    ]
    assert not found, f"{NOT_SO[pattern]}\n" + "\n".join(found)


def test_a_page_begins_with_what_it_is_for() -> None:
    """A whole sentence under its title, before any table, list or picture."""
    for page in sorted((ROOT / "docs").glob("*.md")):
        text = re.sub(r"^<!--.*-->\n*", "", page.read_text(encoding="utf-8"))
        first = text.partition("\n")[2].lstrip("\n")
        assert first[:1].isalpha(), page.name
        assert "." in first.split("\n\n")[0] or ":" in first.split("\n\n")[0], page.name


def test_sentences_of_guides_are_short() -> None:
    """The median of each guide has at most 22 words."""
    for name, text in guides().items():
        prose = [part for part in text.split("\n\n") if part[:1] not in "|#!<"]
        sentences = re.split(r"(?<=[.:;!?])\s", " ".join(" ".join(prose).split()))
        lengths = sorted(len(one.split()) for one in sentences if len(one.split()) > 2)
        if lengths:
            assert lengths[len(lengths) // 2] <= 22, name


@pytest.mark.parametrize("name", [*PLAIN, "decisions", *DECISIONS])
def test_a_guide_in_plain_words_stays_so(name: str) -> None:
    text = " ".join(guides()[f"{name}.md"].split())
    found = [
        f"{match[0]!r}: {why}" for one, why in DIALECT.items() for match in re.finditer(one, text)
    ]
    assert not found, "\n".join(found)


@cache
def modules() -> dict[Path, ast.Module]:
    """The syntax tree of each file of the program."""
    return {
        path: ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted((ROOT / "src").rglob("*.py"))
    }


def messages() -> dict[str, str]:
    """Texts of three words or more in the code, by their place: errors, warnings, notes, helps.
    Values that they show are written as ``…``."""
    found = {}
    for path, tree in modules().items():
        skipped = set()  # docstrings, and the parts of f-strings
        for node in ast.walk(tree):
            if isinstance(node, ast.Expr):
                skipped.add(node.value)
            elif isinstance(node, ast.JoinedStr):
                skipped.update(node.values)
            if node in skipped or not isinstance(node, ast.JoinedStr | ast.Constant):
                continue
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            text = "".join(
                str(one.value) if isinstance(one, ast.Constant) else "…" for one in parts
            )
            if len(text.split()) > 2:
                found[f"{path.relative_to(ROOT)}:{node.lineno}"] = " ".join(text.split())
    return found


def test_messages_are_plain_words() -> None:
    found = [
        f"{where}: {match[0]!r} in {text!r}: {why}"
        for where, text in messages().items()
        for one, why in (NOT_SO | DIALECT | NOT_IN_MESSAGES).items()
        for match in re.finditer(one, text)
    ]
    assert not found, "\n".join(found)


COMPLETES_A_NAME = re.compile(r"(?:Of|What|The same|Whether|How|By|Where|Those|As|With)\b")
"""How a docstring begins that cannot be read without the name above it."""
MOST_SHORT, MOST_ODD = 44, 16
"""Docstrings of five words or fewer, and those that complete the name of a thing in place of saying
what it is, at the last landing. Whoever mends some writes the smaller number."""


def test_docstrings_do_not_become_riddles() -> None:
    """A docstring is a sentence that can be read alone."""
    documented = [
        " ".join(node.value.value.split())
        for tree in modules().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ]
    short = [text for text in documented if len(text.split()) <= 5]
    odd = [text for text in documented if COMPLETES_A_NAME.match(text)]
    assert len(short) <= MOST_SHORT, f"{len(short)} docstrings have five words or fewer"
    assert len(odd) <= MOST_ODD, f"{len(odd)} docstrings begin as “Of a …” does"


VAGUE = {"one", "found", "told"}
"""Variables with these names do not say what they hold."""
PARTICIPLE = re.compile(r"_*(?:[a-z]{3,}ed|written|shown|drawn|begun|chosen|made|held|heard|taken)")
NO_PARTICIPLES = {"embed", "normalised", "speed"}
"""A verb, a noun, and a function that is named after a positional encoding, as recipes name it."""


def _vague_names(tree: ast.Module) -> set[str]:
    """The variables and parameters of a module with a name of ``VAGUE``, and its functions that
    are named by a participle alone. Fields of a class and properties are not among them."""
    names = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names |= {node.id} & VAGUE
        elif isinstance(node, ast.arg):
            names |= {node.arg} & VAGUE
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            of_property = any("property" in ast.unparse(one) for one in node.decorator_list)
            if PARTICIPLE.fullmatch(node.name) and not of_property:
                names |= {node.name.strip("_")} - NO_PARTICIPLES
    fields = {
        entry.target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for entry in node.body
        if isinstance(entry, ast.AnnAssign) and isinstance(entry.target, ast.Name)
    }
    return names - fields


def test_a_name_says_what_it_is_or_does() -> None:
    found = {
        str(path.relative_to(ROOT)): names
        for path, tree in modules().items()
        if (names := _vague_names(tree))
    }
    assert not found, found
    sample = "def written(told, *, found=1):\n    for one in told:\n        yield one\n"
    assert _vague_names(ast.parse(sample)) == {"written", "told", "found", "one"}
