"""Prints the page of figures, from the catalogue of figures: python docs/figures.py"""

from __future__ import annotations

from dragoman.insight.figures.captions import captions
from dragoman.insight.figures.catalogue import FIGURES, Entry, Slider

_HEAD = """\
# Figures

Every figure that `dragoman figure NAME` computes, in the order of the page that `--all` writes.
`--set NAME=VALUE` changes what the table of a figure lists; in the browser these are sliders. [Look
inside](look.md) shows how to use them.
"""


def figures_page() -> str:
    """The whole page."""
    return _HEAD + "".join(_figure(name, FIGURES[name]) for name in captions())


def _figure(name: str, entry: Entry) -> str:
    words = captions()[name]
    page = f"\n## {name}\n\n**{words.title.english}.** {words.text.english}\n\n"
    page += f"Source: {words.source.english}. {_needs(entry)}\n"
    sliders = entry.sliders if isinstance(entry.sliders, tuple) else ()
    if sliders:
        page += "\n| `--set` | values | default |\n|---|---|---|\n"
        page += "".join(_slider(one) for one in sliders)
    elif entry.sliders:
        page += "\nYou can choose a layer and a head: `--set layer=1 --set head=2`.\n"
    return page


def _needs(entry: Entry) -> str:
    if entry.of_demo:
        return "It needs a run that has learned the demo's corpus."
    if entry.needs is None:
        return "It needs no run."
    lacks = {
        "encoder": "with an encoder",
        "decoder": "with a decoder",
        "cross": "whose decoder looks at a source",
        "patches": "that labels pictures",
        "spikes": "that transcribes recordings, with CTC",
        "learned places": "that labels pictures, with learned positions",
    }
    wants = [lacks[one] for one in entry.needs if one in lacks]
    return f"It looks into a run{' ' + ' and '.join(wants) if wants else ''}."


def _slider(slider: Slider) -> str:
    form = "{:g}".format
    values = [form(one) for one in slider.values]
    shown = ", ".join(values) if len(values) <= 12 else f"{values[0]} to {values[-1]}"
    return f"| `{slider.name}` | {shown} | {form(slider.start)} |\n"


if __name__ == "__main__":
    print(figures_page(), end="")
