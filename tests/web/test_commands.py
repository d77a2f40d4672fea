"""What stands under "The same in a shell": it answers what the view shows."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from command_line import Dragoman
from every_view import PLACES, go
from opening import Open
from playwright.sync_api import Page, expect


@pytest.fixture
def runs(kinds: dict[str, Path]) -> None:
    """The runs as the commands name them."""
    Path("runs").mkdir()
    for name, folder in kinds.items():
        Path("runs", name).symlink_to(folder)


def commands(page: Page) -> list[str]:
    """The request and the verb of the open view."""
    title = page.get_by_text("The same in a shell").locator("visible=true")
    shown = page.locator("pre[role=group]:visible")
    title.click()
    if not title.evaluate("one => one.closest('details').open"):
        title.click()  # what came above has moved it away under the first
    expect(shown.first).to_be_visible()
    return shown.all_inner_texts()


SHOWN = {
    "translate": "p.text",
    "classify": "p.text",
    "fill": ".blanks .name",
    "tag": ".words .word",
    "look": ".text.target .w",
    "look at trees": ".text.target .w",
}


@pytest.mark.parametrize("view", [*SHOWN, "write", "parse", "look at a reading", "run", "figures"])
def test_a_verb_says_what_the_view_shows(
    opened_kinds: Open, dragoman: Dragoman, runs: None, view: str
) -> None:
    with opened_kinds(PLACES[view]) as page:
        if view == "run":  # a run of random weights has no curves, and was measured by nobody
            expect(page.locator(".head h2")).to_be_visible()
        else:
            go(page, view)
        request, verb = commands(page)
        assert shlex.split(request)[0] == "curl"
        program, *words = shlex.split(verb)
        assert program == "dragoman" and (f"runs/{words[1]}" == words[1] or "runs/" in verb)
        if view == "run":
            assert words == ["evaluate", "runs/translator"]
            return
        said = dragoman(*words)
        assert said.code == 0, said.err
        if view in SHOWN:
            shown = page.locator(SHOWN[view]).first.inner_text().split("\n")[0]
            assert shown.split()[0] in said.out
        for made in re.findall(r"--(?:to|svg) (\S+)", verb):
            assert Path(made).stat().st_size > 500


def test_a_view_without_a_text_asks_about_an_example(opened_kinds: Open) -> None:
    with opened_kinds("#translate?run=translator") as page:
        example = page.locator(".examples:visible button").first.inner_text()
        request, verb = commands(page)
        assert json.loads(shlex.split(request)[-1])["text"] == example
        assert example in shlex.split(verb)


def test_what_was_changed_in_look_is_in_its_command(
    opened_kinds: Open, dragoman: Dragoman, runs: None
) -> None:
    more = "&hide=2&off=cross.1.2,encoder.1.1&at=cross.1.1&units=pieces"
    with opened_kinds(f"{PLACES['look']}{more}") as page:
        expect(page.locator(".new")).to_be_visible()
        (_, verb) = commands(page)
        words = shlex.split(verb)
        for one in ("--hide 2", "--head-off cross.1.2", "--head-off encoder.1.1", "--kind cross"):
            assert one in verb
        assert {"--layer", "--head", "--pieces"} <= set(words)
        said = dragoman(*words[1:])
        assert said.code == 0, said.err
        assert page.locator(".new").inner_text().split()[0] in said.out


def test_what_a_slider_says_is_in_the_command_of_a_figure(
    opened_kinds: Open, dragoman: Dragoman
) -> None:
    with opened_kinds("#figures?figure=schedule") as page:
        expect(page.locator("article")).to_have_attribute("aria-busy", "false")
        page.get_by_role("slider", name="warm-up").focus()
        page.keyboard.press("ArrowRight")
        expect(page.locator("article")).to_have_attribute("aria-busy", "false")
        (_, verb) = commands(page)
        moved = re.search(r"--set warmup=(\d+)", verb)
        assert moved and int(moved[1]) != 4000
        said = dragoman(*shlex.split(verb)[1:])
        assert said.code == 0, said.err
        assert f"{int(moved[1]):,}" in Path("schedule.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["schedule", "--set", "warmup"], "write SLIDER=VALUE"),
        (["schedule", "--set", "warmup=many"], "write SLIDER=VALUE"),
        (["schedule", "--set", "colour=1"], "no slider 'colour'; it has:"),
        (["schedule", "--set", "warmup=3"], "warmup of schedule must be one of"),
        (["--list", "--set", "warmup=4000"], "works only with the NAME of one figure"),
    ],
)
def test_a_slider_that_cannot_be_is_said(dragoman: Dragoman, given: list[str], said: str) -> None:
    found = dragoman("figure", *given)
    assert found.code != 0 and said in found.err
    assert not [*Path().iterdir()]
