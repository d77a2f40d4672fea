"""The codes of refusals: one list, which the code, docs/http-api.md and the Korean page share."""

from __future__ import annotations

import ast
import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import Any

import pytest
from refusal_kinds import KINDS
from serving_echo import client_of, echo_run

from dragoman.serving.http.refusals import SENTENCES, STATUSES, Refusal

JSON = {"content-type": "application/json"}
ROOT = Path(__file__).parents[2]
KOREAN = (ROOT / "web/src/page/words_errors.ts").read_text(encoding="utf-8")
SOURCE = ROOT / "src" / "dragoman"


def made() -> list[tuple[str, str, set[str] | None]]:
    """Place, code and names of values of every refusal in the code; None where the values are
    put together beforehand."""
    found: list[tuple[str, str, set[str] | None]] = []
    for path in sorted(
        path
        for places in ("server/*.py", "serving/**/*.py", "tasks/*/*.py")
        for path in SOURCE.glob(places)
    ):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if node.func.id not in ("Refusal", "error_body", "check_total", "as_refusal"):
                continue
            place, code = f"{path.name}:{node.lineno}", node.args[0]
            names = {one.arg for one in node.keywords if one.arg} - {"retry_after"}
            if isinstance(code, ast.Constant):
                names = names if node.func.id == "Refusal" else None
                found.append((place, str(code.value), names))
    return found


def without_message() -> Iterator[str]:
    """The codes of the refusals in the code that have no message of their own."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Name("Refusal"), args=[ast.Constant(str(code))]):
                    yield code


def test_every_refusal_has_its_code_and_values() -> None:
    every = made()
    assert len(every) > 60
    wrong = [
        (place, code)
        for place, code, names in every
        if code not in KINDS or (names is not None and names != set(KINDS[code].values))
    ]
    assert not wrong, wrong


def test_every_code_is_given() -> None:
    of_the_framework = {"no_such_path", "no_such_method"}
    assert {code for _, code, _ in made()} | of_the_framework == set(KINDS)


@pytest.mark.parametrize("code", KINDS)
def test_the_documentation_tells_the_status_of_every_code(code: str) -> None:
    assert Refusal(code, "What to do.").status == KINDS[code].status


def test_no_status_is_of_a_code_that_there_is_not() -> None:
    assert STATUSES.keys() <= KINDS.keys()


@pytest.mark.parametrize("code", SENTENCES)
def test_a_sentence_takes_the_values_of_its_code(code: str) -> None:
    taken = {name for _, name, _, _ in Formatter().parse(SENTENCES[code]) if name}
    assert taken <= set(KINDS[code].values)


def test_a_refusal_without_a_message_has_the_sentence_of_its_code() -> None:
    assert set(without_message()) == set(SENTENCES)
    refusal = Refusal("no_such_run", run="a{b}", runs=["de-en", "en-de"])
    assert refusal.message == "There is no run 'a{b}' here. Use one of: de-en, en-de."
    assert refusal.body["values"] == {"run": "a{b}", "runs": ["de-en", "en-de"]}
    assert "20,100 values" in Refusal("too_many_values", values=20_100, most=20_000).message


def korean() -> dict[str, str]:
    """What the page says of each code, as it is written there."""
    table = KOREAN[KOREAN.index("SENTENCES") : KOREAN.index("\n};")]
    parts = re.split(r"^  (\w+): (?=\()", table, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_the_page_has_korean_for_every_code() -> None:
    assert list(korean()) == list(KINDS)


@pytest.mark.parametrize("code", KINDS)
def test_the_korean_takes_the_values_of_its_code(code: str) -> None:
    """And ends as the sentence or, before a problem in English, with a colon."""
    written = korean()[code]
    head, sentence = written.split("=>", 1)
    assert set(re.findall(r"\w+", head)) <= set(KINDS[code].values)
    assert code == "no_figure_here" or re.search("[가-힣]", sentence)
    assert ("problem" in KINDS[code].values) == bool(re.search(r':"\)?,\s*$', sentence)), sentence


async def _answers() -> list[tuple[int, dict[str, object]]]:
    async with client_of(echo_run()) as client:
        answers = [
            await client.post("/translate", json={"target": "de"}),
            await client.post("/v1/translate", json={"text": "a", "beam": "wide"}),
            await client.post("/v1/translate", json={"text": "a", "run": "none"}),
            await client.post("/v1/translate", content=b"{", headers=JSON),
            await client.get("/v1/nothing"),
            await client.get("/v1/translate"),
        ]
        return [(answer.status_code, answer.json()) for answer in answers]


def test_an_error_is_told_with_its_code_and_values() -> None:
    answers = asyncio.run(_answers())
    codes = ["missing_field", "bad_field", "no_such_run", "bad_body", "no_such_path"]
    assert [body["code"] for _, body in answers] == [*codes, "no_such_method"]
    for status, body in answers:
        assert list(body) == ["error", "code", "values"]
        kind = KINDS[str(body["code"])]
        assert status == kind.status
        assert isinstance(body["values"], dict) and set(body["values"]) == set(kind.values)
    assert answers[0][1] == {
        "error": "Invalid request: missing q parameter",
        "code": "missing_field",
        "values": {"field": "q"},
    }


def test_the_description_shows_code_and_values() -> None:
    async def described() -> dict[str, Any]:
        async with client_of(echo_run()) as client:
            found: dict[str, Any] = (await client.get("/openapi.json")).json()
            return found

    error = asyncio.run(described())["components"]["schemas"]["ErrorBody"]
    assert list(error["properties"]) == error["required"] == ["error", "code", "values"]
