"""Documents that attack their parser: (name, bytes) of each. See also `pdfs.py`.

Addresses in them lead to `TRAP`, where nothing may ever connect.
"""

import io
import random
import zipfile
from collections.abc import Callable, Iterator

from tests.hostile import pdfs
from tests.hostile.pdfs import TRAP
from tests.memory.files import samples

MEGABYTE = 2**20
SLIDE = "ppt/slides/slide1.xml"

_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_S = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_RELS = "http://schemas.openxmlformats.org/package/2006/relationships"

LAUGHS = "".join(
    f'<!ENTITY e{level} "{f"&e{level - 1};" * 10 if level else "ha" * 50}">' for level in range(10)
)
# The declarations and the entity to use.
DOCTYPES = {
    "laughs": (f"<!DOCTYPE x [{LAUGHS}]>", "&e9;"),
    "quadratic": (f'<!DOCTYPE x [<!ENTITY q "{"a" * 100_000}">]>', "&q;" * 20_000),
    "file": ('<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]>', "&f;"),
    "http": (f'<!DOCTYPE x [<!ENTITY h SYSTEM "http://{TRAP}/entity">]>', "&h;"),
    "parameter": (f'<!DOCTYPE x [<!ENTITY % p SYSTEM "http://{TRAP}/p"> %p;]>', ""),
    "dtd": (f'<!DOCTYPE x SYSTEM "http://{TRAP}/x.dtd">', ""),
}


def all_of_them() -> Iterator[tuple[str, bytes]]:
    """Yield all files. Each is made when it is its turn, as some are large."""
    for make in (
        *(_truncated, _damaged, _entities, _packages, _word, _sheets, _slides, _links),
        *(_texts, _pages, _mails, _books, pdfs.all_of_them),
    ):
        yield from make()


def light() -> Iterator[tuple[str, bytes]]:
    """Yield those that are made and read fast."""
    for make in (_truncated, _entities, _links, _books):
        yield from make()


def samples_of_each_kind() -> dict[str, bytes]:
    return {
        "pdf": samples.pdf(*(f"Page {number}" for number in range(9))),
        "docx": samples.word(),
        "pptx": samples.slides(),
        "xlsx": samples.workbook(),
        "epub": samples.epub(),
        "html": samples.HTML.encode(),
        "eml": samples.MAIL.encode(),
    }


def changed(data: bytes, change: Callable[[str, bytes], bytes | None], **more: bytes) -> bytes:
    """The zip file with its parts changed: None leaves one out. `more` is added."""
    output = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(data)) as source,
        zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as target,
    ):
        for name in source.namelist():
            content = change(name, source.read(name))
            if content is not None:
                target.writestr(name, content)
        for name, content in more.items():
            target.writestr(name, content)
    return output.getvalue()


def with_part(data: bytes, part: str, content: str | bytes) -> bytes:
    """The zip file with another content of `part`."""
    content = content.encode() if isinstance(content, str) else content
    return changed(data, lambda name, old: None if name == part else old, **{part: content})


def body(content: str, head: str = "") -> bytes:
    """A Word document with this body."""
    document = f'<w:document xmlns:w="{_W}"><w:body>{content}</w:body></w:document>'
    xml = f'<?xml version="1.0"?>{head}{document}'
    return with_part(samples.word(), "word/document.xml", xml)


def sheet(content: str, head: str = "") -> bytes:
    """A workbook with this sheet."""
    xml = f'<?xml version="1.0"?>{head}<worksheet xmlns="{_S}">{content}</worksheet>'
    return with_part(samples.workbook(), "xl/worksheets/sheet1.xml", xml)


def paragraph(text: str) -> str:
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"


def _truncated() -> Iterator[tuple[str, bytes]]:
    for kind, data in samples_of_each_kind().items():
        for tenth in range(1, 10):
            yield f"truncated {tenth}.{kind}", data[: len(data) * tenth // 10]


def _damaged() -> Iterator[tuple[str, bytes]]:
    for kind, data in samples_of_each_kind().items():
        for seed in range(6):
            chance, damaged = random.Random(seed), bytearray(data)
            for _ in range(1 + len(data) // 200):
                damaged[chance.randrange(len(data))] = chance.randrange(256)
            yield f"damaged {seed}.{kind}", bytes(damaged)


def _entities() -> Iterator[tuple[str, bytes]]:
    for name, (head, entity) in DOCTYPES.items():
        yield f"{name}.docx", body(paragraph(f"a {entity}"), head)
        text = f'<row r="1"><c r="A1" t="inlineStr"><is><t>a {entity}</t></is></c></row>'
        yield f"{name}.xlsx", sheet(f"<sheetData>{text}</sheetData>", head)
        strings = f'{head}<sst xmlns="{_S}"><si><t>a {entity}</t></si></sst>'
        yield f"{name} strings.xlsx", with_part(samples.workbook(), "xl/sharedStrings.xml", strings)
        slide = _slide().replace(b"<p:sld ", head.encode() + b"<p:sld ", 1)
        slide = slide.replace(b"Launch", entity.encode())
        yield f"{name}.pptx", with_part(samples.slides(), SLIDE, slide)
        opf = f"{head}<package><metadata><title>{entity}</title></metadata></package>"
        yield f"{name}.epub", with_part(samples.epub(), "OPS/book.opf", opf)
        chapter = f"{head}<html><body><p>a {entity}</p></body></html>"
        yield f"{name} chapter.epub", with_part(samples.epub(), "OPS/second.xhtml", chapter)
        yield f"{name}.html", f"<?xml version='1.0'?>{head}<html>a {entity}</html>".encode()


def _slide() -> bytes:
    return zipfile.ZipFile(io.BytesIO(samples.slides())).read(SLIDE)


def _packages() -> Iterator[tuple[str, bytes]]:
    zeros = b" " * (600 * MEGABYTE)
    yield "bomb.docx", with_part(samples.word(), "word/document.xml", zeros)
    del zeros
    # Below the ratio that is refused, above the memory.
    text = random.Random(1).randbytes(3_000).hex()
    for part, data in (
        ("word/document.xml", samples.word()),
        ("xl/sharedStrings.xml", samples.workbook()),
        ("ppt/slides/slide1.xml", samples.slides()),
        ("OPS/second.xhtml", samples.epub()),
    ):
        kind = {"w": "docx", "x": "xlsx", "p": "pptx", "O": "epub"}[part[0]]
        yield f"large part.{kind}", with_part(data, part, f"<a>{f'<b>{text}</b>' * 30_000}</a>")
    yield "names.docx", changed(samples.word(), lambda name, old: old, **{"../../x": b"a" * 100})
    yield (
        "many parts.docx",
        changed(
            samples.word(),
            lambda name, old: old,
            **{f"word/{n}.xml": b"<a/>" for n in range(20_000)},
        ),
    )
    yield (
        "no types.docx",
        changed(samples.word(), lambda name, old: None if name == "[Content_Types].xml" else old),
    )
    yield "empty types.docx", with_part(samples.word(), "[Content_Types].xml", "<Types/>")
    loop = (
        f'<Relationships xmlns="{_RELS}"><Relationship Id="rId1" Type="{_R}/officeDocument" '
        'Target="word/document.xml"/></Relationships>'
    )
    yield "loop.docx", with_part(samples.word(), "word/_rels/document.xml.rels", loop)
    inner = samples.zipped({"a.txt": "text"})
    for _ in range(20):
        inner = samples.zipped({"inner.zip": inner})
    yield "nested.zip", inner
    yield "ole.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(5_000)
    encrypted = "EncryptedPackage".encode("utf-16-le")
    yield "encrypted.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(5_000) + encrypted
    for kind, part in (("docx", "word"), ("xlsx", "xl"), ("pptx", "ppt")):
        macros = {f"{part}/vbaProject.bin": b"\xd0\xcf\x11\xe0" + b"Shell(calc)" * 1_000}
        data = samples_of_each_kind()[kind]
        yield f"macros.{kind[:3]}m", changed(data, lambda name, old: old, **macros)


def _word() -> Iterator[tuple[str, bytes]]:
    for name, opening, closing, count in (
        ("controls", "<w:sdt><w:sdtContent>", "</w:sdtContent></w:sdt>", 100),
        ("deep controls", "<w:sdt><w:sdtContent>", "</w:sdtContent></w:sdt>", 50_000),
        ("tables", "<w:tbl><w:tr><w:tc>", "</w:tc></w:tr></w:tbl>", 60),
        ("deep tables", "<w:tbl><w:tr><w:tc>", "</w:tc></w:tr></w:tbl>", 50_000),
        ("insertions", "<w:p><w:ins>", "</w:ins></w:p>", 100),
    ):
        yield f"{name}.docx", body(opening * count + paragraph("deep") + closing * count)
    yield "paragraphs.docx", body(paragraph("one") * 400_000)
    yield "runs.docx", body(f"<w:p>{'<w:r><w:t>a</w:t></w:r>' * 1_000_000}</w:p>")
    yield "one word.docx", body(paragraph("a" * 9_000_000))
    row = f"<w:tr>{f'<w:tc>{paragraph(chr(97))}</w:tc>' * 1_000}</w:tr>"
    yield "wide table.docx", body(f"<w:tbl>{row * 300}</w:tbl>")
    styles = "".join(
        f'<w:style w:styleId="s{n}"><w:name w:val="n{n}"/><w:basedOn w:val="s{(n + 1) % 5000}"/>'
        "</w:style>"
        for n in range(5_000)
    )
    yield (
        "style cycle.docx",
        with_part(
            samples.word(), "word/styles.xml", f'<w:styles xmlns:w="{_W}">{styles}</w:styles>'
        ),
    )


def _sheets() -> Iterator[tuple[str, bytes]]:
    cell = '<c r="{}" t="inlineStr"><is><t>a</t></is></c>'
    for name, place in (("far", "XFD1048576"), ("beyond", "ZZZZZZ99999999"), ("none", "?")):
        row = f'<sheetData><row r="1048576">{cell.format(place)}</row></sheetData>'
        yield f"{name} cell.xlsx", sheet(row)
    dimension = '<dimension ref="A1:XFD1048576"/>'
    yield (
        "dimension.xlsx",
        sheet(f'{dimension}<sheetData><row r="1">{cell.format("A1")}</row></sheetData>'),
    )
    yield (
        "row number.xlsx",
        sheet(f'<sheetData><row r="{10**12}">{cell.format("A1")}</row></sheetData>'),
    )
    wide = f"<row>{cell.format('XFD1')}</row>" * 20_000
    yield "wide rows.xlsx", sheet(f"<sheetData>{wide}</sheetData>")
    yield "empty rows.xlsx", sheet(f"<sheetData>{'<row/>' * 1_000_000}</sheetData>")
    yield "cells.xlsx", sheet(f"<sheetData>{'<row><c><v>1</v></c></row>' * 600_000}</sheetData>")
    yield "date.xlsx", sheet('<sheetData><row><c t="d"><v>99999999-99-99</v></c></row></sheetData>')
    yield "number.xlsx", sheet(f"<sheetData><row><c><v>{'9' * 100_000}</v></c></row></sheetData>")
    yield "index.xlsx", sheet('<sheetData><row><c t="s"><v>999999999</v></c></row></sheetData>')
    yield from many_sheets()


def many_sheets() -> Iterator[tuple[str, bytes]]:
    count = 10_000
    names = "".join(f'<sheet name="s{n}" sheetId="{n}" r:id="rId{n}"/>' for n in range(1, count))
    book = f'<workbook xmlns="{_S}" xmlns:r="{_R}"><sheets>{names}</sheets></workbook>'
    relations = "".join(
        f'<Relationship Id="rId{n}" Type="{_R}/worksheet" Target="worksheets/sheet1.xml"/>'
        for n in range(1, count)
    )
    many = with_part(samples.workbook(), "xl/workbook.xml", book)
    rels = f'<Relationships xmlns="{_RELS}">{relations}</Relationships>'
    yield "10000 sheets.xlsx", with_part(many, "xl/_rels/workbook.xml.rels", rels)


def _slides() -> Iterator[tuple[str, bytes]]:
    group = "<p:grpSp><p:nvGrpSpPr/><p:grpSpPr/>"
    for name, depth in (("groups", 100), ("deep groups", 50_000)):
        groups = f"{group * depth}{'</p:grpSp>' * depth}</p:spTree>".encode()
        slide = _slide().replace(b"</p:spTree>", groups)
        yield f"{name}.pptx", with_part(samples.slides(), SLIDE, slide)
    ids = "".join(f'<p:sldId id="{256 + n}" r:id="rId7"/>' for n in range(100_000)).encode()
    yield (
        "slides.pptx",
        changed(
            samples.slides(),
            lambda part, old: (
                old.replace(b"<p:sldIdLst>", b"<p:sldIdLst>" + ids)
                if part == "ppt/presentation.xml"
                else old
            ),
        ),
    )


def _links() -> Iterator[tuple[str, bytes]]:
    """Yield files with addresses that a program could open."""
    url = f"http://{TRAP}/link"
    for kind, part, relation in (
        ("docx", "word/_rels/document.xml.rels", "image"),
        ("docx", "word/_rels/settings.xml.rels", "attachedTemplate"),
        ("docx", "word/_rels/document.xml.rels", "footnotes"),
        ("xlsx", "xl/_rels/workbook.xml.rels", "externalLink"),
        ("xlsx", "xl/_rels/workbook.xml.rels", "sharedStrings"),
        ("pptx", "ppt/slides/_rels/slide1.xml.rels", "image"),
        ("pptx", "ppt/_rels/presentation.xml.rels", "slide"),
    ):
        link = (
            f'<Relationship Id="x1" Type="{_R}/{relation}" Target="{url}" TargetMode="External"/>'
        )
        data = samples_of_each_kind()[kind]
        rels = f'<Relationships xmlns="{_RELS}">{link}</Relationships>'
        if part in zipfile.ZipFile(io.BytesIO(data)).namelist():
            data = changed(
                data,
                lambda name, old, part=part, link=link: (
                    old.replace(b"</Relationships>", f"{link}</Relationships>".encode())
                    if name == part
                    else old
                ),
            )
        else:
            data = with_part(data, part, rels)
        yield f"link {relation}.{kind}", data
    tags = (
        f'<base href="{url}"><link rel=stylesheet href="{url}"><meta http-equiv=refresh '
        f'content="0;url={url}"><img src="{url}"><iframe src="{url}"></iframe><script src="{url}">'
        f'</script><object data="{url}"></object><video src="{url}"></video>text'
    )
    yield "links.html", f"<html><body>{tags}</body></html>".encode()
    chapter = f"<html><body>{tags}</body></html>"
    yield "links.epub", with_part(samples.epub(), "OPS/second.xhtml", chapter)
    outer = samples.MAIL.replace(
        "Content-Type: application/pdf", f'Content-Type: message/external-body; url="{url}"'
    )
    yield "links.eml", outer.encode()
    include = f'<x xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="{url}"/></x>'
    yield "include.epub", with_part(samples.epub(), "OPS/book.opf", include)


def _texts() -> Iterator[tuple[str, bytes]]:
    yield "columns.csv", b",".join([b"a"] * 1_000_000) + b"\n" + b",".join([b"1"] * 1_000_000)
    yield "rows.csv", b"a,b,c\n" + b"1,2,3\n" * 2_000_000
    yield "quote.csv", b'a,b\n"' + b"1,2\n" * 1_000_000
    yield "quotes.csv", b"a,b\n" + b'"""' * 3_000_000
    yield "header.csv", b",".join(b"column %d" % n for n in range(60)) + b"\n" + b"1,2\n" * 500_000
    yield "nul.csv", b"a,b\n1,\x00\n" * 1_000
    yield "headings.md", b"# a\n" * 500_000
    yield "deep headings.md", b"".join(b"#" * (1 + n % 6) + b" a\n" for n in range(500_000))
    yield "fences.md", b"```\n~~~\n" * 500_000
    yield "underlines.md", b"a\n===\n\n" * 500_000
    yield "one line.md", b"#" * 10_000_000
    yield "spaces.md", b"# " + b" " * 10_000_000
    yield "long.txt", b"a" * 49_000_000
    yield "too large.txt", b"a " * 26_000_000
    yield "surrogates.txt", b"\xff\xfe" + b"\x00\xd8" * 100_000
    yield "half.txt", b"\xff\xfea"
    yield "mark.txt", b"\xef\xbb\xbf"
    yield "binary.txt", b"text " * 100_000 + bytes(range(256)) * 1_000
    yield "invalid.txt", b"\xc3\x28\xe2\x82 " * 1_000_000
    yield "feeds.txt", b"a\x0c" * 1_000_000
    for seed in range(5):
        yield f"random {seed}.bin", random.Random(seed).randbytes(100_000)


def _pages() -> Iterator[tuple[str, bytes]]:
    head = b"<html><body>"
    for name, content in (
        ("deep", b"<div>" * 300_000 + b"text"),
        ("deep inline", b"<b>" * 300_000 + b"text"),
        ("deep tables", b"<table><tr><td>" * 20_000 + b"text"),
        ("lists", b"<ul><li>" * 50_000 + b"text"),
        ("headings", b"<h1>" * 200_000 + b"text"),
        ("headings closed", b"<h2>a</h2>" * 200_000),
        ("attributes", b"<p " + b"".join(b"a%d=1 " % n for n in range(300_000)) + b">text"),
        ("one attribute", b'<p title="' + b"a" * 9_000_000 + b'">text'),
        ("comment", b"<!--" + b"-" * 9_000_000 + b"text"),
        ("brackets", b"<" * 5_000_000),
        ("entities", b"&amp;&#x0;&#55555;&nope;" * 300_000),
        ("cells", b"<table>" + b"<tr>" + b"<td>a" * 500_000),
        ("pre", b"<pre>" + b"a\n" * 2_000_000),
        ("unclosed", b"<p><b><i>a" * 100_000),
        ("script", b"<script>" + b"</scrip" * 500_000 + b"text"),
        ("namespaces", b"<svg><math>" * 50_000 + b"text"),
    ):
        yield f"{name}.html", head + content
    yield "comments.html", b"<!-- -->" * 10_000 + head + b"text"
    yield "charset.html", b'<html><meta charset="unicode_escape"><body>\\x00 a'


def _mails() -> Iterator[tuple[str, bytes]]:
    head = b"From: a@b.de\nTo: c@d.de\nSubject: x\nMIME-Version: 1.0\n"
    multipart = b"".join(
        b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (n, n) for n in range(2_000)
    )
    yield "deep parts.eml", head + multipart + b"\ntext"
    part = b"--b\nContent-Type: text/plain\n\na\n"
    yield "parts.eml", head + b"Content-Type: multipart/mixed; boundary=b\n\n" + part * 50_000
    inner = b"Content-Type: message/rfc822\n\nFrom: a@b.de\n"
    yield "mails in mails.eml", head + inner * 2_000 + b"\ntext"
    yield "headers.eml", head + b"X: y\n" * 300_000 + b"\ntext"
    yield "long header.eml", head + b"X-Long: " + b"a " * 2_000_000 + b"\n\ntext"
    encoded = b"From: =?utf-8?q?=C3?= <" + b"=?utf-8?b?w6Q=?= " * 50_000 + b">\n"
    yield "encoded words.eml", b"To: a@b.de\nSubject: x\nDate: y\n" + encoded + b"\ntext"
    yield (
        "addresses.eml",
        head + b"Cc: " + b"(" * 5_000 + b"\nReply-To: " + b'"\\' * 5_000 + b"\n\nx",
    )
    yield "date.eml", head + b"Date: " + b"9" * 100_000 + b"\n\ntext"
    for name, fields in (
        ("charset", b"Content-Type: text/plain; charset=nope\n"),
        ("zlib", b"Content-Type: text/plain; charset=zlib_codec\n"),
        ("encoding", b"Content-Transfer-Encoding: nope\n"),
        ("base64", b"Content-Transfer-Encoding: base64\n"),
        ("quoted", b"Content-Transfer-Encoding: quoted-printable\n"),
        ("uuencode", b"Content-Transfer-Encoding: x-uuencode\n"),
        ("boundary", b"Content-Type: multipart/mixed\n"),
        ("parameters", b"Content-Type: text/plain; " + b"a*1*=b; " * 20_000 + b"\n"),
    ):
        yield f"{name}.eml", head + fields + b"\n\xff=E4=\n" + b"=E4\xe4?" * 100_000


def _books() -> Iterator[tuple[str, bytes]]:
    yield (
        "rights.epub",
        changed(samples.epub(), lambda name, old: old, **{"META-INF/rights.xml": b"<r/>"}),
    )
    path = (
        '<container><rootfiles><rootfile full-path="../../../etc/passwd"/></rootfiles></container>'
    )
    yield "path.epub", with_part(samples.epub(), "META-INF/container.xml", path)
    items = "".join(
        f'<item id="{n}" href="second.xhtml?{n}" media-type="application/xhtml+xml"/>'
        for n in range(100_000)
    )
    refs = "".join(f'<itemref idref="{n}"/>' for n in range(100_000))
    spine = f"<package><manifest>{items}</manifest><spine>{refs}</spine></package>"
    yield "spine.epub", with_part(samples.epub(), "OPS/book.opf", spine)
    same = "".join('<itemref idref="a"/>' for _ in range(200_000))
    manifest = (
        '<manifest><item id="a" href="second.xhtml" media-type="application/xhtml+xml"/></manifest>'
    )
    yield (
        "same chapter.epub",
        with_part(
            samples.epub(), "OPS/book.opf", f"<package>{manifest}<spine>{same}</spine></package>"
        ),
    )
    points = "<navPoint><navLabel><text>a</text></navLabel>" * 5_000
    yield "contents.epub", with_part(samples.epub(), "OPS/toc.ncx", f"<ncx>{points}</ncx>")
