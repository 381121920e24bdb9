"""PDFs that attack their parser: (name, bytes) of each."""

import random
import zlib
from collections.abc import Iterator

from tests.memory.files.samples import pdf, pdf_of

# An unused port that `file_reader` listens on.
TRAP = "127.0.0.1:38917"
PAGES = b"<</Type/Pages/Count 1/Kids[3 0 R]>>"
CATALOGUE = b"<</Type/Catalog/Pages 2 0 R>>"
MEGABYTE = 2**20


def all_of_them() -> Iterator[tuple[str, bytes]]:
    """Yield all PDFs."""
    for make in (_trees, _streams, _contents, _others):
        for name, data in make():
            yield f"{name}.pdf", data


def page(content: bytes, fields: bytes = b"", *more: bytes, filters: bytes = b"") -> bytes:
    """A PDF of one page with this content stream; `more` objects begin with number 6."""
    return pdf_of(
        [
            CATALOGUE,
            PAGES,
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R"
            b"/Resources<</Font<</F 5 0 R>>>>" + fields + b">>",
            b"<</Length %d%s>>stream\n%s\nendstream" % (len(content), filters, content),
            b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
            *more,
        ]
    )


def _trees() -> Iterator[tuple[str, bytes]]:
    yield "page tree cycle", pdf_of([CATALOGUE, b"<</Type/Pages/Count 9/Kids[2 0 R 2 0 R]>>"])
    yield (
        "two cycles",
        pdf_of(
            [
                CATALOGUE,
                b"<</Type/Pages/Count 9/Kids[3 0 R]>>",
                b"<</Type/Pages/Count 9/Kids[2 0 R]>>",
            ]
        ),
    )
    yield "count", pdf_of([CATALOGUE, b"<</Type/Pages/Count 2000000000/Kids[3 0 R]>>", b"<<>>"])
    yield "negative count", pdf_of([CATALOGUE, b"<</Type/Pages/Count -5/Kids[3 0 R]>>", b"<<>>"])
    yield "parent cycle", pdf_of([CATALOGUE, PAGES, b"<</Type/Page/Parent 3 0 R>>"])
    yield "references", pdf_of([CATALOGUE, b"3 0 R", b"2 0 R"])
    yield "root", pdf_of([b"1 0 R"])
    yield "no pages", pdf_of([b"<</Type/Catalog>>"])
    yield "100000 pages", pdf(*(["a"] * 100_000))
    yield (
        "same page",
        pdf_of(
            [
                CATALOGUE,
                b"<</Type/Pages/Count 100000/Kids[%s]>>" % (b"3 0 R " * 100_000),
                b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>",
            ]
        ),
    )
    deep = [b"<</Type/Pages/Count 1/Kids[%d 0 R]>>" % (n + 3) for n in range(5_000)]
    yield "deep tree", pdf_of([CATALOGUE, *deep, b"<</Type/Page>>"])
    outlines = (
        ("outline cycle", [b"<</First 7 0 R>>", b"<</Title(a)/Next 7 0 R/First 7 0 R>>"]),
        ("outline parent", [b"<</First 7 0 R>>", b"<</Title(a)/First 6 0 R>>"]),
        (
            "long outline",
            [
                b"<</First 7 0 R>>",
                *(b"<</Title(a)/Next %d 0 R/Dest[4 0 R]>>" % (n + 8) for n in range(60_000)),
            ],
        ),
        (
            "action cycle",
            [b"<</First 7 0 R>>", b"<</Title(a)/A 8 0 R>>", b"<</S/GoTo/Next 8 0 R>>"],
        ),
    )
    for name, objects in outlines:
        yield name, pdf("text", extra=objects, root="/Outlines 6 0 R")


def _streams() -> Iterator[tuple[str, bytes]]:
    flate = b"/Filter/FlateDecode"
    bomb = zlib.compress(b" " * (500 * MEGABYTE), 9)
    yield "flate bomb", page(bomb, filters=flate)
    twice = zlib.compress(bomb, 9)
    yield "two filters", page(twice, filters=b"/Filter[/FlateDecode/FlateDecode]")
    yield "50 filters", page(twice, filters=b"/Filter[%s]" % (b"/FlateDecode" * 50))
    text = zlib.compress(b"BT /F 9 Tf " + b"(some words)Tj 0 -9 Td " * 3_000_000 + b"ET", 9)
    yield "endless text", page(text, filters=flate)
    one = zlib.compress(b"BT /F 9 Tf (" + b"a" * 30_000_000 + b")Tj ET", 9)
    yield "one string", page(one, filters=flate)
    yield "length", page(b"BT ET", filters=b"/Length 99999999999")
    yield "length cycle", page(b"BT ET", filters=b"/Length 4 0 R")
    yield (
        "predictor",
        page(
            zlib.compress(bytes(1_000)),
            filters=flate + b"/DecodeParms<</Predictor 15/Columns 2147483647/Colors 9>>",
        ),
    )
    for name in (b"LZWDecode", b"ASCII85Decode", b"RunLengthDecode", b"CCITTFaxDecode", b"Crypt"):
        noise = random.Random(1).randbytes(200_000)
        yield f"noise {name.decode()}", page(noise, filters=b"/Filter/" + name)
    packed = b"1 0 2 0 " + b"<</Type/ObjStm>>"
    stream = b"<</Type/ObjStm/N 99999999/First 8/Extends 3 0 R/Length %d>>stream\n%s\nendstream"
    yield "object stream", pdf_of([CATALOGUE, PAGES, stream % (len(packed), packed)])


def _contents() -> Iterator[tuple[str, bytes]]:
    yield "arrays", page(b"[" * 2_000_000)
    yield "dictionaries", page(b"<<" * 1_000_000)
    yield "parentheses", page(b"BT /F 9 Tf (" + b"(" * 2_000_000 + b")Tj")
    yield "states", page(b"q " * 1_000_000 + b"BT /F 9 Tf (text)Tj ET")
    yield "marked content", page(b"/P BMC " * 500_000 + b"BT /F 9 Tf (text)Tj ET")
    yield "inline image", page(b"BI /W 100000 /H 100000 /BPC 8 /CS /RGB ID " + b"a" * 1_000)
    yield "deep arrays", pdf_of([CATALOGUE, PAGES, b"[" * 300_000])
    yield "deep objects", pdf_of([CATALOGUE, PAGES, b"<</a" * 300_000])
    form = (
        b"<</Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X %d 0 R>>>>/Length 5>>"
    )
    itself = form % 6 + b"stream\n/X Do\nendstream"
    resources = b"/Resources<</XObject<</X 6 0 R>>>>"
    yield "form in itself", page(b"/X Do", resources, itself)
    # Each form draws the next ten times: 10^9 in all.
    tenfold = b"/X Do " * 10
    forms = [
        b"<</Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X %d 0 R>>"
        b"/Font<</F 5 0 R>>>>/Length %d>>stream\n%s\nendstream" % (n + 7, len(tenfold), tenfold)
        for n in range(9)
    ]
    last = b"BT /F 9 Tf (a)Tj ET"
    forms.append(
        b"<</Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</Font<</F 5 0 R>>>>/Length %d>>"
        b"stream\n%s\nendstream" % (len(last), last)
    )
    yield "10^9 forms", page(b"/X Do", resources, *forms)
    glyph = b"<</Length 9>>stream\n/F 9 Tf Tj\nendstream"
    font = (
        b"<</Type/Font/Subtype/Type3/FontBBox[0 0 9 9]/FontMatrix[1 0 0 1 0 0]/FirstChar 97"
        b"/LastChar 97/Widths[9]/Encoding<</Differences[97/a]>>/CharProcs<</a 7 0 R>>"
        b"/Resources<</Font<</F 6 0 R>>>>>>"
    )
    text = b"BT /F 9 Tf (aaaa)Tj ET"
    yield "font in itself", page(text, b"/Resources<</Font<</F 6 0 R>>>>", font, glyph)
    ranges = b"1 beginbfrange <0000> <ffff> <0041> endbfrange " * 20_000
    unicode = b"<</Length %d>>stream\n%s\nendstream" % (len(ranges), ranges)
    mapped = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode 7 0 R>>"
    yield "unicode map", page(text, b"/Resources<</Font<</F 6 0 R>>>>", mapped, unicode)


def _others() -> Iterator[tuple[str, bytes]]:
    whole = pdf("text")
    yield "previous", whole.replace(b"/Root 1 0 R", b"/Root 1 0 R/Prev %d" % whole.index(b"xref"))
    yield "no table", whole[: whole.index(b"xref")]
    yield "only head", b"%PDF-1.7\n"
    yield "head twice", b"%PDF-1.7\n" * 100_000
    yield "late head", b"a" * 1_000 + whole
    yield "objects", b"%PDF-1.7\n" + b"1 0 obj\n<</Type/Catalog>>\nendobj\n" * 300_000
    yield "object number", whole.replace(b"5 0 obj", b"4294967295 0 obj")
    yield "box", page(b"BT /F 9 Tf (text)Tj ET", b"/MediaBox[0 0 1e30 1e30]")
    yield "box of letters", page(b"BT /F 9 Tf (text)Tj ET", b"/MediaBox[a b c d]")
    yield "unit", page(b"BT /F 9 Tf (text)Tj ET", b"/UserUnit 1e30")
    yield (
        "unknown encryption",
        whole.replace(b"/Root 1 0 R", b"/Root 1 0 R/Encrypt<</Filter/X/V 9>>"),
    )
    standard = (
        b"/Root 1 0 R/ID[(a)(b)]/Encrypt<</Filter/Standard/V 2/R 3/Length 128/P -4/O(%s)/U(%s)>>"
    )
    yield "encrypted", whole.replace(b"/Root 1 0 R", standard % (b"o" * 32, b"u" * 32))
    actions = f"/OpenAction<</S/JavaScript/JS(app.launchURL\\('http://{TRAP}/js'\\))>>"
    yield "javascript", pdf("text", root=actions)
    yield "uri", pdf("text", root=f"/OpenAction<</S/URI/URI(http://{TRAP}/uri)>>")
    yield "launch", pdf("text", root="/OpenAction<</S/Launch/F(/bin/true)>>")
    annotation = b"<</Type/Annot/Subtype/Widget/FT/Tx/V(a)/Rect[0 0 9 9]/Parent 6 0 R>>"
    annotations = b"/Annots[%s]" % (b"6 0 R " * 200_000)
    yield "annotations", page(b"BT /F 9 Tf (text)Tj ET", annotations, annotation)
    fields = "/AcroForm<</Fields[6 0 R]>>"
    yield "field cycle", pdf("text", extra=[b"<</Kids[6 0 R]/FT/Tx/T(a)>>"], root=fields)
    yield "forms of xml", pdf("text", root="/AcroForm<</XFA(<x/>)/Fields[]>>")
