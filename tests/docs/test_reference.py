"""Pages that are made by programs are what the programs make, and nothing that a person can type,
set, ask or open is missing from the documentation."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import dragoman
from dragoman.cli.app import PANELS
from dragoman.cli.data import GROUP
from dragoman.insight.figures.catalogue import FIGURES
from dragoman.tasks.program import TRAINED_AS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
KEPT = ("settings", "verbs")
"""Each NAME.md is what NAME.py prints."""


@cache
def program(name: str) -> ModuleType:
    """A program of the documentation, as a module."""
    found = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[found.name] = module
    found.loader.exec_module(module)
    return module


def page(name: str) -> str:
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


def generated(name: str) -> str:
    """A page that is only in the site."""
    text: str = program("site").generated(name)
    return text


@pytest.mark.parametrize("name", KEPT)
def test_a_page_is_what_its_program_makes(name: str) -> None:
    made = getattr(program(name), f"{name}_page")()
    assert page(name) == made, f"python docs/{name}.py > docs/{name}.md"
    assert "Generated" in made.splitlines()[0]


def test_the_pages_that_are_only_in_the_site_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = program("site")
    monkeypatch.setattr(site, "SOURCE", tmp_path)
    site.gather()
    for name in site.GENERATED:
        text = (tmp_path / "en" / f"{name}.md").read_text(encoding="utf-8")
        assert text.startswith("# ") and text.count("\n## ") > 5, name
        for target in re.findall(r"\]\(([^)#]+)", text):
            assert (tmp_path / "en" / target).is_file(), f"{name}: {target}"
    for name in dragoman.__all__:
        assert f"\n## dragoman.{name}\n" in generated("api")


def test_the_chart_of_speed_is_that_of_the_benchmark() -> None:
    speed = program("speed")
    assert speed.PICTURE.read_text(encoding="utf-8") == speed.speed_svg(), "python docs/speed.py"


def written_by_people() -> dict[str, str]:
    """The pages that no program makes, records left out: name -> text."""
    left_out = {*KEPT, "results", "experiments", "decisions"}
    paths = [ROOT / "README.md", *(p for p in sorted(DOCS.glob("*.md")) if p.stem not in left_out)]
    return {path.name: path.read_text(encoding="utf-8") for path in paths}


def test_every_verb_stands_in_a_guide() -> None:
    """The reference has all of them; a guide says what each is for."""
    text = "\n".join(written_by_people().values())
    verbs = {name for verbs in PANELS.values() for name in verbs} - {"data"}
    verbs |= {f"data {name}" for name in GROUP.commands}
    assert verbs and not {verb for verb in verbs if f"dragoman {verb}" not in text}


def test_every_option_stands_in_the_page_of_verbs() -> None:
    named = 0
    for name, verb in program("verbs").verbs():
        (own,) = re.findall(
            rf"^### dragoman {name}\n(.*?)(?=^##|\Z)", page("verbs"), re.MULTILINE | re.DOTALL
        )
        for param in verb.get_params(verb.context_class(verb)):
            for option in [one for one in param.opts if one.startswith("--")]:
                if option != "--help":
                    assert re.search(rf"^\| `([^`]*, )?{option}\b", own, re.MULTILINE), (
                        f"{name} {option}"
                    )
                    named += 1
    assert named > 150


def test_every_endpoint_stands_in_the_page_of_endpoints() -> None:
    from serving_echo import create_app

    from dragoman.serving.operate.settings import ServeSettings
    from dragoman.serving.service.catalogue import LanguageDetector

    app, text = create_app([], ServeSettings(), LanguageDetector()), generated("endpoints")
    paths = {path for route in app.routes if (path := getattr(route, "path", None))}
    paths |= set(app.openapi()["paths"])
    assert len(paths) > 15 and not {path for path in paths if path not in text}


@cache
def environment_variables() -> frozenset[str]:
    """The names that the program, its build and its tests look up in the environment."""
    files = [*(ROOT / "src").rglob("*.py"), ROOT / "hatch_build.py", ROOT / "tests/conftest.py"]
    found = set()
    for text in (file.read_text(encoding="utf-8") for file in files):
        for node in ast.walk(ast.parse(text)) if "environ" in text else ():
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Attribute(attr="environ"), attr="get"),
                    args=[ast.Constant(value=str(name)), *_],
                ):
                    found.add(name)
                case ast.Subscript(
                    value=ast.Attribute(attr="environ"), slice=ast.Constant(value=str(name))
                ):
                    found.add(name)
    # Set by the tests for other programs; nobody gives them to dragoman.
    others = {"TERM", "TOKENIZERS_PARALLELISM", "HF_HUB_OFFLINE", "PYTEST_XDIST_WORKER"}
    return frozenset(found - others)


def test_every_environment_variable_has_its_row() -> None:
    names, rows = environment_variables(), page("environment")
    assert {"DRAGOMAN_NATIVE", "DRAGOMAN_MEASURE", "DRAGOMAN_CACHE"} <= names
    missing = {name for name in names if not re.search(rf"^\|[^|]*`{name}`", rows, re.MULTILINE)}
    assert not missing, "docs/environment.md"


def test_every_variable_of_the_page_is_looked_up() -> None:
    told = set(re.findall(r"`(DRAGOMAN_[A-Z_]+)`", page("environment")))
    assert told == {name for name in environment_variables() if name.startswith("DRAGOMAN_")}


VIEWS = {"translate": "Translate", "write": "Write", "classify": "Classify", "fill": "Fill in",
         "parse": "Parse", "tag": "Tag", "label": "Label", "transcribe": "Transcribe",
         "boxes": "Boxes", "lines": "Text in a picture", "paint": "Paint", "lesson": "How it works",
         "look": "Look", "figures": "Figures", "run": "Run"}  # fmt: skip


def test_every_view_has_its_part_of_the_pages_help() -> None:
    source = ROOT / "web/src"
    (of_any,) = re.findall(r"const OF_ANY = \[(.*?)\]", (source / "App.svelte").read_text("utf-8"))
    found = re.findall(r'"(\w+)"', of_any)
    for path in source.glob("*/view*.ts"):
        found += re.findall(r'^  name: "(\w+)",$', path.read_text("utf-8"), re.MULTILINE)
    assert set(found) == set(VIEWS)
    for name in VIEWS.values():
        assert f"\n## {name}\n" in page("page"), name


def test_the_korean_help_has_every_view_too() -> None:
    english, korean = page("page"), (DOCS / "ko" / "page.md").read_text(encoding="utf-8")
    assert english.count("\n## ") == korean.count("\n## ")


def test_every_task_and_recipe_and_figure_is_named() -> None:
    recipes = [path.stem for path in (ROOT / "src/dragoman/runs/recipe/shipped").glob("*.toml")]
    for name in recipes:
        assert f"\n| `{name}` |" in page("recipes"), name
    for name in TRAINED_AS:
        assert f"\n| `{name}`" in page("tasks"), name
    for name in FIGURES:
        assert f"\n## {name}\n" in generated("figures"), name


def test_settings_that_guides_name_exist() -> None:
    text = page("settings")
    known = set(re.findall(r"^\| `([\w.]+)` \|", text, re.MULTILINE))
    sections = {name.split(".")[0] for name in known if "." in name}
    for name, content in written_by_people().items():
        for named in re.findall(r"(?:`|--set )([a-z_]+(?:\.[a-z_]+)+)\b", content):
            endings = (".toml", ".safetensors", ".json", ".model", ".spm", ".svg", ".png")
            is_file = named.endswith(endings)
            if named.split(".")[0] in sections and not is_file:
                is_section = any(one.startswith(f"{named}.") for one in known)
                assert named in known or is_section, f"{name}: {named}"


def test_the_index_of_decisions_lists_its_pages() -> None:
    pages = {f"decisions/{path.name}" for path in (DOCS / "decisions").glob("*.md")}
    assert pages == set(re.findall(r"\]\((decisions/[\w-]+\.md)", page("decisions")))


def test_decisions_name_files_that_exist() -> None:
    tops = ("src/**/*.*", "tests/**/*.*", "docs/*.*", "*.py")
    files = [path.as_posix() for top in tops for path in ROOT.glob(top)]
    for path in (DOCS / "decisions").glob("*.md"):
        text = path.read_text(encoding="utf-8")
        for named in re.findall(r"`([\w/.]+\.(?:py|h|cpp|js))`", text):
            assert any(name.endswith(f"/{named}") for name in files), f"{path.name}: {named}"
        for target in re.findall(r"\]\(([^)#:]+)", text):
            assert (path.parent / target).is_file(), f"{path.name}: {target}"


def test_the_index_leads_to_every_page() -> None:
    names = {path.name for path in DOCS.glob("*.md")} - {"index.md"}
    assert names <= set(re.findall(r"\]\(([\w-]+\.md)", page("index")))
    site = program("site")
    listed = {name for pages in site.NAVIGATION.values() for name in pages}
    assert not listed & set(site.LOGS)
    made = {f"{name}.md" for name in site.GENERATED}
    assert listed | set(site.LOGS) == names | set(site.GATHERED) | made
    assert {path.name for path in (DOCS / "ko").glob("*.md")} == {"index.md", *site.KOREAN}
