"""Reading files of all kinds: the text, its places, and the reasons why there is none."""

import io
import re
import zipfile
from email.message import EmailMessage
from pathlib import Path

import docx
import pytest
from docx.oxml import OxmlElement, parse_xml
from docx.oxml.ns import qn
from PIL import Image, ImageDraw, ImageFont

from memory.files.reading import (
    DEFAULT,
    UnreadableFileError,
    explain,
    ocr,
    page_image,
    read_document,
    recognise,
)
from tests.hostile import files, text_files, wrapped_files
from tests.memory.files import samples


@pytest.fixture
def file(tmp_path: Path):
    def write(name: str, content: bytes | str) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def test_markdown_has_a_section_for_each_heading(file):
    text = "---\ntitle: Handbook\n---\nIntro\n\n# Leave\n\nTwo weeks.\n\n```\n# no heading\n```\n"
    path = file("a.md", text + "\nSick days\n---\n\nAsk Ana.\n")
    document = read_document(path, "a.md")
    assert (document.kind, document.title, document.page_count) == ("markdown", "Handbook", None)
    assert [(item.headings, item.text) for item in document.sections] == [
        ((), "Intro"),
        (("Leave",), "Two weeks.\n\n```\n# no heading\n```"),
        (("Leave", "Sick days"), "Ask Ana."),
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"])
def test_text_is_decoded(file, encoding):
    text = "Die Straße ist für alle da.\nDas gilt überall und für jeden, der hier lebt."
    document = read_document(file("a.txt", text.encode(encoding)), "a.txt")
    assert [item.text for item in document.sections] == [text]


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.txt", b"%PDF-1.7 ...", "pdf"),
        ("a.pdf", b"just text", "text"),
        ("a.md", b"<!DOCTYPE html><html><body>x</body></html>", "html"),
        ("a.py", b"print(1)", "code"),
        ("run", b"#!/bin/sh\necho 1\n", "code"),
        ("a.csv", b"a;b;c\n1;2;3\n", "csv"),
        ("a.csv", b"a\tb\n1\t2\n", "tsv"),
        ("table", b"a,b,c\n1,2,3\n4,5,6\n", "csv"),
        ("mail", b"From: a@b.de\nTo: c@d.de\nSubject: x\n\nHello\n", "email"),
        ("a.eml", b"Dear all: this is no mail.\n", "text"),
    ],
)
def test_content_decides_about_the_kind(file, name, content, kind):
    assert recognise(file(name, content), name) == kind


@pytest.mark.parametrize(
    ("content", "code"),
    [(b"\x89PNG\r\n", "unsupported"), (bytes(range(256)), "unsupported"), (b"", "no_text")],
)
def test_other_files_are_refused_with_a_reason(file, content, code):
    with pytest.raises(UnreadableFileError) as error:
        read_document(file("a.txt", content), "a.txt")
    assert error.value.code == code


HEAD = b"From: a@b.de\nTo: c@d.de\nSubject: x\nContent-Type: multipart/mixed; boundary=b\n\n"


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.epub", wrapped_files.locked(samples.epub(), "mimetype"), "encrypted"),
        ("a.docx", wrapped_files.locked(samples.word(), "docProps/thumbnail.jpeg"), "encrypted"),
        ("a.docx", files.with_part(samples.word(), "a.xml", " " * 2**22), "unpacked_too_large"),
        ("a.epub", wrapped_files.packed_by(wrapped_files.LZMA), "compression"),
        ("a.html", b"<html>" + b"<b>" * 3_000 + b"text", "too_deep"),
        ("a.epub", text_files.book({"a.html": "<html>" + "<b>" * 3_000}), "too_deep"),
        ("a.eml", HEAD + b"--b\n\na\n" * 1_100, "too_many_parts"),
        ("a.csv", b'a,b\n"' + b"x" * 21_000_000 + b'",1\n', "too_much_text"),
    ],
)
def test_a_hostile_file_is_refused_with_its_own_reason(file, name, content, reason):
    with pytest.raises(UnreadableFileError) as error:
        read_document(file(name, content), name)
    assert error.value.reason == reason
    assert explain(reason, DEFAULT) != reason


def test_a_workbook_with_many_sheets_says_how_many_are_left_out(file):
    for name, content in files.many_sheets():
        document = read_document(file(name, content), name)
        assert document.warnings == ("left_out_sheets:8999",)
        assert len(document.sections) == 1_000


def test_the_text_of_a_damaged_file_is_not_logged(file, caplog):
    caplog.set_level("INFO", "memory.files")
    sheet = "xl/worksheets/sheet1.xml"
    with zipfile.ZipFile(io.BytesIO(samples.workbook())) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts[sheet] = re.sub(rb'(t="n"[^>]*><v>)[^<]*', rb"\1private", parts[sheet])
    assert b"private" in parts[sheet]
    with pytest.raises(UnreadableFileError):
        read_document(file("a.xlsx", samples.zipped(parts)))
    [record] = caplog.records
    assert "damaged ValueError" in record.getMessage()
    assert "private" not in record.getMessage()


def test_a_long_cell_is_read_to_its_end(file):
    document = read_document(file("a.csv", "a,b\n" + "word " * 9_000 + "end,1\n"), "a.csv")
    assert document.sections[-1].text.endswith("end | 1")


def sections(document) -> list[tuple]:
    return [(item.label, item.page, item.headings, item.text) for item in document.sections]


def test_a_pdf_has_a_section_for_each_page(file):
    document = read_document(file("a", samples.pdf("First page", "", "Third page")), "a")
    assert (document.kind, document.page_count) == ("pdf", 3)
    assert sections(document) == [
        ("p. 1", 1, (), "First page"),
        ("p. 3", 3, (), "Third page"),
    ]
    assert document.warnings == ("empty_pages:1",)


def test_bookmarks_are_headings_of_pages(file):
    bookmarks = [
        b"<</Type/Outlines/First 11 0 R/Last 11 0 R/Count 1>>",
        b"<</Title(Chapter)/Parent 10 0 R/Dest[6 0 R/Fit]>>",
    ]
    data = samples.pdf("One", "Two", "Three", extra=bookmarks, root="/Outlines 10 0 R")
    document = read_document(file("a", data), "a")
    assert [item.headings for item in document.sections] == [(), ("Chapter",), ("Chapter",)]


def test_pages_after_a_page_with_several_bookmarks_belong_to_the_last(file):
    bookmarks = [
        b"<</Type/Outlines/First 11 0 R/Last 12 0 R/Count 2>>",
        b"<</Title(One)/Parent 10 0 R/Next 12 0 R/Dest[6 0 R/Fit]>>",
        b"<</Title(Two)/Parent 10 0 R/Prev 11 0 R/Dest[6 0 R/Fit]>>",
    ]
    data = samples.pdf("One", "Two", "Three", extra=bookmarks, root="/Outlines 10 0 R")
    document = read_document(file("a", data), "a")
    assert [item.headings for item in document.sections] == [(), ("One",), ("Two",)]


def test_a_page_of_a_pdf_as_an_image(file):
    path = file("a.pdf", samples.pdf("One", "Two"))
    image = Image.open(io.BytesIO(page_image(path, 2, 300)))
    assert image.width == 300
    assert len(image.getcolors(10**6)) > 1
    with pytest.raises(UnreadableFileError) as error:
        page_image(path, 3, 300)
    assert error.value.code == "no_page"


def test_word_keeps_headings_tables_and_insertions(file):
    document = read_document(file("a", samples.word()), "a")
    assert (document.kind, document.title) == ("docx", "Travel rules")
    assert sections(document) == [
        ("", None, (), "Who travels, books early."),
        ("", None, ("Trains",), "Second class below four hours."),
        ("", None, ("Trains", "Refunds"), "Trip | Limit\nDay | 120 EUR\n\nAsk Ana first."),
    ]


def test_a_paragraph_of_a_style_for_text_can_be_a_heading(file):
    document = docx.Document()
    heading = document.add_paragraph("Refunds", "Body Text")
    level = OxmlElement("w:outlineLvl")
    level.set(qn("w:val"), "0")
    heading._p.get_or_add_pPr().append(level)
    document.add_paragraph("Ask Ana first.")
    buffer = io.BytesIO()
    document.save(buffer)
    [section] = read_document(file("a", buffer.getvalue()), "a").sections
    assert (section.headings, section.text) == (("Refunds",), "Ask Ana first.")


def test_a_text_box_in_a_cell_is_read_once(file):
    document = docx.Document()
    table = document.add_table(rows=1, cols=2)
    left, right = table.rows[0].cells
    left.text = "Trip"
    box = "<w:txbxContent><w:p><w:r><w:t>120 EUR</w:t></w:r></w:p></w:txbxContent>"
    names = (
        'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
        'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    )
    right.paragraphs[0]._p.append(
        parse_xml(
            f"<w:r {names}><mc:AlternateContent><mc:Choice Requires='wps'>{box}</mc:Choice>"
            f"<mc:Fallback>{box}</mc:Fallback></mc:AlternateContent></w:r>"
        )
    )
    right.add_table(1, 1).cell(0, 0).text = "a day"
    output = io.BytesIO()
    document.save(output)
    [section] = read_document(file("a.docx", output.getvalue()), "a.docx").sections
    assert section.text.strip() == "Trip | 120 EUR a day"


def test_slides_have_titles_tables_and_notes(file):
    document = read_document(file("a", samples.slides()), "a")
    assert (document.kind, document.page_count) == ("pptx", 2)
    assert sections(document) == [
        ("Slide 1", 1, ("Launch",), "In May\nIn Lisbon\n\nNotes:\nThank Ana."),
        ("Slide 2", 2, (), "Item | Cost\nHall | 900"),
    ]


def test_charts_of_any_type_are_tables_and_formulas_text(file):
    [section] = read_document(file("a", samples.charts()), "a").sections
    assert section.text.split("\n") == [
        *("Costs", " | Share", "2025 05 | 25%", "2025 06 | 50%", "2026 05 | 75%"),
        *(" | Load", "1.5 | 40", "Energy E=mc²"),
    ]


def test_a_heading_with_nothing_below_it_is_text(file):
    text = "# One\n## Two\nText.\n## Three\n# Four\n"
    document = read_document(file("a.md", text), "a.md")
    assert [(item.headings, item.text) for item in document.sections] == [
        (("One", "Two"), "Text."),
        (("One", "Three"), "Three"),
        (("Four",), "Four"),
    ]


def test_the_values_of_a_form_are_text(file):
    field = b"<</Type/Annot/Subtype/Widget/FT/Tx/TU(Name)/T(n)/V(Ana)/Rect[0 0 99 99]>>"
    data = samples.pdf("Form", extra=[field], root="/AcroForm<</Fields[6 0 R]>>")
    data = data.replace(b"/Contents", b"/Annots[6 0 R]/Contents")
    document = read_document(file("a.pdf", data), "a.pdf")
    assert document.sections[0].text == "Form\nName: Ana"


def test_text_with_some_invalid_bytes_stays_utf_8(file):
    text = "Die Straße führt über Köln. " * 10
    document = read_document(file("a.txt", text.encode() + b"\xff"), "a.txt")
    assert document.sections[0].text == text + "\ufffd"


def test_long_sheets_repeat_the_header_row(file):
    document = read_document(file("a", samples.workbook(rows=200)), "a")
    assert document.kind == "xlsx"
    assert {item.label for item in document.sections} == {"Sheet Budget"}
    assert len(document.sections) > 2
    assert all(item.text.startswith("Item | Cost | Share\n") for item in document.sections)
    assert document.sections[0].text.split("\n")[1] == "Item number 0 | 12.5 | 25%"


def test_csv_with_semicolons(file):
    document = read_document(file("a.csv", 'Name;Note\nAna;"one; two"\n\n'), "a.csv")
    assert sections(document) == [("", None, (), "Name | Note\nAna | one; two")]


def test_html_without_scripts(file):
    document = read_document(file("a", samples.HTML), "a")
    assert (document.kind, document.title) == ("html", "Rooms")
    assert sections(document) == [
        ("", None, (), "Home"),
        ("", None, ("Rooms",), "Each room has a name."),
        (
            *("", None, ("Rooms", "List")),
            "Room | Seats\nOak hall | 8\n\n- Book early\n\na\n  b",
        ),
    ]


def test_a_book_in_the_order_of_its_spine(file):
    document = read_document(file("a", samples.epub()), "a")
    assert (document.kind, document.title) == ("epub", "Two tales")
    assert sections(document) == [
        ("", None, ("First",), "It began."),
        ("", None, ("Second",), "It ended."),
    ]


def test_a_mail_with_an_attachment_and_a_mail_in_it(file):
    document = read_document(file("a", samples.MAIL), "a")
    assert (document.kind, document.title) == ("email", "Minutes")
    first, second = document.sections
    assert "From: Jörg <joerg@example.org>" in first.text
    assert "Attachment: plan.pdf" in first.text
    assert first.text.endswith("\n\nWe meet in the café.")
    assert second.headings == ("Minutes", "Old news")
    assert second.text.endswith("The forwarded text.")


def test_a_mail_with_an_invitation_keeps_its_text(file):
    mail = EmailMessage()
    mail["From"], mail["To"] = "ana@example.org", "bo@example.org"
    mail["Subject"], mail["Date"] = "Minutes", "Fri, 27 Nov 2026 10:00:00 +0000"
    mail.set_content("<p>We meet in the café.</p>", subtype="html")
    mail.make_alternative()
    mail.add_alternative("BEGIN:VCALENDAR", subtype="calendar")
    [section] = read_document(file("a", mail.as_bytes()), "a").sections
    assert section.text.endswith("We meet in the café.")


@pytest.mark.parametrize(
    ("subtype", "charset", "text"),
    [("html", "koi8-r", "Встреча в кафе."), ("plain", "iso-2022-jp", "会議は五時です。")],
)
def test_a_mail_is_decoded_as_it_declares(file, subtype, charset, text):
    head = f"From: a@b.de\nTo: c@d.de\nSubject: x\nContent-Type: text/{subtype}; charset={charset}"
    content = head.encode() + b"\nContent-Transfer-Encoding: 8bit\n\n" + text.encode(charset)
    [section] = read_document(file("a.eml", content), "a.eml").sections
    assert section.text.endswith(text)


DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("test.docx", "docx", "python-docx was here too!"),
        ("par-hyperlinks.docx", "docx", "the first one here, the second one, and the third"),
        ("txt-text.pptx", "pptx", "Text run in table cell"),
        # May be read, but not printed.
        ("r6-owner-password.pdf", "pdf", "pdf encryption test"),
        ("hidden_sheets.xlsx", "xlsx", "a | b"),
        ("nested-table.html", "html", "column with nested table | column 2 | column 3"),
    ],
)
def test_documents_of_other_programs(name, kind, text):
    document = read_document(DATA / name, name)
    assert document.kind == kind
    assert any(text in section.text for section in document.sections)


def test_a_document_with_a_password_is_refused():
    with pytest.raises(UnreadableFileError) as error:
        read_document(DATA / "r6-user-password.pdf")
    assert error.value.code == "encrypted"


@pytest.fixture
def scan(file) -> Path:
    """A PDF with an image of text on its page."""
    image = Image.new("L", (1200, 300), 255)
    font = ImageFont.load_default(60)
    ImageDraw.Draw(image).text((60, 100), "The invoice is due in May", 0, font)
    output = io.BytesIO()
    image.save(output, "PDF", resolution=150)
    return file("scan.pdf", output.getvalue())


def test_a_scanned_page_is_refused_without_tesseract(scan, monkeypatch):
    monkeypatch.setattr(ocr, "tesseract", lambda: None)
    with pytest.raises(UnreadableFileError) as error:
        read_document(scan)
    assert error.value.code == "no_text"
    assert "images" in str(error.value)


def test_a_lease_is_renewed_before_each_scanned_page(scan, monkeypatch):
    monkeypatch.setattr(ocr, "tesseract", lambda: ("tesseract", "eng"))
    monkeypatch.setattr(ocr, "_page_text", lambda *args: "The invoice is due in May")
    renewed: list[int] = []
    document = read_document(scan, renew=lambda: renewed.append(1))
    # The second time, the document has no further page.
    assert (len(document.sections), len(renewed)) == (1, 2)


@pytest.mark.skipif(ocr.tesseract() is None, reason="tesseract is not installed")
def test_a_scanned_page_is_recognised_by_tesseract(scan):
    document = read_document(scan)
    assert sections(document) == [("p. 1", 1, (), "The invoice is due in May")]
    assert document.page_count == 1
