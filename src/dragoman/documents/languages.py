"""Whether a document is in the languages between which it is to be translated, by what it says."""

from __future__ import annotations

from dragoman.formats.units.document import BadDocument, Document
from dragoman.forms.languages import NAMES, base, name_of

_SAME = {"nb": "no", "nn": "no", "iw": "he", "in": "id"}


def fitted(document: Document, source: str | None, target: str) -> tuple[Document, list[str]]:
    """The document as it is translated from ``source`` (None: whichever it is in) into ``target``,
    and what is doubtful about its languages. Errors: ``BadDocument`` where it says that it is of
    others."""
    doubts = []
    for said in document.languages:
        wanted = source if said.side == "source" else target
        if wanted is None or not _differ(said.code, wanted):
            continue
        problem = (
            f"{said.where} says {name_of(said.code)}, and it is to be translated "
            f"{'from' if said.side == 'source' else 'into'} {name_of(wanted)}"
        )
        if said.is_binding:
            raise BadDocument(
                f"{problem}: choose a run of these languages, or correct the document if it is "
                "wrong about itself"
            )
        doubts.append(f"{problem}. If the document is right, choose another run")
    return document.between(source, target), doubts


def _differ(one: str, other: str) -> bool:
    """Whether two codes are of two languages, as far as both are known; a region says nothing."""
    both = {_SAME.get(base(code), base(code)) for code in (one, other)}
    return len(both) == 2 and both <= NAMES.keys()
