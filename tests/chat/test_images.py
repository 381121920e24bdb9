"""Images are stored by content hash, re-encoded, and limited in size before decoding."""

import hashlib
import struct
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import ExifTags, Image, PngImagePlugin

from chat.attachments import images
from chat.attachments.images import ImageRejectedError, reencode
from tests.chat.pictures import (
    HEIC,
    HTML,
    SVG,
    gif_of,
    opened,
    picture,
    png_bomb,
    png_without_its_palette,
    saved,
)


@pytest.mark.parametrize(
    ("form", "mode", "media_type"),
    [
        ("PNG", "RGB", "image/png"),
        ("PNG", "RGBA", "image/png"),
        ("PNG", "P", "image/png"),
        ("PNG", "L", "image/png"),
        ("PNG", "1", "image/png"),
        ("GIF", "P", "image/png"),
        ("JPEG", "RGB", "image/jpeg"),
        ("JPEG", "CMYK", "image/jpeg"),
        ("JPEG", "L", "image/jpeg"),
        ("WEBP", "RGB", "image/jpeg"),
    ],
)
def test_supported_images_are_encoded_again(form, mode, media_type):
    encoded = reencode(picture(form, mode=mode))
    assert (encoded.media_type, encoded.width, encoded.height) == (media_type, 40, 30)
    assert encoded.sha256 == hashlib.sha256(encoded.data).hexdigest()
    image = opened(encoded.data)
    assert (image.get_format_mimetype(), image.size) == (media_type, (40, 30))
    assert image.mode == "RGB"


def test_a_transparent_image_stays_transparent():
    image = Image.new("RGBA", (40, 30), (255, 0, 0, 0))
    for form in ("PNG", "WEBP"):
        encoded = opened(reencode(saved(image, form, lossless=True)).data)
        assert encoded.convert("RGBA").getpixel((5, 5))[3] == 0


def test_a_large_picture_without_loss_becomes_a_photo():
    noise = Image.effect_noise((1500, 1500), 90)
    assert reencode(saved(noise.convert("RGB"), "PNG")).media_type == "image/jpeg"
    noise = Image.merge("RGBA", (noise, noise, noise, noise))
    encoded = reencode(saved(noise, "PNG"))
    assert encoded.media_type == "image/webp"
    assert opened(encoded.data).mode == "RGBA"


def test_sixteen_bits_of_grey_are_not_white():
    encoded = reencode(saved(Image.new("I;16", (10, 10), 128 * 256), "PNG"))
    assert opened(encoded.data).getpixel((5, 5)) == (128, 128, 128)


def test_it_is_scaled_to_the_longest_side():
    encoded = reencode(picture("JPEG", size=(5000, 3000)))
    assert (encoded.width, encoded.height) == (2048, 1229)
    encoded = reencode(picture("PNG", size=(10, 9000)))
    assert (encoded.width, encoded.height) == (2, 2048)


@pytest.mark.parametrize(("orientation", "top_left"), [(1, "red"), (3, "blue"), (6, "blue")])
def test_it_is_turned_upright(orientation, top_left):
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    encoded = reencode(picture("JPEG", exif=exif))
    assert (encoded.width, encoded.height) == ((30, 40) if orientation == 6 else (40, 30))
    red, _, blue = opened(encoded.data).getpixel((2, 2))
    assert (red > blue) == (top_left == "red")


def test_nothing_but_the_picture_is_left():
    exif = Image.Exif()
    exif[ExifTags.Base.ImageDescription] = "SECRET place"
    exif.get_ifd(ExifTags.IFD.GPSInfo)[1] = "SECRET"
    text = PngImagePlugin.PngInfo()
    text.add_text("Comment", "SECRET text")
    text.add_itxt("XML:com.adobe.xmp", "SECRET xmp")
    files = [
        picture("JPEG", exif=exif, comment=b"SECRET comment", icc_profile=b"SECRET" * 40),
        picture("PNG", pnginfo=text, exif=exif, icc_profile=b"SECRET" * 40),
        picture("WEBP", exif=exif, xmp=b"SECRET", icc_profile=b"SECRET" * 40),
        picture("GIF", comment=b"SECRET"),
    ]
    for file in files:
        file += b"<script>SECRET</script>"
        assert b"SECRET" in file
        encoded = reencode(file).data
        assert b"SECRET" not in encoded
        assert b"script" not in encoded
        assert not opened(encoded).getexif()
        assert not {"icc_profile", "comment", "xmp", "exif"} & set(opened(encoded).info)


def test_only_the_first_frame_of_an_animation_is_taken():
    more = [Image.new("RGB", (40, 30), "green") for _ in range(5)]
    for form in ("GIF", "PNG", "WEBP"):
        file = picture(form, save_all=True, append_images=more)
        red, green, _ = opened(reencode(file).data).convert("RGB").getpixel((2, 2))
        assert red > green


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (SVG, "SVG"),
        (b"\xef\xbb\xbf  <svg/>", "SVG"),
        (HTML, "web page"),
        (HEIC, "HEIC"),
        (b"BM" + bytes(100), "not supported"),
        (b"GIF89a", "damaged"),
        (b"\x89PNG\r\n\x1a\n", "damaged"),
        (b"", "empty"),
        (b"plain words", "not supported"),
        (bytes(images.MAX_IMAGE_BYTES + 1), "20 MB"),
        (picture("JPEG", size=(900, 900))[:-400], "damaged"),
        (picture("PNG", size=(900, 900))[:-400], "damaged"),
        (picture("WEBP", size=(900, 900))[:-40], "damaged"),
        (gif_of(1)[:-6], "damaged"),
        (gif_of(10_000), "1,000 frames"),
        (png_bomb(8_000, 7_000), "52 megapixels"),
        (png_without_its_palette(), "damaged"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_everything_else_is_refused_with_its_reason(data, reason):
    with pytest.raises(ImageRejectedError, match=reason):
        reencode(data)


def test_a_jpeg_of_endless_passes_is_refused():
    file = picture("JPEG", progressive=True)
    scan = file.index(b"\xff\xda")
    with pytest.raises(ImageRejectedError, match="scans"):
        reencode(file[:scan] + file[scan:-2] * 100 + b"\xff\xd9")


def test_an_animated_png_or_webp_of_endless_frames_is_refused(monkeypatch):
    monkeypatch.setattr(images, "MAX_FRAMES", 4)
    more = [Image.new("RGB", (40, 30), (40 * number, 0, 0)) for number in range(5)]
    for form in ("PNG", "WEBP"):
        with pytest.raises(ImageRejectedError, match="frames"):
            reencode(picture(form, save_all=True, append_images=more))


# Reencode a file in a process of its own, and print what came of it and the peak's rise in MB. The
# peak of `getrusage` begins with that of the process that started this one.
MEASURE = """
import sys
from pathlib import Path
import django
django.setup()
from chat.attachments.images import ImageRejectedError, reencode
def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    [line] = [line for line in lines if line.startswith("VmHWM")]
    return int(line.split()[1]) // 1024
file = Path(sys.argv[1]).read_bytes()
before = peak()
try:
    result = reencode(file).media_type
except ImageRejectedError as error:
    result = error
print(f"{result}|{peak() - before}")
"""


@pytest.fixture
def measured(tmp_path):
    """Return a function that re-encodes a file: the result, megabytes of memory, and the log."""

    def run(file: bytes) -> tuple[str, int, str]:
        path = tmp_path / "image"
        path.write_bytes(file)
        command = [sys.executable, "-c", MEASURE, path]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        result, _, megabytes = done.stdout.strip().rpartition("|")
        return result, int(megabytes), done.stderr

    return run


def test_a_bomb_is_refused_in_little_memory(measured):
    result, megabytes, _log = measured(png_bomb())
    assert result == "The image is too large. The limit is 52 megapixels."
    assert megabytes < 20


def test_a_webp_of_two_kilobytes_does_not_take_a_gigabyte(measured):
    file = saved(Image.new("RGBA", (7_200, 7_200)), "WEBP", lossless=True)
    assert len(file) < 3_000
    result, megabytes, _log = measured(file)
    assert result == "The image is too large. The limit for WebP is 20 megapixels."
    assert megabytes < 20


@pytest.mark.parametrize(
    ("form", "mode", "size"),
    [
        ("WEBP", "RGBA", (4_470, 4_470)),
        ("PNG", "RGBA", (7_200, 7_200)),
        ("PNG", "LA", (7_200, 7_200)),
        ("JPEG", "CMYK", (7_200, 7_200)),
    ],
)
def test_the_largest_images_take_half_a_gigabyte(measured, form, mode, size):
    result, megabytes, _log = measured(saved(Image.new(mode, size), form))
    assert result.startswith("image/")
    assert megabytes < 550


def test_damaged_metadata_does_not_fill_the_log(measured):
    """Each entry of this Exif data points behind the file's end, and Pillow warns of each."""
    entry = struct.pack(">HHII", 0x112, 2, 0xFFFF, 0)
    entries = b"".join(struct.pack(">H", tag) + entry[2:] for tag in range(1_000))
    exif = b"MM\0*\0\0\0\x08" + struct.pack(">H", 1_000) + entries + bytes(4)
    result, _megabytes, log = measured(picture("PNG", exif=exif))
    assert result == "image/png"
    assert log == ""


FILES = [
    picture("PNG", mode="RGBA"),
    picture("PNG", mode="P"),
    picture("JPEG", exif=Image.Exif()),
    picture("JPEG", progressive=True),
    picture("WEBP"),
    picture("GIF", save_all=True, append_images=[Image.new("P", (40, 30), 3)]),
]


@pytest.mark.filterwarnings("ignore::UserWarning")
@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(FILES),
    st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=8),
    st.integers(0, 2000),
)
def test_a_damaged_file_is_refused_or_read_and_nothing_else(file, changes, cut):
    data = bytearray(file)
    for at, value in changes:
        data[at % len(data)] = value
    data = data[: len(data) - cut % (len(data) // 2)]
    try:
        encoded = reencode(bytes(data))
    except ImageRejectedError as refused:
        assert str(refused)
    else:
        assert opened(encoded.data).size == (encoded.width, encoded.height)
        assert max(encoded.width, encoded.height) <= images.MAX_SIDE_PIXELS
