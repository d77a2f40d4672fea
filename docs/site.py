"""Builds this documentation as a site: python docs/site.py (make docs)

It gathers the pages into build/docs-source, one folder for each language, with those that only
programs write; has Zensical make HTML of them in build/docs; and then checks the result: every link
leads somewhere, and nothing is loaded from another machine. Open build/docs/index.html; no server
is needed.
"""

from __future__ import annotations

import json
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SOURCE = ROOT / "build" / "docs-source"
SITE = ROOT / "build" / "docs"

NAVIGATION: dict[str, list[str]] = {
    "Begin": ["install.md", "first-translator.md", "expect.md", "coming-from.md"],
    "Do": [
        "training.md", "import.md", "translate.md", "documents.md", "tasks.md",
        "language-models.md",
        "masked-models.md",
        "labels.md", "tags.md", "trees.md", "boxes.md", "painting.md", "sources.md",
        "label-pictures.md", "label-recordings.md", "text-in-pictures.md", "transcribe.md",
        "measure.md", "serve.md", "http-api.md", "page.md", "look.md", "python.md",
        "processes.md", "scale.md",
    ],
    "Look up": [
        "questions.md", "glossary.md", "verbs.md", "settings.md", "recipes.md", "endpoints.md",
        "figures.md", "api.md", "files.md", "environment.md", "machines.md",
    ],
    "Develop": [
        "how-it-is-built.md", "how-it-is-tested.md", "contributing.md", "security.md",
        "changelog.md",
    ],
}  # fmt: skip
"""The pages of the English site beside its index, in reading order."""

LISTED = ("experiments", "decisions")
"""Folders of pages that only their index, the page of the same name, leads to."""

LOGS = ("results.md", "benchmarks.md", "experiments.md", "decisions.md", "korean.md")
"""Pages that the navigation leaves out: links of the index and of guides lead to them."""

KOREAN = ["first-translator.md", "page.md"]
"""The pages of the Korean site beside its index."""

GATHERED = {
    "benchmarks.md": "benchmarks/README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "security.md": "SECURITY.md",
}
"""Pages that lie elsewhere in the source tree."""

GENERATED = ("endpoints", "figures", "api")
"""Pages of the English site that are in no file of the source tree: NAME.py here prints each."""


def gather() -> None:
    """Copy the pages of both languages, with links that fit where they are now."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    for page in sorted(page for folder in (".", *LISTED) for page in (DOCS / folder).glob("*.md")):
        _write(SOURCE / "en" / page.relative_to(DOCS), _relinked(page, page.read_text("utf-8")))
    for name, where in GATHERED.items():
        text = (ROOT / where).read_text(encoding="utf-8")
        _write(SOURCE / "en" / name, _relinked(ROOT / where, text))
    for name in GENERATED:
        _write(SOURCE / "en" / f"{name}.md", _relinked(DOCS / f"{name}.md", generated(name)))
    for picture in (ROOT / "benchmarks" / "results").glob("*.svg"):
        _copy(picture, SOURCE / "en" / "results" / picture.name)
    for data in DOCS.glob("*.tsv"):
        _copy(data, SOURCE / "en" / data.name)
    for page in sorted((DOCS / "ko").glob("*.md")):
        _write(SOURCE / "ko" / page.name, _relinked(page, page.read_text(encoding="utf-8")))
    for language in ("en", "ko"):
        shutil.copytree(DOCS / "images", SOURCE / language / "images")
        _write(SOURCE / language / "style.css", _STYLE)
        _copy(DOCS / "from_disk.js", SOURCE / language / "from_disk.js")


@cache
def generated(name: str) -> str:
    """The text of a page that a program prints."""
    text: str = runpy.run_path(str(DOCS / f"{name}.py"))[f"{name}_page"]()
    return text


def _relinked(page: Path, content: str) -> str:
    """A page whose links lead to pages of the site; those to source files become plain text."""
    korean = page.parent.name == "ko"

    def link(found: re.Match[str]) -> str:
        text, target = found[1], found[2]
        path, anchor = urldefrag(target)
        if not path or path.startswith(("http://", "https://")):
            return found[0]
        file = (page.parent / path).resolve()
        where = _place(file)
        if where is None:
            return text
        if korean:
            where = (
                where.removeprefix("ko/") if where.startswith("ko/") or "." not in where else where
            )
            if not (where.startswith("images/") or file.parent == page.parent):
                where = "../" + re.sub(r"\.md$", ".html", where)
        elif where.startswith("ko/"):
            where = re.sub(r"\.md$", ".html", where)
        elif page.parent.name in LISTED:
            where = f"../{where}"
        return f"[{text}]({where}{'#' + anchor if anchor else ''})"

    parts = re.split(r"(^```.*?^```$)", content, flags=re.MULTILINE | re.DOTALL)
    for place in range(0, len(parts), 2):
        parts[place] = re.sub(r"\[([^\]\[]*)\]\(([^)\s]+)\)", link, parts[place])
        parts[place] = re.sub(r"`([^`\n]*\\\|[^`\n]*)`", _code_with_bars, parts[place])
    return "".join(parts)


def _code_with_bars(found: re.Match[str]) -> str:
    """Code with bars, in a table: Markdown's readers differ about a backslash there."""
    return f"<code>{escape(found[1], quote=False)}</code>".replace("\\|", "&#124;")


def _place(file: Path) -> str | None:
    """Where a file of the source tree is in the English site, if it is there."""
    for name, where in GATHERED.items():
        if file == ROOT / where:
            return name
    if file == ROOT / "README.md":
        return "index.md"
    if file.is_relative_to(DOCS) and file.suffix in (".md", ".png", ".svg", ".tsv"):
        return file.relative_to(DOCS).as_posix()
    if file.parent == ROOT / "benchmarks" / "results" and file.suffix == ".svg":
        return f"results/{file.name}"
    return None


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _copy(file: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, to)


_SHIM = re.compile(r'<script src="https://unpkg\.com/iframe-worker/shim"[^>]*></script>')
"""What Zensical's offline plugin loads from elsewhere; ``from_disk.js`` does the same from here."""

_STYLE = """\
/* Wide tables scroll by themselves, so that a page never does on a phone. */
.md-typeset table:not([class]) { font-size: .66rem; }
.md-typeset img { border: 1px solid var(--md-default-fg-color--lightest); border-radius: 4px; }
.md-typeset td code { word-break: break-word; }
"""


def configuration(language: str) -> str:
    """Zensical's, as TOML; JSON's strings, lists and tables in a line are TOML's too."""
    english = language == "en"
    if english:
        navigation = [{"dragoman": "index.md"}]
        navigation += [{title: pages} for title, pages in NAVIGATION.items()]  # type: ignore[misc]
    else:
        navigation = [{"dragoman": "index.md"}, *KOREAN]  # type: ignore[list-item]
    here, there = ("./", "./ko/index.html") if english else ("../index.html", "./")
    return f"""\
[project]
site_name = "dragoman"
site_description = "Train a translator on your own sentences, on an ordinary computer"
docs_dir = "{SOURCE.name}/{language}"
site_dir = "{SITE.name}{"" if english else "/ko"}"
use_directory_urls = false
nav = {_toml(navigation)}
extra_css = ["style.css"]
copyright = "Apache-2.0"

[project.theme]
language = {json.dumps(language)}
font = false
features = [
  "navigation.sections", "navigation.top", "navigation.footer", "content.code.copy", "toc.follow",
]

[[project.theme.palette]]
media = "(prefers-color-scheme: light)"
scheme = "default"

[[project.theme.palette]]
media = "(prefers-color-scheme: dark)"
scheme = "slate"

[project.plugins.search]

[project.plugins.offline]

[project.markdown_extensions.attr_list]
[project.markdown_extensions.tables]
[project.markdown_extensions.toc]
permalink = true
[project.markdown_extensions.pymdownx.highlight]
[project.markdown_extensions.pymdownx.superfences]

[[project.extra.alternate]]
name = "English"
link = {json.dumps(here)}
lang = "en"

[[project.extra.alternate]]
name = "한국어"
link = {json.dumps(there, ensure_ascii=False)}
lang = "ko"
"""


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def build() -> None:
    """Make the site anew."""
    gather()
    shutil.rmtree(SITE, ignore_errors=True)
    for language in ("en", "ko"):
        file = SOURCE.parent / f"docs-{language}.toml"
        file.write_text(configuration(language), encoding="utf-8")
        command = [sys.executable, "-m", "zensical", "build", "--clean", "-f", str(file)]
        subprocess.run(command, check=True, cwd=SOURCE.parent)
    for page in SITE.rglob("*.html"):
        up = "../" * (page.parent.name in LISTED)
        script = f'<script src="{up}from_disk.js"></script>'
        ours = _SHIM.sub(script, page.read_text(encoding="utf-8"))
        page.write_text(ours, encoding="utf-8")


class _Links(HTMLParser):
    """What a page of HTML names: places to go, what it loads, and where one can arrive."""

    def __init__(self) -> None:
        super().__init__()
        self.goes: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if "id" in given:
            self.anchors.add(given["id"])
        if "name" in given and tag == "a":
            self.anchors.add(given["name"])
        if tag == "a" and "href" in given:
            self.goes.append(given["href"])
        elif tag == "link" and given.get("rel") not in ("canonical", "prev", "next", "alternate"):
            self.loads.append(given.get("href", ""))
        elif "src" in given:
            self.loads.append(given["src"])


def problems(site: Path = SITE) -> Iterator[str]:
    """Links of a built site that lead nowhere, and whatever it would load from elsewhere."""
    read: dict[Path, _Links] = {}
    for page in sorted(site.rglob("*.html")):
        found = _Links()
        found.feed(page.read_text(encoding="utf-8"))
        read[page] = found
    for page, found in read.items():
        name = page.relative_to(site)
        if page.name == "404.html":
            continue
        for target in found.goes + found.loads:
            path, anchor = urldefrag(target)
            if re.match(r"[a-z]+:|//", path):
                if target in found.loads and not path.startswith("data:"):
                    yield f"{name}: loads {target}"
                continue
            file = (page.parent / unquote(path)).resolve() if path else page
            file = file / "index.html" if file.is_dir() else file
            if not file.exists():
                yield f"{name}: {target} is not there"
            elif anchor and file in read and unquote(anchor) not in read[file].anchors:
                yield f"{name}: {target} has no such heading"
    for style in site.rglob("*.css"):
        for url in re.findall(r"(?:url\(|@import\s+)[\"']?(https?:[^\"')]+)", style.read_text()):
            yield f"{style.relative_to(site)}: loads {url}"


def main() -> int:
    """Build, check, and say where the site is."""
    build()
    wrong = list(problems())
    for problem in wrong:
        print(problem, file=sys.stderr)
    if not wrong:
        print(f"The site is in {SITE}: open {SITE / 'index.html'}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
