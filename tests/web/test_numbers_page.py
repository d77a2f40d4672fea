"""Whatever number the page shows, it has written it in the one way of its language."""

from __future__ import annotations

import re

from every_view import PLACES, chart, go, with_charts
from opening import Open

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
