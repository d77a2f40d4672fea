"""Office documents, drawn by a seed, made by the libraries that also read them in the tests."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from typing import Any

from made_texts import Maker

MC = "http://schemas.openxmlformats.org/markup-compatibility/2006"
W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def docx(seed: int) -> bytes:
    from docx import Document
    from docx.oxml import parse_xml

    make = Maker(seed)
    document = Document()

    def runs(paragraph: Any) -> None:
        for _ in range(make.random.randint(1, 5)):
            run = paragraph.add_run(make.words() + make.one_of("", " ", ", ", "\t", "\n"))
            run.bold = make.one_of(True, None, None)  # type: ignore[arg-type]
            run.italic = make.one_of(True, None, None)  # type: ignore[arg-type]
            if make.chance(0.2):
                paragraph._p.append(parse_xml(make.one_of(*PIECES).format(text=make.words(), W=W)))
            if make.chance(0.1):
                run._r.append(parse_xml(text_box(make.words(), make.words())))

    for _ in range(make.random.randint(1, 6)):
        kind = make.random.randint(0, 3)
        if kind == 0:
            document.add_heading(make.words(), make.random.randint(1, 3))
        elif kind == 1:
            table = document.add_table(2, 2)
            for cell in (table.cell(0, 0), table.cell(1, 1)):
                runs(cell.paragraphs[0])
        else:
            runs(document.add_paragraph())
    section = document.sections[0]
    if make.chance():
        runs(section.header.paragraphs[0])
    if make.chance():
        section.footer.paragraphs[0].text = make.words()
    return saved(document)


LINK = (
    '<w:hyperlink xmlns:w="{W}" w:anchor="x"><w:r><w:rPr><w:u w:val="single"/></w:rPr>'
    '<w:t xml:space="preserve">{text} </w:t></w:r></w:hyperlink>'
)
PIECES = (
    LINK,
    '<w:ins xmlns:w="{W}" w:id="1" w:author="a"><w:r><w:t>{text}</w:t></w:r></w:ins>',
    '<w:del xmlns:w="{W}" w:id="2" w:author="a"><w:r><w:delText>{text}</w:delText></w:r></w:del>',
    '<w:bookmarkStart xmlns:w="{W}" w:id="3" w:name="here"/>',
    '<w:proofErr xmlns:w="{W}" w:type="spellStart"/>',
    '<w:fldSimple xmlns:w="{W}" w:instr=" PAGE "><w:r><w:t>7</w:t></w:r></w:fldSimple>',
)


def text_box(first: str, second: str) -> str:
    """A text box as Word writes it: once for itself, once for older programs."""
    inside = "<w:txbxContent><w:p><w:r><w:t>{}</w:t></w:r></w:p></w:txbxContent>"
    return (
        f'<mc:AlternateContent xmlns:mc="{MC}" xmlns:w="{W}" '
        'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape" '
        'xmlns:v="urn:schemas-microsoft-com:vml"><mc:Choice Requires="wps"><w:drawing><wps:txbx>'
        f"{inside.format(first)}</wps:txbx></w:drawing></mc:Choice><mc:Fallback><w:pict><v:textbox>"
        f"{inside.format(second)}</v:textbox></w:pict></mc:Fallback></mc:AlternateContent>"
    )


def pptx(seed: int) -> bytes:
    from pptx import Presentation
    from pptx.chart.data import CategoryChartData
    from pptx.enum.chart import XL_CHART_TYPE
    from pptx.oxml import parse_xml
    from pptx.util import Inches

    make = Maker(seed)
    slides = Presentation()
    inches = [Inches(1)] * 4

    def runs(paragraph: Any) -> None:
        for _ in range(make.random.randint(0, 5)):
            kind = make.random.randint(0, 9)
            if kind == 0:
                paragraph.add_line_break()
            elif kind == 1:
                paragraph._p.append(parse_xml(SLIDE_NUMBER))
            else:
                run = paragraph.add_run()
                run.text = make.words() + make.one_of("", " ", "  ", ", ", " & ", "\v")
                run.font.bold = make.one_of(True, None, None)  # type: ignore[arg-type]
                run.font.italic = make.one_of(True, None, None)  # type: ignore[arg-type]
                if make.chance(0.15):
                    run.hyperlink.address = "https://a.example/?x=1&y=2"

    def drawn(shapes: Any) -> None:
        kind = make.random.randint(0, 4)
        if kind == 0:
            for paragraph in shapes.add_textbox(*inches).text_frame.paragraphs:
                runs(paragraph)
        elif kind == 1:
            group = shapes.add_group_shape()
            runs(group.shapes.add_textbox(*inches).text_frame.paragraphs[0])
        elif kind == 2 and make.chance(0.3):
            chart = CategoryChartData()
            chart.categories = [make.words(1, 2), make.words(1, 2)]
            chart.add_series(make.words(), (1, 2))
            made = shapes.add_chart(XL_CHART_TYPE.PIE, *inches, chart).chart
            made.has_title = True
            made.chart_title.text_frame.paragraphs[0].add_run().text = make.words()

    for _ in range(make.random.randint(1, 3)):
        slide = slides.slides.add_slide(slides.slide_layouts[1])
        slide.shapes.title.text = make.words()
        body = slide.placeholders[1].text_frame
        body.text = make.words()
        for _ in range(make.random.randint(0, 3)):
            paragraph = body.add_paragraph()
            runs(paragraph)
        for _ in range(make.random.randint(0, 2)):
            drawn(slide.shapes)
        if make.chance():
            table = slide.shapes.add_table(2, 2, *inches).table
            table.cell(0, 0).text = make.words()
            runs(table.cell(1, 1).text_frame.paragraphs[0])
            if make.chance():
                table.cell(0, 0).merge(table.cell(0, 1))
        if make.chance():
            slide.notes_slide.notes_text_frame.text = make.sentence()
    return saved(slides)


SLIDE_NUMBER = (
    '<a:fld xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" type="slidenum" '
    'id="{B6F15528-21DE-4FAA-801E-634DDDAF4B2B}"><a:rPr lang="en-US"/><a:t>7</a:t></a:fld>'
)


def xlsx(seed: int) -> bytes:
    from openpyxl import Workbook
    from openpyxl.cell.rich_text import CellRichText, TextBlock
    from openpyxl.cell.text import InlineFont
    from openpyxl.chart import BarChart, Reference
    from openpyxl.comments import Comment
    from openpyxl.worksheet.datavalidation import DataValidation

    make = Maker(seed)
    book = Workbook()

    def rich() -> Any:
        pieces: list[Any] = []
        for _ in range(make.random.randint(1, 5)):
            font = InlineFont(b=make.chance(), i=make.chance(), rFont=make.one_of("Arial", "Times"))
            space = make.one_of("", " ", "  ", "\n")
            pieces += [make.words() + space, TextBlock(font, make.words() + space)]
        return CellRichText(*pieces)

    for number in range(make.random.randint(1, 2)):
        sheet = book.active if not number else book.create_sheet("Second sheet")
        sheet.title = f"A sheet {number}"
        for row in range(make.random.randint(1, 6)):
            sheet.cell(row + 1, 1).value = make.words()
            sheet.cell(row + 1, 2).value = row * 1.5
            sheet.cell(row + 1, 3).value = f'=CONCATENATE(A{row + 1}," {make.words()}")'
            told = [make.sentence(), rich(), "12 %", f" {make.words()}\n{make.words()} ", "a & <b>"]
            sheet.cell(row + 1, 4).value = make.random.choice(told)
            if make.chance(0.1):
                sheet.cell(row + 1, 4).comment = Comment(make.sentence(), "somebody")
            if make.chance(0.1):
                sheet.cell(row + 1, 5).hyperlink = "https://a.example/?x=1&y=2"
        if number:
            sheet.sheet_state = "hidden"
        if make.chance(0.2):
            sheet.merge_cells("F1:G2")
            sheet["F1"] = make.words()
        if make.chance(0.2):
            sheet.add_data_validation(DataValidation("list", formula1='"yes,no"', sqref="H1"))
            sheet.oddHeader.center.text = make.words()
        if make.chance(0.2):
            chart = BarChart()
            chart.title = make.words()
            chart.add_data(Reference(sheet, min_col=2, min_row=1, max_row=2))
            sheet.add_chart(chart, "J1")
    return saved(book)


def saved(document: Any) -> bytes:
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


def members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as opened:
        return {one.filename: opened.read(one) for one in opened.infolist()}


def packed(
    content: dict[str, bytes], change: Callable[[zipfile.ZipInfo], None] | None = None
) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return file.getvalue()


def odt(seed: int) -> bytes:
    from odf import text
    from odf.draw import Frame, TextBox
    from odf.opendocument import OpenDocumentText
    from odf.style import Style, TextProperties
    from odf.table import Table, TableCell, TableRow

    make = Maker(seed)
    document = OpenDocumentText()
    bold = Style(name="Bold", family="text")
    bold.addElement(TextProperties(fontweight="bold"))
    document.automaticstyles.addElement(bold)

    def filled(paragraph: Any, deep: int = 0) -> Any:
        for _ in range(make.random.randint(1, 5)):
            kind = make.random.randint(0, 12)
            if kind == 0 and deep < 2:
                paragraph.addElement(filled(text.Span(stylename=bold), deep + 1))
            elif kind == 1 and not deep:
                paragraph.addElement(filled(text.A(href="http://a.example/?x=1&y=2"), 2))
            elif kind == 2:
                paragraph.addElement(make.random.choice([text.Tab, text.LineBreak])())
            elif kind == 3 and not deep:
                note = text.Note(id=make.words(1, 1), noteclass="footnote")
                note.addElement(text.NoteCitation(text="1"))
                body = text.NoteBody()
                body.addElement(filled(text.P(), 1))
                note.addElement(body)
                paragraph.addElement(note)
            elif kind == 4:
                paragraph.addElement(text.PageNumber(text="7"))
            elif kind == 5:
                paragraph.addElement(text.S(c=2))
            elif kind == 6:
                paragraph.addElement(text.SoftPageBreak())
            elif kind == 7:
                paragraph.addElement(text.BookmarkStart(name="here"))
            elif kind == 8 and not deep:
                box = TextBox()
                box.addElement(filled(text.P(), 1))
                frame = Frame(width="2cm", height="2cm", anchortype="as-char")
                frame.addElement(box)
                paragraph.addElement(frame)
            else:
                space = make.one_of("", " ", "\n  ")
                paragraph.addText(f"{make.words()} & {make.words()}{space}")
        return paragraph

    for _ in range(make.random.randint(0, 2)):
        items = text.List()
        item = text.ListItem()
        item.addElement(filled(text.P()))
        items.addElement(item)
        document.text.addElement(items)
    for _ in range(make.random.randint(1, 5)):
        document.text.addElement(filled(text.P()))
    document.text.addElement(text.H(outlinelevel=1, text=make.words()))
    table, row, cell = Table(), TableRow(), TableCell()
    cell.addElement(filled(text.P()))
    row.addElement(cell)
    table.addElement(row)
    document.text.addElement(table)
    return saved(document)
