"""Mails, books, tables, pages and source code that attack their parser: (name, bytes) of each."""

import base64
from collections.abc import Iterator

from tests.hostile import files
from tests.hostile.pdfs import TRAP
from tests.memory.files import samples

_HEAD = b"From: a@b.de\nTo: c@d.de\nSubject: x\nMIME-Version: 1.0\n"
_SVG = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">{}</svg>'


def all_of_them() -> Iterator[tuple[str, bytes]]:
    """Yield all files."""
    yield from light()
    yield from heavy()


def light() -> Iterator[tuple[str, bytes]]:
    """Yield those that are made and read fast."""
    for make in (_books, _pictures_in_books, _mails, _markup):
        yield from make()


def heavy() -> Iterator[tuple[str, bytes]]:
    """Yield those that are large, or that take their parser long."""
    for make in (_tables, _large_mails, _pages, _markdown, _code, _large_books):
        yield from make()


def book(chapters: dict[str, str | bytes], **package: str) -> bytes:
    """A book with these chapters in its spine. `package` replaces parts of its package file."""
    media = {"svg": "image/svg+xml", "opf": "application/oebps-package+xml"}
    items = "".join(
        f'<item id="c{number}" href="{name}" '
        f'media-type="{media.get(name.rpartition(".")[2], "application/xhtml+xml")}"/>'
        for number, name in enumerate(chapters)
    )
    refs = "".join(f'<itemref idref="c{number}"/>' for number in range(len(chapters)))
    opf = (
        f"<package><metadata/><manifest>{package.get('manifest', items)}</manifest>"
        f"<spine>{package.get('spine', refs)}</spine></package>"
    )
    inside = {f"OPS/{name}": content for name, content in chapters.items()}
    container = '<container><rootfiles><rootfile full-path="{}"/></rootfiles></container>'
    fixed: dict[str, str | bytes] = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": container.format(package.get("root", "OPS/book.opf")),
        "OPS/book.opf": opf,
    }
    return samples.zipped(fixed | inside)


def _books() -> Iterator[tuple[str, bytes]]:
    page = '<html><body><h1>{0}</h1><p>{0} <a href="{1}">next</a></p></body></html>'
    cycle = {f"c{n}.xhtml": page.format(n, f"c{(n + 1) % 50}.xhtml") for n in range(50)}
    yield "links in a cycle.epub", book(dict(cycle))
    for name, root in (
        ("container in itself", "META-INF/container.xml"),
        ("package is a chapter", "OPS/c0.xhtml"),
        ("package is a folder", "OPS/"),
        ("package is the type", "mimetype"),
        ("no package", "OPS/none.opf"),
        ("package is empty", ""),
        ("package by address", f"http://{TRAP}/book.opf"),
        ("absolute package", "/etc/passwd"),
    ):
        yield f"{name}.epub", book(dict(cycle), root=root)
    itself = '<item id="p" href="book.opf" media-type="application/xhtml+xml"/>'
    yield "package in its spine.epub", book({}, manifest=itself, spine='<itemref idref="p"/>')
    same = '<item id="p" href="c0.xhtml" media-type="application/xhtml+xml" fallback="p"/>'
    yield "fallback cycle.epub", book(dict(cycle), manifest=same, spine='<itemref idref="p"/>')
    ncx = '<item id="n" href="toc.ncx" media-type="application/x-dtbncx+xml"/>'
    point = '<navPoint><navLabel><text>a</text></navLabel><content src="toc.ncx"/></navPoint>'
    contents = {"toc.ncx": f"<ncx><navMap>{point}</navMap></ncx>", "c0.xhtml": page.format(0, "")}
    yield "contents in themselves.epub", book(dict(contents), manifest=ncx)
    spine = '<itemref idref="n"/>'
    yield "contents as a chapter.epub", book(dict(contents), manifest=ncx, spine=spine)
    rootfile = '<rootfile full-path="META-INF/container.xml"/>'
    containers = f"<container><rootfiles>{rootfile * 10_000}</rootfiles></container>"
    yield (
        "containers.epub",
        files.with_part(book(dict(cycle)), "META-INF/container.xml", containers),
    )
    outside = '<item id="p" href="../../../../etc/passwd" media-type="text/html"/>'
    yield "chapter outside.epub", book({}, manifest=outside, spine='<itemref idref="p"/>')
    fetched = f'<item id="p" href="http://{TRAP}/c" media-type="text/html"/>'
    yield "chapter by address.epub", book({}, manifest=fetched, spine='<itemref idref="p"/>')
    encrypted = "<encryption><EncryptedData/></encryption>"
    noise = {"c0.xhtml": bytes(range(256)) * 99}
    yield (
        "noise.epub",
        files.changed(book(dict(noise)), _same, **{"META-INF/encryption.xml": encrypted.encode()}),
    )
    inner = book(dict(cycle))
    for _ in range(10):
        inner = book({"c0.xhtml": inner})
    yield "books in books.epub", inner


def _pictures_in_books() -> Iterator[tuple[str, bytes]]:
    """Yield books with SVG, as chapters and in them."""
    use = '<use xlink:href="#g{}"/>' * 10
    uses = "".join(f'<g id="g{n}">{use.replace("{}", str(n + 1))}</g>' for n in range(9))
    for name, content in (
        ("use cycle", '<g id="a"><use xlink:href="#a"/></g>'),
        ("tenfold use", uses + '<text id="g9">ha</text>'),
        ("address", f'<image xlink:href="http://{TRAP}/i"/><text>a</text>'),
        ("script", f'<script>fetch("http://{TRAP}/s")</script><text>a</text>'),
        ("foreign", "<foreignObject><body>text</body></foreignObject>"),
        ("data", f'<image xlink:href="data:image/png;base64,{"A" * 900_000}"/>'),
        ("size", '<rect width="1e30" height="1e30"/><text>a</text>'),
        ("style", f'<style>@import url("http://{TRAP}/c");</style><text>a</text>'),
        ("animation", "<animate attributeName='x' dur='1ms' repeatCount='indefinite'/>" * 9_000),
        ("filter", "<filter><feTurbulence baseFrequency='1' numOctaves='99999'/></filter>" * 99),
    ):
        svg = _SVG.format(content)
        yield f"SVG {name}.epub", book({"a.svg": svg, "b.xhtml": f"<html><p>text</p>{svg}</html>"})
    head, entity = files.DOCTYPES["laughs"]
    yield "SVG laughs.epub", book({"a.svg": head + _SVG.format(f"<text>{entity}</text>")})


def _mails() -> Iterator[tuple[str, bytes]]:
    mixed = b"Content-Type: multipart/mixed; boundary=%b\n\n"
    nested = b"".join(mixed % (b"a" * n) + b"--%b\n" % (b"a" * n) for n in range(1, 60))
    yield "boundaries that begin alike.eml", _HEAD + nested + b"\ntext"
    yield "long boundary.eml", _HEAD + mixed % (b"a" * 100_000) + b"--%b\n" % (b"a" * 100_000)
    yield "only boundaries.eml", _HEAD + mixed % b"b" + b"--b\n" * 50_000
    yield "no end.eml", _HEAD + mixed % b"b" + b"--b\nContent-Type: text/plain\n\n" + b"--" * 50_000
    mail = b"Subject: inner\n\ntext"
    for _ in range(12):
        mail = (
            _HEAD + b"Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n"
        ) + base64.encodebytes(mail)
    yield "mail in base64.eml", mail
    yield "partial.eml", _HEAD + b"Content-Type: message/partial; id=a; number=1; total=9\n\ntext"
    yield "delivery.eml", _HEAD + b"Content-Type: message/delivery-status\n\n" + b"A: b\n\n" * 9_000
    parts = b"--b\nContent-Type: text/plain\n\n\n" * 900 + b"--b\nContent-Type: text/html\n\n<p>a"
    alternative = b"Content-Type: multipart/alternative; boundary=b\n\n"
    yield "alternatives.eml", _HEAD + alternative + parts
    for name in (b"../../../etc/passwd", b"a\\x00.txt", b"=?utf-8?q?=00?=", b"a" * 90_000):
        attached = b'Content-Disposition: attachment; filename="%b"\n\ntext' % name
        yield f"attachment {len(name)}.eml", _HEAD + attached
    for charset in (
        b"utf-7",
        b"utf-16",
        b"idna",
        b"unicode_escape",
        b"rot13",
        b"base64",
        b"undefined",
    ):
        text = b"Content-Type: text/plain; charset=%b\n\n+ADw-script+AD4- \\x00 \xff\xfe" % charset
        yield f"charset {charset.decode()}.eml", _HEAD + text
    yield "folded.eml", _HEAD + b"Subject: a\n" + b" a\n" * 90_000 + b"\ntext"
    yield (
        "zip attached.eml",
        _HEAD
        + (b"Content-Type: application/zip; name=a.zip\nContent-Transfer-Encoding: base64\n\n")
        + base64.encodebytes(samples.zipped({"a": b"a" * 9_000_000})),
    )
    refresh = b'<meta http-equiv=refresh content="0;url=http://%b/"><img src="http://%b/">text'
    html = refresh % (TRAP.encode(), TRAP.encode())
    yield "page.eml", _HEAD + b"Content-Type: text/html\n\n" + html


def _markup() -> Iterator[tuple[str, bytes]]:
    head, entity = files.DOCTYPES["laughs"]
    yield "laughs.svg", (head + _SVG.format(f"<text>{entity}</text>")).encode()
    yield "laughs.xml", f"<?xml version='1.0'?>{head}<x>{entity}</x>".encode()
    yield "frames.html", (f'<html><frameset><frame src="http://{TRAP}/">' * 99).encode()
    yield "page in a page.html", b'<html><iframe srcdoc="' + b"<iframe srcdoc=&quot;" * 9_000
    yield "plaintext.html", b"<html><plaintext>" + b"</plaintext><b>" * 9_000
    yield "templates.html", b"<html><template>" * 9_000 + b"text"
    yield "adoption.html", b"<html>" + b"<a><b><a><i>" * 5_000 + b"text"
    yield "misnested.html", b"<html>" + b"<b><p>" * 5_000 + b"</b>" * 5_000 + b"text"
    yield "nul.html", b"<html><p>a\x00b<scr\x00ipt>alert(1)</scr\x00ipt>"
    yield "instructions.html", b"<html>" + b"<?a b>" * 90_000 + b"text"
    yield "cdata.html", b"<html><![CDATA[" * 9_000 + b"text"
    yield "select.html", b"<html>" + b"<select><option>a" * 20_000 + b"text"
    yield "data.html", b'<html><img src="data:image/png;base64,' + b"A" * 9_000_000 + b'">text'


def _tables() -> Iterator[tuple[str, bytes]]:
    cell = 49 * files.MEGABYTE
    yield "one cell.csv", b"a,b\n" + b"x" * cell
    yield "one quoted cell.csv", b'a,b\n"' + b"x " * (cell // 2) + b'",1'
    yield "one cell of lines.csv", b'a,b\n"' + b"x\n" * (cell // 2) + b'",1'
    yield "one cell of quotes.csv", b'a,b\n"' + b'""' * (cell // 2) + b'",1'
    yield "ten cells.csv", b"a,b\n" + b",".join([b"y" * (cell // 11)] * 10)
    yield "delimiters.csv", b",;\t|" * (cell // 4)
    yield "utf-16.csv", "a,b\n1,2\n".encode("utf-16") * 500_000
    yield "carriage returns.csv", b"a,b\r" * 2_000_000
    yield "formulas.csv", b"name,=cmd|'/c calc'!A1\n" * 100_000
    yield "bars.csv", b"a | b | c,d\n" * 1_000_000


def _large_mails() -> Iterator[tuple[str, bytes]]:
    quoted = b"Content-Type: text/plain\nContent-Transfer-Encoding: quoted-printable\n\n"
    for name, content in (
        ("soft breaks", b"=\n" * 12_000_000),
        ("escapes", b"=41" * 12_000_000),
        ("half escapes", b"=" * 30_000_000),
        ("one line", b"a" * 40_000_000),
        ("spaces", b" " * 40_000_000),
        ("spaces and lines", (b" " * 1_000 + b"\n") * 30_000),
    ):
        yield f"quoted {name}.eml", _HEAD + quoted + content
    html = b"Content-Type: text/html\nContent-Transfer-Encoding: base64\n\n"
    yield "deep page.eml", _HEAD + html + base64.encodebytes(b"<div>" * 1_000_000 + b"text")
    encoded = b"Content-Type: text/plain\nContent-Transfer-Encoding: base64\n\n"
    yield "base64 of one line.eml", _HEAD + encoded + b"YWEK" * 9_000_000
    yield "base64 of noise.eml", _HEAD + encoded + b"!@#\n" * 9_000_000
    yield (
        "uuencoded.eml",
        _HEAD
        + (b"Content-Type: text/plain\nContent-Transfer-Encoding: x-uuencode\n\nbegin 644 a\n")
        + b"M" * 9_000_000,
    )
    mixed = b"Content-Type: multipart/mixed; boundary=b\n\n"
    yield "10000 parts.eml", _HEAD + mixed + b"--b\nContent-Type: text/html\n\n<p>a\n" * 10_000
    named = b"--b\nContent-Disposition: attachment; filename=a\n\n\n"
    yield "10000 attachments.eml", _HEAD + mixed + named * 10_000
    deep = b"".join(
        b"Content-Type: multipart/alternative; boundary=b%d\n\n--b%d\n" % (n, n)
        for n in range(100_000)
    )
    yield "100000 levels.eml", _HEAD + deep + b"\ntext"
    inner = b"--b\nContent-Type: message/rfc822\n\nSubject: a\n\ntext\n"
    yield "10000 mails.eml", _HEAD + mixed + inner * 10_000


def _pages() -> Iterator[tuple[str, bytes]]:
    head, count = b"<html><body>", 1_000_000
    for tag in (b"div", b"b", b"span", b"blockquote", b"font", b"ul><li", b"table><tr><td"):
        name = tag.decode().partition(">")[0]
        yield f"a million {name}.html", head + b"<%b>" % tag * count + b"text"
    yield "a million closed.html", head + b"<i>" * count + b"text" + b"</i>" * count
    yield "a million headings.html", head + b"<h1>a</h1><h6>b</h6>" * (count // 2)
    yield "a million links.html", head + b'<a href="a">a</a>' * count
    yield "a million lines.html", head + b"a<br>" * count
    yield "cells in cells.html", head + b"<table><tr><td>a" * 100_000
    yield "rows.html", head + b"<table>" + b"<tr><td>a<td>b" * count


def _markdown() -> Iterator[tuple[str, bytes]]:
    for name, content in (
        ("brackets", b"[" * 5_000_000),
        ("pictures", b"![" * 3_000_000),
        ("links", b"[a](" * 2_000_000),
        ("stars", b"*a " * 3_000_000),
        ("strong", b"**a" * 3_000_000 + b"**" * 3_000_000),
        ("quotations", b">" * 5_000_000 + b"a"),
        ("quoted lines", b"> a\n" * 2_000_000),
        ("lists", b"".join(b" " * n + b"- a\n" for n in range(5_000))),
        ("ticks", b"".join(b"`" * n + b" " for n in range(5_000))),
        ("definitions", b"".join(b"[a%d]: b\n" % n for n in range(500_000))),
        ("tables", b"|" * 5_000_000 + b"\n" + b"-|" * 2_000_000),
        ("comments", b"<!--" * 2_000_000),
        ("entities", b"&#0;&amp;" * 1_000_000),
        ("front matter", b"---\n" + b"title: " + b"a" * 9_000_000 + b"\n---\ntext"),
        ("open front matter", b"---\n" + b"title: a\n" * 1_000_000),
        ("fence", b"`" * 9_000_000 + b"\ntext"),
        ("long headings", (b"# " + b"a" * 900 + b"\n") * 20_000),
        ("underlined", (b"a" * 300 + b"\n" + b"=" * 5_000 + b"\n") * 2_000),
    ):
        yield f"{name}.md", content


def _code() -> Iterator[tuple[str, bytes]]:
    line = b"function a(b){return b+1};"
    yield "one line.js", line * 700_000
    yield "one long line.js", line * (49 * files.MEGABYTE // len(line))
    yield "one string.py", b'a = "' + b"\\x41" * 4_000_000 + b'"'
    yield "deep.json", b"[" * 9_000_000
    yield "one word.rs", b"a" * 19_000_000
    yield "braces.c", b"{" * 9_000_000 + b"}" * 9_000_000
    yield "minified.css", b"a{b:c}" * 3_000_000
    yield "wide letters.txt", ("\U0001f600" * 4_000_000).encode()
    yield "marks.txt", ("a" + "\u0301" * 1_000_000).encode()
    yield "right to left.txt", ("\u202e\u202d" * 1_000_000 + "text").encode()
    yield "separators.txt", ("\u2028\u2029\u0085" * 1_000_000 + "text").encode()
    yield "spaces.txt", b" " * 19_000_000 + b"text"
    yield "lines.log", b"\n" * 19_000_000 + b"text"


def _large_books() -> Iterator[tuple[str, bytes]]:
    page = "<html><body><h1>a</h1><p>b</p></body></html>"
    yield "10000 chapters.epub", book({f"{n}.xhtml": page for n in range(10_000)})
    yield "deep chapter.epub", book({"a.xhtml": "<html>" + "<div>" * 1_000_000 + "text"})
    linked = "".join(f'<a href="a.xhtml#{n}">a</a>' for n in range(500_000))
    yield "links to itself.epub", book({"a.xhtml": f"<html><body>{linked}"})
    svg = _SVG.format("<g><text>a</text>" * 300_000)
    yield "deep picture.epub", book({"a.xhtml": f"<html><body>{svg}text"})


def _same(name: str, old: bytes) -> bytes:
    return old
