"""Validates and encodes uploaded images.

The format of an image is detected from its content, never from its name. Each image is encoded
again, so that the stored file contains only its pixels.
"""

import hashlib
import io
import struct
import threading
import warnings
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from django.core.signing import Signer
from django.utils.text import format_lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from PIL import Image, ImageOps, UnidentifiedImageError

from projects.core.errors import InvalidInputError

MAX_IMAGE_BYTES = 20_000_000
# The maximum number of pixels. A photo of a 50-megapixel phone has 8,192 × 6,144 pixels. It takes
# 200 MB of memory in Pillow, and twice that while an image with transparency is scaled.
MAX_PIXELS = 52_000_000
# The maximum number of pixels of a WebP image, because libwebp and Pillow together take 21 bytes
# per pixel. MAX_PIXELS would take 1.1 GB, and a file of 2 kB can contain that many.
MAX_WEBP_PIXELS = 20_000_000
MAX_FRAMES = 1_000
# The maximum number of scans. Progressive JPEGs have about ten. Each is a pass over the image:
# https://libjpeg-turbo.org/pmwiki/uploads/About/TwoIssueswiththeJPEGStandard.pdf
MAX_JPEG_SCANS = 100
MAX_SIDE_PIXELS = 2048
QUALITY = 85
# The maximum size of a PNG. A lossless image up to this size stays lossless: its text is sharp.
MAX_PNG_BYTES = 1_000_000
FORMATS = ("PNG", "JPEG", "WEBP", "GIF")

# Pillow raises an error above twice this number, and only warns between the two.
Image.MAX_IMAGE_PIXELS = MAX_PIXELS // 2
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)
# Pillow warns about each invalid Exif entry. An image can have 65,535 of them.
warnings.filterwarnings("ignore", module=r"PIL\.")

# The exceptions that Pillow raises for damaged files, depending on the format and the damage.
PILLOW_ERRORS = (
    *(OSError, SyntaxError, ValueError, EOFError, TypeError, struct.error, zlib.error),
    # A palette is missing.
    AssertionError,
)

TOO_MANY_BYTES = format_lazy(
    _("The image is too large. The limit is {most} MB."), most=MAX_IMAGE_BYTES // 1_000_000
)
TOO_MANY_PIXELS = format_lazy(
    _("The image is too large. The limit is {most} megapixels."), most=MAX_PIXELS // 1_000_000
)
TOO_MANY_WEBP_PIXELS = format_lazy(
    _("The image is too large. The limit for WebP is {most} megapixels."),
    most=MAX_WEBP_PIXELS // 1_000_000,
)
TOO_MANY_FRAMES = format_lazy(
    _("The animation is too long. The limit is {most} frames."), most=f"{MAX_FRAMES:,}"
)
DAMAGED = _("The image is damaged or incomplete. Upload it again.")

# Only one image at a time is decoded, because many users may upload at once and memory is limited.
_decoding = threading.Lock()


class ImageRejectedError(InvalidInputError):
    """The image is damaged, too large, or in an unsupported format."""


@dataclass(frozen=True)
class EncodedImage:
    """An encoded image file. Width and height are in pixels."""

    data: bytes
    media_type: str
    width: int
    height: int
    sha256: str


def reencode(data: bytes) -> EncodedImage:
    """Return the image in the file `data` (PNG, JPEG, WebP, or the first frame of a GIF).

    The result is upright, at most MAX_SIDE_PIXELS wide and high, and has no metadata. Raises
    `ImageRejectedError`.
    """
    _check_size(data)
    with _decoding:
        try:
            image, lossless = _decode(data)
            encoded, media_type = _encode(image, lossless)
        except Image.DecompressionBombError as error:
            raise ImageRejectedError(TOO_MANY_PIXELS) from error
        except UnidentifiedImageError as error:
            raise ImageRejectedError(_unsupported_reason(data)) from error
        except PILLOW_ERRORS as error:
            raise ImageRejectedError(DAMAGED) from error
    width, height = image.size
    return EncodedImage(encoded, media_type, width, height, hashlib.sha256(encoded).hexdigest())


def looks_like_image(head: bytes) -> bool:
    """Return True if `head`, the beginning of a file, looks like one of FORMATS."""
    return head.startswith((b"\x89PNG", b"\xff\xd8\xff", b"GIF8")) or head[8:12] == b"WEBP"


def sign(image: EncodedImage) -> str:
    """Return a signature of `image` that only this installation can create.

    An imported image with a valid signature was encoded here, so it is stored unchanged. Encoding
    it again would lose quality.
    """
    value = f"{image.sha256} {image.media_type} {image.width} {image.height}"
    return Signer(salt="chat.seals").signature(value)


def _check_size(data: bytes) -> None:
    """Reject images that would take too much time or memory. Runs before pixels are decoded."""
    if not data:
        raise ImageRejectedError(_("The file is empty."))
    if len(data) > MAX_IMAGE_BYTES:
        raise ImageRejectedError(TOO_MANY_BYTES)
    # Count start-of-scan markers. They never occur in compressed data, where a zero follows 0xFF.
    if data.startswith(b"\xff\xd8") and data.count(b"\xff\xda") > MAX_JPEG_SCANS:
        raise ImageRejectedError(
            _("This JPEG has too many scans. Save it as a baseline JPEG or PNG.")
        )
    if data.startswith(b"GIF8") and sum(1 for _ in _gif_frames(data)) > MAX_FRAMES:
        raise ImageRejectedError(TOO_MANY_FRAMES)


def _gif_frames(data: bytes) -> Iterator[int]:
    """Yield the offsets of the frames of a GIF, at most MAX_FRAMES + 1.

    https://www.w3.org/Graphics/GIF/spec-gif89a.txt
    """

    def color_table_bytes(flags_at: int) -> int:
        flags = data[flags_at] if flags_at < len(data) else 0
        return 3 << ((flags & 7) + 1) if flags & 0x80 else 0

    count = 0
    at = 13 + color_table_bytes(10)
    while at < len(data) and count <= MAX_FRAMES:
        if data[at] == 0x2C:
            yield at
            count += 1
            at += 11 + color_table_bytes(at + 9)
        elif data[at] == 0x21:
            at += 2
        else:
            return
        while at < len(data) and data[at]:
            at += 1 + data[at]
        at += 1


def _decode(data: bytes) -> tuple[Image.Image, bool]:
    """Return the first frame, upright, scaled, in RGB or RGBA. The second value is true if the
    format of the file is lossless.
    """
    with Image.open(io.BytesIO(data), formats=FORMATS) as file:
        # Not for GIFs: Pillow would read all frames to count them, and `_check_size` has counted.
        if file.format != "GIF" and getattr(file, "n_frames", 1) > MAX_FRAMES:
            raise ImageRejectedError(TOO_MANY_FRAMES)
        if file.format == "WEBP" and file.width * file.height > MAX_WEBP_PIXELS:
            raise ImageRejectedError(TOO_MANY_WEBP_PIXELS)
        if file.mode in ("L", "LA", "RGB", "RGBA"):
            # Scale first: the conversion then copies fewer pixels, and JPEGs are decoded smaller.
            file.thumbnail((MAX_SIDE_PIXELS, MAX_SIDE_PIXELS), Image.Resampling.LANCZOS)
        image = _to_rgb(file)
        lossless = file.format in ("PNG", "GIF")
    image.thumbnail((MAX_SIDE_PIXELS, MAX_SIDE_PIXELS), Image.Resampling.LANCZOS)
    # If the orientation cannot be read, the image is assumed to be upright.
    with suppress(*PILLOW_ERRORS):
        ImageOps.exif_transpose(image, in_place=True)
    if image.mode == "RGBA" and image.getchannel("A").getextrema() == (255, 255):
        image = image.convert("RGB")
    # Pillow copies comments and colour profiles from `info` into the file that it saves.
    image.info = {}
    return image, lossless


def _to_rgb(file: Image.Image) -> Image.Image:
    """Return a copy in RGB or RGBA."""
    if file.mode.startswith("I"):
        # 16-bit greyscale: Pillow's own conversion would turn light grey into white.
        return file.point(lambda grey: grey * (1 / 256)).convert("L").convert("RGB")
    return file.convert("RGBA" if file.has_transparency_data else "RGB")


def _encode(image: Image.Image, lossless: bool) -> tuple[bytes, str]:
    """Return the image as a file, and its media type."""
    if lossless:
        png = _save(image, "PNG")
        if len(png) <= MAX_PNG_BYTES:
            return png, "image/png"
    if image.mode == "RGBA":
        return _save(image, "WEBP", quality=QUALITY), "image/webp"
    return _save(image, "JPEG", quality=QUALITY, optimize=True), "image/jpeg"


def _save(image: Image.Image, format: str, **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, format, **options)
    return file.getvalue()


def _unsupported_reason(data: bytes) -> str:
    """Return why a file that is not in FORMATS is rejected, depending on its apparent type."""
    if looks_like_image(data):
        return str(DAMAGED)
    head = data[:4096].removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if head.startswith((b"<!doctype html", b"<html")):
        return gettext("This is a web page, not an image.")
    if b"<svg" in head:
        return gettext("SVG images can contain scripts. Upload a PNG instead.")
    if data[4:8] == b"ftyp" and data[8:12] in (b"heic", b"heix", b"hevc", b"mif1", b"msf1"):
        return gettext("HEIC photos are not supported. Upload a JPEG instead.")
    return gettext("This file type is not supported. Upload a PNG, JPEG, WebP or GIF image.")
