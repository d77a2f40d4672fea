"""Every regular expression of the house takes time that grows with the text, not with its square.

Text from strangers reaches most of them through the server, where one that goes over the same text
again and again holds up everybody. The test reads no clock: each pattern is tried in a process of
its own, which the system ends if one text takes far more processor time than a linear search needs
on any machine, and far less than a quadratic one takes.
"""

from __future__ import annotations

import ast
import importlib
import os
import re
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"
LENGTH = 20_000
"""Characters of each text: as many as the server takes in one request."""
SECONDS = 0.15
"""Of processor time for one text. A linear pattern takes some milliseconds, a quadratic one half a
second and more."""

CORES = (
    *(
        " ",
        "\n",
        "\t",
        " \n",
        "\u00a0",
        "(",
        "[",
        "{",
        '"',
        "'",
        "`",
        "“",
        "<",
        "&",
        "</",
        "<a ",
        "<b>",
    ),
    *("<!--", "&#1", "&a", "\u0301", "e\u0301", "\u0301\u0316", "\u0915\u094d", "a", "a ", "a\n"),
    *(
        "1",
        "1.",
        "1,",
        ".",
        ". ",
        "。",
        "다.",
        "_",
        "-",
        "=",
        "|",
        "*",
        "\\",
        "a'",
        "a.",
        "a-",
        "a=",
    ),
    *("(1", "[x", ' \n\t"<&\u0301a1._('),
)
"""What a text repeats: spaces, line ends, brackets, quotes, combining marks, words, digits, markup,
and a mixture."""
AROUND = (("", ""), ("<a", " a>"))
"""What stands before and behind, so that a match begins and fails at the end."""

ANCHORED = {"match", "fullmatch"}
BOUNDED = {
    "dragoman.forms.segmentation._LAST_WORD": "it is given the last 40 characters at most",
    "dragoman.native.loader": "it reads which libraries this process has mapped",
}
"""What may be quadratic, and why."""
MADE = {
    "dragoman.forms.identification": [r"[A-Za-z]", "[\u3040-\u30ff]"],
    "dragoman.forms.subwords.sampling": ["(<2de>|<a>|a1|a)"],
    "dragoman.formats.office.archive": [
        (
            r"(?:<w:lang(?=\s)[^<>]{0,200}?\sw:val|<a:rPr(?=\s)[^<>]{0,200}?\slang|\sfo:language)"
            r'="([a-z]{2,3})\b'
        )
    ],
    "dragoman.formats.units.icu": ["'", r"'(?=['{}#]|\Z)", "[{}#]+", "[{}]+"],
    "dragoman.formats.html.tokens": [r"</title(?=[\t\n\f\r />])", r"</a(?=[\t\n />])"],
}
"""Of modules that put patterns together as they run: such patterns."""
NOT_TEXT = {
    "dragoman.data.files.corpus_settings": "a pattern that the user gives is compiled, no more",
    "dragoman.data.files.encoding": "bytes of a file that the user names",
    "dragoman.sources.file_examples": "names of files, by a pattern that the user gives",
    "dragoman.data.files.file_kinds": "the first bytes of a file that the user names",
    "dragoman.sources.frames.sound_containers": "bytes of a recording, by patterns of one length",
    "dragoman.sources.picture.picture_file": "bytes of a picture, each of which is gone over once",
    "dragoman.sources.frames.recordings": "the first bytes of a recording",
    "dragoman.insight.experiments": "the names of heads that the user types",
    "dragoman.native.compile": "a library that was compiled here",
}
"""Of modules that have others: what these go over, which no stranger sends."""


def parsed() -> dict[str, ast.Module]:
    """The source of each module that has to do with patterns."""
    written = {path: path.read_text(encoding="utf-8") for path in sorted(SOURCE.rglob("*.py"))}
    return {
        ".".join(path.relative_to(SOURCE).with_suffix("").parts): ast.parse(text)
        for path, text in written.items()
        if re.search(r"\bre\b", text)
    }


def patterns() -> Iterator[tuple[str, re.Pattern[str], set[str]]]:
    """Where each pattern stands, the pattern, and the methods by which the house calls it."""
    trees = parsed()
    methods: dict[str, set[str]] = defaultdict(set)
    for tree in trees.values():
        for node in ast.walk(tree):
            match node:
                case ast.Attribute(value=ast.Name(id=name) | ast.Attribute(attr=name)):
                    methods[name].add(node.attr)
    for module, made in MADE.items():
        yield from ((module, re.compile(one, re.IGNORECASE), set()) for one in made)
    for module, tree in trees.items():
        held = vars(importlib.import_module(module)).items()
        compiled = {name: value for name, value in held if isinstance(value, re.Pattern)}
        for name, value in compiled.items():
            if isinstance(value.pattern, str):
                yield f"{module}.{name}", value, methods[name]
        for node in ast.walk(tree):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="re"), attr=called),
                    args=[ast.Constant(value=str(pattern)), *_],
                ) if called not in ("escape", "compile"):
                    yield module, re.compile(pattern), {called}


def others(tree: ast.Module) -> Iterator[str]:
    """What of a module ``patterns`` does not find: patterns of bytes, or put together, and other
    ways to the module ``re`` than by its name."""
    held = {id(node.value) for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)}
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module="re"):
                yield ast.unparse(node)
            case ast.Import(names=names) if any(one.name == "re" and one.asname for one in names):
                yield ast.unparse(node)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr="escape")):
                pass
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re")), args=[pattern, *_]):
                is_bytes = isinstance(pattern, ast.Constant) and isinstance(pattern.value, bytes)
                is_text = isinstance(pattern, ast.Constant) and not is_bytes
                is_compiled = ast.unparse(node.func) == "re.compile"
                if is_bytes or not (id(node) in held if is_compiled else is_text):
                    yield ast.unparse(node)


def texts() -> list[str]:
    return [
        before + (core * LENGTH)[:LENGTH] + behind for core in CORES for before, behind in AROUND
    ]


def search(pattern: re.Pattern[str], methods: set[str]) -> None:
    """All texts, in the ways that a pattern is used. The system ends this process if one of them
    takes too long."""
    for text in texts():
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        for name in methods & ANCHORED:
            getattr(pattern, name)(text)
        if not methods or methods - ANCHORED:
            pattern.sub("", text)
        signal.setitimer(signal.ITIMER_PROF, 0)


def try_all() -> None:
    """Try each pattern in a child of this process, and tell which of them the system ended."""
    tried = 0
    for name, pattern, methods in patterns():
        if name in BOUNDED:
            continue
        tried += 1
        child = os.fork()
        if not child:
            search(pattern, methods)
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            print(f"{name}: {pattern.pattern}", flush=True)
    assert tried > 50, "the patterns are found"


def test_every_pattern_is_tried() -> None:
    """But those that are named above with a reason."""
    untried = {module: list(others(tree)) for module, tree in parsed().items()}
    assert {module for module, found in untried.items() if found} == {*MADE, *NOT_TEXT}


@pytest.mark.parametrize(
    "source",
    ["def f(x):\n    return re.sub('(a' + x, '', x)", "def f():\n    return re.compile('a')",
     "A = re.compile(b'a')", "A = (re.compile('a'), 1)", "from re import sub", "import re as r",
     "x = re.search(f'{x}', y)"],
)  # fmt: skip
def test_a_pattern_that_is_not_tried_would_be_seen(source: str) -> None:
    assert list(others(ast.parse(source)))
    assert not list(
        others(ast.parse("A: Final = re.compile(f'{x}')\nre.sub('a', '', re.escape(x))"))
    )


@pytest.mark.system
def test_no_pattern_takes_quadratic_time() -> None:
    done = subprocess.run(
        [sys.executable, __file__], capture_output=True, text=True, timeout=1800, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "", done.stdout


@pytest.mark.parametrize("pattern", [r"(\s*)(\S+)", r"\s+\Z", r"a+\Z"])
def test_a_quadratic_pattern_would_be_seen(pattern: str) -> None:
    program = "import re, sys, test_patterns as it; it.search(re.compile(sys.argv[1]), {'sub'})"
    done = subprocess.run(
        [sys.executable, "-c", program, pattern], cwd=Path(__file__).parent, check=False
    )
    assert done.returncode == -signal.SIGPROF


if __name__ == "__main__":
    try_all()
