"""Whatever number the page shows, it has written it in the one way of its language."""

from __future__ import annotations

import re

from every_view import PLACES, chart, go, with_charts
from opening import Open
from playwright.sync_api import expect

MARKED = """(() => {
  const write = Number.prototype.toLocaleString;
  Number.prototype.toLocaleString = function (...how) {
    return write.apply(this, how).replace(/[0-9]/g, (one) => String.fromCharCode(0xff10 + +one));
  };
})()"""
"""Digits that the formatter of the page has written are wide ones."""
UNMARKED = """() => {
  const theirs = 'pre, code, textarea, input, cite, footer, .says, .recipe, [translate=no], math,' +
    '.caption, .remark, .note:not(p.note:has(strong)), .text, :not(html)[lang], .brackets,' +
    'figcaption,' +
    'caption, thead th, .samples, .encodings, a, .title, .legend span, nav, .does, details > p,' +
    '.limits, .notice';
  const fixed = /(100|80|50)\u00a0%/g;  // said of every run
  const found = [];
  const walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const of = walker.currentNode.parentElement;
    const text = walker.currentNode.textContent.replace(fixed, '').trim();
    if (of.closest('dd, .panels td, svg') && /\\p{L}/u.test(text)) continue;
    if (!/[0-9]/.test(text) || of.closest(theirs) || !of.checkVisibility()) continue;
    found.push(text);
  }
  return found;
}"""
"""Texts with digits that something else wrote, but for what a run, a person or a formula says."""


def test_every_number_is_written_by_the_formatter(opened_kinds: Open) -> None:
    with opened_kinds() as page:
        page.add_init_script(MARKED)
        with_charts(page, chart("Loss", {"x": [1, 1000, 2000], "y": [3.0, 2.5, 1.25]}))
        page.reload()
        for view in PLACES:
            go(page, view)
            for summary in page.locator("main details:not(.opens) > summary:visible").all():
                summary.click()
            assert page.evaluate(UNMARKED) == [], view
            assert re.search("[\uff10-\uff19]", page.locator("main").inner_text()), view


def test_numbers_of_an_axis_have_equal_digits(opened_kinds: Open) -> None:
    """And none of them is longer than their steps ask for."""
    rates = {"x": [0, 1000, 2000], "y": [0.0, 0.002, 0.0003]}
    powers = {"x": [1, 10, 100], "y": [0.01, 0.1, 10.0]}
    with opened_kinds() as page:
        with_charts(page, chart("Rate", rates), chart("Loss", powers, log_y=True))
        page.get_by_role("tab", name="Run").click()
        expect(page.locator("figure")).to_have_count(2)
        axes = [
            figure.locator("svg text[text-anchor=end]").all_text_contents()[:-1]
            for figure in page.locator("figure", has=page.locator("figcaption")).all()
        ]
        assert len({len(one) for one in axes[0] if one != "0"}) == 1 and "0.0020" in axes[0]
        assert {"0.1", "1", "10"} <= set(axes[1])
