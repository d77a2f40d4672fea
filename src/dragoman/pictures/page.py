"""A page that is one file: styles and scripts inside, no request to anybody, light and dark."""

from __future__ import annotations

from importlib import resources

from dragoman.pictures.labels import escape
from dragoman.pictures.theme import DARK, LIGHT, variables

_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)


def page_html(title: str, body: str, *, styles: str = "") -> str:
    """A whole HTML document around ``body``. ``title`` is plain text; ``styles`` come last."""
    style = (
        f":root{{{variables(LIGHT)}}}"
        f"@media (prefers-color-scheme:dark){{:root{{{variables(DARK)}}}}}\n"
        f"{part('report.css')}{styles}"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f'<link rel="icon" href="data:,">\n<title>{escape(title)}</title>\n'
        f"<style>{style}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )


def part(name: str) -> str:
    """A style sheet or script that lies beside this module."""
    return resources.files("dragoman.pictures").joinpath(name).read_text(encoding="utf-8")
