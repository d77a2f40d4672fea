"""What README and docs tell people to type exists and works."""

from __future__ import annotations

import re
import shlex
import shutil
import tomllib
from pathlib import Path

import pytest
from command_line import Dragoman, Said
from torch.distributed.run import get_args_parser

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "ko").glob("*.md")),
]


def _commands(page: Path) -> list[list[str]]:
    """Every line of a code block, or inline code, that calls ``dragoman``."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```[a-z]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    lines += re.findall(r"`(dragoman [^`]+)`", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))
    found = []
    for line in lines:
        line = line.strip().removeprefix("$ ").removeprefix(".venv/bin/")
        if line.startswith("dragoman "):
            words = shlex.split(re.split(r"\s[<>|#]|\s{3,}", line)[0])
            found.append(words[1:])
    return found


@pytest.fixture(scope="module")
def explained() -> dict[tuple[str, ...], Said]:
    """What verbs have said of themselves so far: the pages name each many times."""
    return {}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_verb_and_option_that_is_named_exists(
    dragoman: Dragoman, page: Path, explained: dict[tuple[str, ...], Said]
) -> None:
    for words in _commands(page):
        if words[0].isupper() or words[0].startswith("-"):  # `dragoman VERB --help`
            continue
        verb = tuple(words[:2] if words[0] == "data" and len(words) > 1 else words[:1])
        if verb not in explained:
            explained[verb] = dragoman(*verb, "--help")
        said = explained[verb]
        assert said.code == 0, f"{page.name}: {words}"
        for option in (word for word in words if re.fullmatch(r"--?[a-z][a-z-]*", word)):
            assert option in said.out, f"{page.name}: {words} has {option}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_within_the_project_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_make_targets_that_are_named_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    for page in PAGES:
        named = re.findall(
            r"(?:^|`|^\$ )make ([a-z-]+)", page.read_text(encoding="utf-8"), re.MULTILINE
        )
        assert set(named) <= targets, page.name


@pytest.mark.system
def test_the_python_of_the_readme_runs(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measured_shortly: None
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(tiny_run, tmp_path / "runs" / "demo")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    # The same program, but for how long it trains.
    assert "training.updates=200" in code
    exec(code.replace("training.updates=200", "training.updates=2"), {})
    assert (tmp_path / "runs" / "short" / "model.safetensors").is_file()


def test_the_citation_names_this_version() -> None:
    yaml = pytest.importorskip("yaml")
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for field in ("version", "license"):
        assert cited[field] == project[field]
    version = project["version"]
    assert re.search(rf"^## {version}\b", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert f"version {version}" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert cited["title"] == project["name"] and {"cff-version", "message", "authors"} <= set(cited)


def test_the_readme_is_short() -> None:
    """Whoever sees it first reads a screen or two: what leaves it has a page of its own."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120 and len(text.split()) <= 900


def test_what_torchrun_is_told_exists() -> None:
    """The lines of the manual, with a verb in place of a training."""
    text = (ROOT / "docs" / "processes.md").read_text(encoding="utf-8")
    lines = re.findall(r"^(?:[A-Z_]+=\S* )?torchrun (.*?)-m dragoman (\w+)", text, re.MULTILINE)
    assert len(lines) >= 3
    parser = get_args_parser()
    for options, verb in lines:
        assert verb in ("train", "resume")
        parser.parse_args([*shlex.split(options), "-m", "dragoman"])
