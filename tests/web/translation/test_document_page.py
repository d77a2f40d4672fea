"""Documents on the page: dropped or chosen, translated, and downloaded once."""

from __future__ import annotations

import base64
import io

import made_office
import pytest
from opening import Open, accessible_and_fits, in_every_look
from playwright.sync_api import Page, Route, expect

docx = pytest.importorskip("docx")

RECIPE = "demo"
SMALL = (
    "model.model_dim=32",
    "model.ffn_dim=1024",
    "model.decoder_layers=1",
    "text.vocabulary=300",
)
DROP = """([zone, name, data]) => {
  const bytes = Uint8Array.from(atob(data), (one) => one.charCodeAt(0));
  const files = new DataTransfer();
  files.items.add(new File([bytes], name));
  for (const kind of ["dragover", "drop"])
    zone.dispatchEvent(new DragEvent(kind, { dataTransfer: files, cancelable: true }));
}"""


def dropped(page: Page, label: str, name: str, data: bytes) -> None:
    zone = page.get_by_role("region", name=label).element_handle()
    page.evaluate(DROP, [zone, name, base64.b64encode(data).decode()])


@pytest.mark.parametrize(
    ("language", "label", "link"),
    [("en", "Translate a document", "Download"), ("ko", "문서 번역", "내려받기")],
)
def test_a_document_is_dropped_translated_and_opened(
    opened: Open, language: str, label: str, link: str
) -> None:
    with opened(language=language) as page:
        dropped(page, label, "contract.docx", made_office.docx(1))
        download = page.get_by_role("link", name=link)
        expect(download).to_be_visible()
        with page.expect_download() as taken:
            download.click()
        path = taken.value.path()
        assert taken.value.suggested_filename == "contract_de.docx"
        before = docx.Document(io.BytesIO(made_office.docx(1)))
        assert len(docx.Document(path).paragraphs) == len(before.paragraphs)
        expect(download).to_have_count(0)


def test_a_chosen_file_that_cannot_be_read_is_told_of(opened: Open) -> None:
    with opened() as page:
        page.set_input_files("input[type=file]", {
            "name": "a.pdf", "mimeType": "application/pdf", "buffer": b"%PDF-1.7",
        })  # fmt: skip
        expect(page.get_by_role("alert")).to_contain_text("pdftotext")


def test_how_far_it_is_is_shown_and_it_can_be_cancelled(opened: Open) -> None:
    with opened() as page:
        held: list[Route] = []
        page.route("**/translate_file", lambda route: held.append(route))
        dropped(page, "Translate a document", "a.txt", b"The dog sleeps.")
        region = page.get_by_role("region", name="Translate a document")
        expect(region).to_contain_text("Translating a.txt")
        expect(region.get_by_role("progressbar")).to_be_visible()
        region.get_by_role("button", name="Cancel").click()
        expect(region.get_by_role("progressbar")).to_have_count(0)
        page.unroute("**/translate_file")
        told = (
            'event: progress\ndata: {"done": 3, "of": 7}\n\n'
            'event: error\ndata: {"error": "no", "code": "too_slow", "values": {"seconds": 9}}\n\n'
        )
        page.route("**/translate_file", lambda route: route.fulfill(
            body=told, content_type="text/event-stream"
        ))  # fmt: skip
        dropped(page, "Translate a document", "a.txt", b"The dog sleeps.")
        expect(page.get_by_role("alert")).to_contain_text("no")


@in_every_look
def test_it_is_accessible_and_fits(opened: Open, look: dict[str, object]) -> None:
    with opened(**look) as page:
        label = "문서 번역" if look["language"] == "ko" else "Translate a document"
        dropped(page, label, "contract with a long name of its own.txt", b"The dog sleeps.")
        expect(page.locator("a.download")).to_be_visible()
        accessible_and_fits(page)
