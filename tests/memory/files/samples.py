"""Small documents of each kind, made by the libraries or by hand."""

import io
import zipfile
from collections.abc import Sequence

import docx
import openpyxl
import pptx
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from pptx.chart.data import CategoryChartData, XyChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.oxml import parse_xml
from pptx.oxml.ns import qn as chart_qn

# As PowerPoint writes a text with a formula.
FORMULA = (
    '<mc:AlternateContent xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    ' xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
    ' xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
    ' xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math">'
    "<mc:Choice Requires='a14'><p:sp><p:txBody><a:p><a:r><a:t>Energy </a:t></a:r>"
    "<m:oMath><m:r><m:t>E=mc²</m:t></m:r></m:oMath></a:p></p:txBody></p:sp></mc:Choice>"
    "<mc:Fallback><p:sp><p:txBody><a:p><a:r><a:t>Energy </a:t></a:r></a:p></p:txBody></p:sp>"
    "</mc:Fallback></mc:AlternateContent>"
)


def pdf(*pages: str, extra: Sequence[bytes] = (), root: str = "") -> bytes:
    """A PDF with a line of text on each page: objects 4, 6, and so on.

    `extra` objects follow them, and `root` is added to the catalogue.
    """
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        f"<</Type/Catalog/Pages 2 0 R{root}>>".encode(),
        f"<</Type/Pages/Count {len(pages)}/Kids[{kids}]>>".encode(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    for number, text in enumerate(pages):
        stream = f"BT /F 12 Tf 72 700 Td ({text}) Tj ET".encode()
        objects += [
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents {5 + 2 * number} 0 R"
            "/Resources<</Font<</F 3 0 R>>>>>>".encode(),
            b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream),
        ]
    return pdf_of([*objects, *extra])


def pdf_of(objects: Sequence[bytes]) -> bytes:
    """A PDF of numbered objects, the first of which is the catalogue."""
    data, places = bytearray(b"%PDF-1.7\n"), []
    for number, content in enumerate(objects, start=1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer<</Root 1 0 R/Size %d>>\nstartxref\n%d\n%%%%EOF"
    size = len(objects) + 1
    return (
        bytes(data)
        + b"xref\n0 %d\n0000000000 65535 f \n%s" % (size, table)
        + end % (size, len(data))
    )


def word() -> bytes:
    document = docx.Document()
    document.core_properties.title = "Travel rules"
    document.add_paragraph("Who travels, books early.")
    document.add_heading("Trains", 1)
    document.add_paragraph("Second class below four hours.")
    document.add_heading("Refunds", 2)
    table = document.add_table(rows=0, cols=2)
    for row in [("Trip", "Limit"), ("Day", "120 EUR")]:
        for cell, text in zip(table.add_row().cells, row, strict=True):
            cell.text = text
    paragraph = document.add_paragraph("Ask ")
    # As Word records changes: an insertion and a deletion.
    for tag, text_tag, text in (("w:ins", "w:t", "Ana first."), ("w:del", "w:delText", "Bo.")):
        change, run, words = OxmlElement(tag), OxmlElement("w:r"), OxmlElement(text_tag)
        words.text = text
        run.append(words)
        change.append(run)
        paragraph._p.append(change)
    assert paragraph._p.find(qn("w:ins")) is not None
    return _saved(document)


def slides() -> bytes:
    presentation = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[1])
    slide.shapes.title.text = "Launch"
    slide.placeholders[1].text = "In May\nIn Lisbon"
    slide.notes_slide.notes_text_frame.text = "Thank Ana."
    slide = presentation.slides.add_slide(presentation.slide_layouts[6])
    table = slide.shapes.add_table(2, 2, 0, 0, 10**6, 10**6).table
    for place, text in {(0, 0): "Item", (0, 1): "Cost", (1, 0): "Hall", (1, 1): "900"}.items():
        table.cell(*place).text = text
    return _saved(presentation)


def charts() -> bytes:
    """A slide with a chart of months and costs, one of pairs, and a formula in two forms."""
    presentation = pptx.Presentation()
    shapes = presentation.slides.add_slide(presentation.slide_layouts[6]).shapes
    costs = CategoryChartData(number_format="0%")
    for year, months in (("2025", ("05", "06")), ("2026", ("05",))):
        level = costs.add_category(year)
        for month in months:
            level.add_sub_category(month)
    costs.add_series("Share", (0.25, 0.5, 0.75))
    bars = shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, 0, 0, 10**6, 10**6, costs).chart
    bars.chart_title.text_frame.text = "Costs"
    # python-pptx does not know this type.
    [plot] = bars._chartSpace.iter(chart_qn("c:barChart"))
    plot.tag = chart_qn("c:area3DChart")
    pairs = XyChartData()
    pairs.add_series("Load").add_data_point(1.5, 40)
    shapes.add_chart(XL_CHART_TYPE.XY_SCATTER, 0, 0, 10**6, 10**6, pairs)
    shapes._spTree.append(parse_xml(FORMULA))
    return _saved(presentation)


def workbook(rows: int = 2) -> bytes:
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Budget"
    sheet.append(["Item", "Cost", "Share"])
    for number in range(rows):
        sheet.append([f"Item number {number}", 12.5 + number, 0.25])
        sheet.cell(number + 2, 3).number_format = "0%"
    book.create_sheet("Empty")
    return _saved(book)


def epub() -> bytes:
    return zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": (
                '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
                '<rootfile full-path="OPS/book.opf"/></rootfiles></container>'
            ),
            "OPS/book.opf": (
                '<package xmlns="http://www.idpf.org/2007/opf"><metadata>'
                '<title xmlns="http://purl.org/dc/elements/1.1/">Two tales</title></metadata>'
                '<manifest><item id="b" href="second.xhtml" media-type="application/xhtml+xml"/>'
                '<item id="a" href="first%20one.xhtml" media-type="application/xhtml+xml"/>'
                '</manifest><spine><itemref idref="a"/><itemref idref="b"/></spine></package>'
            ),
            "OPS/second.xhtml": "<html><body><h1>Second</h1><p>It ended.</p></body></html>",
            "OPS/first one.xhtml": "<html><body><h1>First</h1><p>It began.</p></body></html>",
        }
    )


def zipped(files: dict[str, str | bytes]) -> bytes:
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return output.getvalue()


HTML = """<!doctype html><html><head><title>Rooms</title><style>p {}</style></head><body>
<nav><a href="/">Home</a></nav><h1>Rooms</h1><p>Each room has <b>a name</b>.</p>
<script>var hidden = 1;</script>
<h2>List</h2><table><tr><th>Room</th><th>Seats</th></tr><tr><td>Oak<br>hall</td><td>8</td></tr></table>
<ul><li>Book early</li></ul><pre>a
  b</pre></body></html>"""

MAIL = """From: =?utf-8?q?J=C3=B6rg?= <joerg@example.org>
To: ana@example.org
Subject: Minutes
Date: Tue, 3 Mar 2026 10:00:00 +0100
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=outer

--outer
Content-Type: multipart/alternative; boundary=inner

--inner
Content-Type: text/plain; charset=iso-8859-1
Content-Transfer-Encoding: quoted-printable

We meet in the caf=E9.
--inner
Content-Type: text/html

<p>We meet in HTML.</p>
--inner--
--outer
Content-Type: application/pdf
Content-Disposition: attachment; filename="plan.pdf"
Content-Transfer-Encoding: base64

JVBERi0=
--outer
Content-Type: message/rfc822

From: bo@example.org
To: joerg@example.org
Subject: Old news
Date: Mon, 2 Mar 2026 10:00:00 +0100

The forwarded text.
--outer--
"""


def _saved(document) -> bytes:
    output = io.BytesIO()
    document.save(output)
    return output.getvalue()
