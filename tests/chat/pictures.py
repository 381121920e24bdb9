"""Image files as people and attackers send them."""

import io
import struct
import zlib

from PIL import Image


def picture(form: str = "PNG", size: tuple[int, int] = (40, 30), mode: str = "RGB", **options):
    """A file with a picture in it: red above, blue below."""
    image = Image.new("RGB", size, "blue")
    image.paste("red", (0, 0, size[0], size[1] // 2))
    return saved(image.convert(mode), form, **options)


def saved(image: Image.Image, form: str, **options) -> bytes:
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def opened(data: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_bomb(width: int = 20_000, height: int = 20_000) -> bytes:
    """Zeros without end: 400 megapixels in 400 kilobytes."""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = _chunk(b"IHDR", header) + _chunk(b"IDAT", zeros((width + 1) * height))
    return b"\x89PNG\r\n\x1a\n" + chunks + _chunk(b"IEND", b"")


def zeros(size: int) -> bytes:
    """So many of them as zlib would press them, in time and space for few."""
    many, rest = divmod(size, 2**20)
    once = _pressed(2**20, zlib.Z_FULL_FLUSH)
    # The sum at the end is Adler's, of nothing but zeros: RFC 1950, section 8.2.
    check = struct.pack(">HH", size % 65_521, 1)
    return b"\x78\xda" + once * many + _pressed(rest, zlib.Z_FINISH) + check


def _pressed(size: int, flush: int) -> bytes:
    press = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return press.compress(bytes(size)) + press.flush(flush)


def png_without_its_palette() -> bytes:
    """Whose pixels are numbers of colours that it does not tell."""
    header = struct.pack(">IIBBBBB", 4, 4, 8, 3, 0, 0, 0)
    pixels = _chunk(b"IDAT", zlib.compress(bytes(20)))
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + pixels + _chunk(b"IEND", b"")


def gif_of(frames: int) -> bytes:
    """An animation of one pixel."""
    screen = b"GIF89a" + struct.pack("<HHBBB", 1, 1, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff"
    frame = b"\x2c" + struct.pack("<HHHHB", 0, 0, 1, 1, 0) + b"\x02\x02\x44\x01\0"
    return screen + frame * frames + b"\x3b"


SVG = b'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"><script>1</script></svg>'
HTML = b"<!DOCTYPE html><html><body><script>alert(1)</script></body></html>"
HEIC = b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"
