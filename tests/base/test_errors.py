"""What a message says about an extra that is missing can be typed as it stands, here."""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from dragoman.base.errors import install

ROOT = Path(__file__).parents[2]
EXTRAS: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
    "optional-dependencies"
]


def names_of(extra: str) -> set[str]:
    """The packages of an extra and of those that it takes in, as pyproject.toml has them."""
    found = set()
    for one in EXTRAS[extra]:
        if one.startswith("dragoman["):
            found |= set().union(*map(names_of, one[9:-1].split(",")))
        else:
            found.add(re.split(r"[>=<\[]", one)[0].lower())
    return found


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_is_installed_by_the_names_of_its_packages(extra: str) -> None:
    python, *pip = shlex.split(install(extra))
    assert Path(python).absolute() == Path(sys.executable)
    assert pip[:3] == ["-m", "pip", "install"]
    assert {re.split(r"[>=<\[]", one)[0].lower() for one in pip[3:]} == names_of(extra)


def test_a_source_tree_that_is_not_installed_is_named_by_its_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def requires(name: str) -> list[str]:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", requires)
    assert install("serve").endswith(f" -m pip install -e '{ROOT}[serve]'")


def test_nothing_has_pip_look_for_a_package_of_our_name() -> None:
    """dragoman is on no index, and whoever puts something there under its name would be run."""
    asks = re.compile(r"pip3?['\"]? (?:install|download)\b[^\n`]*?[ '\"]dragoman(?![-\w/.])")
    assert asks.search("pip install -U 'dragoman[serve]'") and asks.search("pip install dragoman")
    places = ["src/**/*.py", "src/**/*.toml", "deploy/*", "docs/**/*.md", "*.md", "web/src/**/*"]
    files = [path for place in places for path in ROOT.glob(place) if path.is_file()]
    assert len(files) > 500
    told = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for path in files
        if path.name != "CHANGELOG.md"
        for found in asks.finditer(path.read_text(encoding="utf-8"))
    ]
    assert not told
