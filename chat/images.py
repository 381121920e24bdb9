"""Images on their way in: known by their content, never by their name, and made anew.

What comes out holds the picture and nothing else of the file it came in.
"""

import hashlib
import io
import struct
import threading
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from django.utils.text import format_lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from PIL import ExifTags, Image, UnidentifiedImageError

MOST_BYTES = 20_000_000
# A phone's 50-megapixel photo is 8,192 × 6,144. As Pillow holds it that is 200 MB, and twice that
# while one with transparency is scaled.
MOST_PIXELS = 52_000_000
MOST_FRAMES = 1_000
# Progressive JPEGs have about ten. Each scan costs a pass over the whole image:
# https://libjpeg-turbo.org/pmwiki/uploads/About/TwoIssueswiththeJPEGStandard.pdf
MOST_SCANS = 100
LONGEST_SIDE = 2048  # pixels
QUALITY = 85
# What was drawn without loss stays so, and its letters sharp, while it takes no more than this.
SHARP_BYTES = 1_000_000
FORMATS = ("PNG", "JPEG", "WEBP", "GIF")

# Pillow refuses what has more than twice this, and only warns of what has more than this.
Image.MAX_IMAGE_PIXELS = MOST_PIXELS // 2
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)

# What Pillow raises for a damaged file, by format and place of the damage.
DAMAGED = (
    *(OSError, SyntaxError, ValueError, EOFError, TypeError, struct.error, zlib.error),
    # Of a palette that is not there.
    AssertionError,
)

# The turn that brings an image upright, by its EXIF orientation.
UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}

# Any number of people may upload at once; the memory for one decoded image is there once.
_one_at_a_time = threading.Lock()


class Refused(Exception):
    """An image that is not taken; the text says why, for people."""


@dataclass(frozen=True)
class Encoded:
    """An image made anew: its file, and what it is. Width and height are in pixels."""

    data: bytes
    media_type: str
    width: int
    height: int
    sha256: str


def reencode(data: bytes) -> Encoded:
    """The picture in the file `data` (PNG, JPEG, WebP, or the first frame of a GIF), and no more.

    Upright, at most LONGEST_SIDE pixels a side, without metadata. Raises Refused.
    """
    _refuse_by_size(data)
    with _one_at_a_time:
        try:
            picture, lossless = _picture(data)
            written, media_type = _written(picture, lossless)
        except Image.DecompressionBombError as error:
            raise Refused(_TOO_LARGE) from error
        except UnidentifiedImageError as error:
            raise Refused(_what_else(data)) from error
        except DAMAGED as error:
            raise Refused(_BROKEN) from error
    width, height = picture.size
    return Encoded(written, media_type, width, height, hashlib.sha256(written).hexdigest())


TOO_BIG = format_lazy(_("An image may have at most {most} MB."), most=MOST_BYTES // 1_000_000)
_BROKEN = _("The image is damaged, or only a part of it arrived.")
_TOO_LARGE = format_lazy(
    _("An image may have at most {most} megapixels."), most=MOST_PIXELS // 1_000_000
)
_TOO_LONG = format_lazy(_("An animation may have at most {most} frames."), most=f"{MOST_FRAMES:,}")


def seems_one(head: bytes) -> bool:
    """Whether a file that begins with `head` is, at first sight, of one of FORMATS."""
    return head.startswith((b"\x89PNG", b"\xff\xd8\xff", b"GIF8")) or head[8:12] == b"WEBP"


def _refuse_by_size(data: bytes) -> None:
    """Raises Refused for what would take too long or too much before a pixel is decoded."""
    if not data:
        raise Refused(_("The file is empty."))
    if len(data) > MOST_BYTES:
        raise Refused(TOO_BIG)
    # Entropy-coded data never holds this marker: 0xFF is followed by a zero there.
    if data.startswith(b"\xff\xd8") and data.count(b"\xff\xda") > MOST_SCANS:
        raise Refused(_("This JPEG is built in more passes than any camera makes."))
    if data.startswith(b"GIF8") and sum(1 for _ in _gif_frames(data)) > MOST_FRAMES:
        raise Refused(_TOO_LONG)


def _gif_frames(data: bytes) -> Iterator[int]:
    """Where the frames of a GIF begin, one more than are allowed at most.

    https://www.w3.org/Graphics/GIF/spec-gif89a.txt
    """
    found = 0
    at = 13 + _colours(data, 10)
    while at < len(data) and found <= MOST_FRAMES:
        if data[at] == 0x2C:
            yield at
            found += 1
            at += 11 + _colours(data, at + 9)
        elif data[at] == 0x21:
            at += 2
        else:
            return
        while at < len(data) and data[at]:
            at += 1 + data[at]
        at += 1


def _colours(data: bytes, flags: int) -> int:
    """The bytes of the colour table that the flags at `flags` tell of."""
    packed = data[flags] if flags < len(data) else 0
    return 3 << ((packed & 7) + 1) if packed & 0x80 else 0


def _picture(data: bytes) -> tuple[Image.Image, bool]:
    """The first frame upright and scaled, as RGB or RGBA, and whether its file had no losses."""
    with Image.open(io.BytesIO(data), formats=FORMATS) as file:
        # Pillow counts a GIF's frames by reading all of them: those were counted above.
        if file.format != "GIF" and getattr(file, "n_frames", 1) > MOST_FRAMES:
            raise Refused(_TOO_LONG)
        turn = UPRIGHT.get(_orientation(file))
        if file.mode in ("L", "RGB"):
            # Before it is converted: a JPEG is then decoded no larger than needed.
            file.thumbnail((LONGEST_SIDE, LONGEST_SIDE), Image.Resampling.LANCZOS)
        picture = _in_plain_colours(file)
        lossless = file.format in ("PNG", "GIF")
    picture.thumbnail((LONGEST_SIDE, LONGEST_SIDE), Image.Resampling.LANCZOS)
    if turn is not None:
        picture = picture.transpose(turn)
    if picture.mode == "RGBA" and picture.getchannel("A").getextrema() == (255, 255):
        picture = picture.convert("RGB")
    # Pillow writes comments and colour profiles of what it read into what it saves.
    picture.info = {}
    return picture, lossless


def _orientation(file: Image.Image) -> int:
    try:
        return file.getexif().get(ExifTags.Base.Orientation, 1)
    except DAMAGED:
        return 1


def _in_plain_colours(file: Image.Image) -> Image.Image:
    """A copy in RGB or RGBA, whatever the file's own colours are."""
    if file.mode.startswith("I"):
        # Sixteen bits of grey, which Pillow's own conversion would clip to white.
        return file.point(lambda grey: grey * (1 / 256)).convert("L").convert("RGB")
    return file.convert("RGBA" if file.has_transparency_data else "RGB")


def _written(picture: Image.Image, lossless: bool) -> tuple[bytes, str]:
    """The picture as a file, and its media type."""
    if lossless:
        png = _saved(picture, "PNG")
        if len(png) <= SHARP_BYTES:
            return png, "image/png"
    if picture.mode == "RGBA":
        return _saved(picture, "WEBP", quality=QUALITY), "image/webp"
    return _saved(picture, "JPEG", quality=QUALITY, optimize=True), "image/jpeg"


def _saved(picture: Image.Image, form: str, **options: object) -> bytes:
    file = io.BytesIO()
    picture.save(file, form, **options)
    return file.getvalue()


def _what_else(data: bytes) -> str:
    """Why a file that is none of FORMATS is refused, by what it seems to be."""
    if seems_one(data):
        return str(_BROKEN)
    head = data[:4096].removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if head.startswith((b"<!doctype html", b"<html")):
        return gettext("This is a web page, not an image.")
    if b"<svg" in head:
        return gettext("An SVG drawing can carry programs. Send it as PNG.")
    if data[4:8] == b"ftyp" and data[8:12] in (b"heic", b"heix", b"hevc", b"mif1", b"msf1"):
        return gettext("HEIC photos cannot be read here. Send it as JPEG.")
    return gettext("This is no PNG, JPEG, WebP or GIF image.")
