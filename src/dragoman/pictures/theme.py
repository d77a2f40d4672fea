"""The look that all pictures and pages share, in light and dark: few colours and sizes, and what is
wrapped around drawn elements to make an SVG, or around a body to make a page.

Data is drawn in one ink whose strength is the number. A second ink tells apart, never decorates. A
page is one file: styles and scripts inside, no request to anybody.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources

from dragoman.pictures.labels import escape


@dataclass(frozen=True)
class Theme:
    """Colours of one scheme, as #rrggbb."""

    paper: str
    raised: str
    ink: str
    muted: str
    rule: str
    series: tuple[str, str, str, str]


LIGHT = Theme(
    paper="#fcfbf8",
    raised="#ffffff",
    ink="#1f2126",
    muted="#686c75",
    rule="#e5e2da",
    series=("#33508f", "#b5532b", "#3b7a57", "#85681c"),
)
DARK = Theme(
    paper="#15171b",
    raised="#1c1f24",
    ink="#e8e6e0",
    muted="#979ba5",
    rule="#2d3138",
    series=("#8fabf5", "#e8976d", "#82c39d", "#d3b564"),
)

FONT = (
    "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Noto Sans KR', 'DejaVu Sans', "
    "sans-serif"
)
FONT_SIZE = 13


def variables(theme: Theme) -> str:
    """The theme as CSS custom properties, for pages."""
    named = {"paper": theme.paper, "raised": theme.raised, "ink": theme.ink}
    named |= {"muted": theme.muted, "rule": theme.rule}
    named |= {f"series-{i}": colour for i, colour in enumerate(theme.series)}
    return "".join(f"--{name}:{colour};" for name, colour in named.items())


def _rules(theme: Theme) -> str:
    """The colour of each class that pictures use, without variables, which not every SVG reader
    knows."""
    fills = {"text": theme.ink, ".paper": theme.paper, ".muted": theme.muted, ".on": theme.paper}
    fills |= {f".f{i}": colour for i, colour in enumerate(theme.series)}
    strokes = {".rule": theme.rule, ".axis": theme.muted, ".halo": theme.paper}
    strokes |= {f".s{i}": colour for i, colour in enumerate(theme.series)}
    return "".join(
        f"{what}{{{kind}:{colour}}}"
        for kind, rules in (("fill", fills), ("stroke", strokes))
        for what, colour in rules.items()
    )


SVG_STYLE = (
    f"text{{font:{FONT_SIZE}px {FONT}}}.small{{font-size:11px}}.line{{fill:none}}"
    ".halo{paint-order:stroke;stroke-width:4px;stroke-linejoin:round}"
    f"{_rules(LIGHT)}@media (prefers-color-scheme:dark){{{_rules(DARK)}}}"
)
"""Style of an SVG that stands alone. Inside a page the page's own rules hold."""


def svg(body: str, width: float, height: float, title: str, *, alone: bool) -> str:
    """Wrap drawn elements. ``title`` (already escaped) is what a screen reader says.

    ``alone`` adds style and paper, for a file of its own; without, the page brings them.
    """
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{title}">'
    if alone:
        head += f'<style>{SVG_STYLE}</style><rect class="paper" width="100%" height="100%"/>'
    return f"{head}{body}</svg>\n"


def text_svg(
    text: str, x: float, y: float, kind: str = "", anchor: str = "", more: str = ""
) -> str:
    """A text, which is escaped here, and where its baseline begins; or has its middle or its end,
    by ``anchor``. ``kind``: its classes; ``more``: further attributes, a space before each."""
    of_kind = f'class="{kind}" ' if kind else ""
    anchored = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text {of_kind}x="{x:.1f}" y="{y:.1f}"{anchored}{more}>{escape(text)}</text>'


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
    """A style sheet or script next to this module."""
    return resources.files("dragoman.pictures").joinpath(name).read_text(encoding="utf-8")
