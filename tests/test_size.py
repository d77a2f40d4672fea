"""The house does not grow unnoticed: each number below is that of the last landing, and the test
fails if the house is larger.

Code lines are those of Python without blanks, comments and docstrings; imports count. Lines of
other files are all of their lines. Code that is moved into data files, C++, another package or a
generated file is counted where it stands then; only the built page is left out.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LARGEST = {
    "Python files in src": 506,
    "code lines in src": 67_539,
    "code lines beside src": 1_211,
    "code lines in benchmarks": 6_195,
    "lines of the page in web/src": 17_274,
    "lines of C++ in src": 7_414,
    "lines of data, style and scripts in src": 2_867,
}
"""An issue with a budget raises a number by it, in the commit that uses it, with a line in
docs/decisions/house.md. Whoever removes code writes the smaller number."""
_NOT_OURS = {"tests", "build", "dist", "runs", "data-cache"}
_BUILT = ROOT / "src/dragoman/serving/web"
_DATA = dict.fromkeys((".toml", ".json", ".css", ".js", ".html"), "data, style and scripts")
_KINDS = dict.fromkeys((".cpp", ".h"), "C++") | _DATA
_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}


def code_lines(text: str) -> int:
    """The lines of a Python file that are more than blank, comment or docstring."""
    documented = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str)
        for line in range(node.lineno, (node.end_lineno or 0) + 1)
    }
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    code = (token for token in tokens if token.type not in _NO_CODE and token.string)
    lines = {line for token in code for line in range(token.start[0], token.end[0] + 1)}
    return len(lines - documented)


@pytest.fixture(scope="module")
def sizes() -> Counter[str]:
    """What each number of ``LARGEST`` is now."""
    found = Counter[str]()
    for top in (one for one in ROOT.glob("[!.]*") if one.name not in _NOT_OURS):
        place = f"in {top.name}" if top.name in ("src", "benchmarks") else "beside src"
        inside = (top / "src" if top.name == "web" else top).rglob("*")
        for path in inside if top.is_dir() else [top]:
            if path.suffix == ".py":
                found[f"Python files {place}"] += 1
                found[f"code lines {place}"] += code_lines(path.read_text("utf-8"))
            elif top.name == "web" and path.suffix in (".svelte", ".ts", ".css"):
                found["lines of the page in web/src"] += path.read_bytes().count(b"\n")
            elif place == "in src" and path.suffix in _KINDS and _BUILT not in path.parents:
                found[f"lines of {_KINDS[path.suffix]} in src"] += path.read_bytes().count(b"\n")
    return found


@pytest.mark.parametrize("what", LARGEST)
def test_nothing_has_grown(what: str, sizes: Counter[str]) -> None:
    more = sizes[what] - LARGEST[what]
    assert more <= 0, (
        f"{what}: {sizes[what]:,}, {more:,} more than at the last landing. Remove as much "
        "elsewhere. An issue with a budget raises the number in tests/test_size.py in the same "
        "commit, with a line in docs/decisions/house.md"
    )
