"""Optical character recognition of scanned PDFs with tesseract, if it is installed."""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

from memory.files.parsers.documents import Document, Section
from memory.files.parsers.plain_text import clean
from memory.files.reading.errors import UnreadableFileError, unreadable
from memory.files.reading.limits import ReadingLimits
from memory.files.reading.processes import run_tesseract
from memory.files.reading.recognition import MEDIA_TYPES

# The width of page images in pixels: 200 dots per inch on A4 paper.
IMAGE_WIDTH = 1_654
# The maximum number of languages. The time grows in proportion to their number.
MAX_LANGUAGES = 3
# Data files that are not languages: "osd" finds the direction of text, "equ" reads formulas.
NO_LANGUAGES = ("osd", "equ")


@cache
def tesseract() -> tuple[str, str] | None:
    """Return the path of tesseract and the languages to use; None if it is not installed."""
    program = shutil.which("tesseract")
    if program is None:
        return None
    listed = subprocess.run([program, "--list-langs"], capture_output=True, text=True, timeout=30)
    # Skip the first line, which is a heading.
    languages = [it for it in listed.stdout.split("\n")[1:] if it and it not in NO_LANGUAGES]
    return (program, "+".join(languages[:MAX_LANGUAGES])) if languages else None


def read_scanned(
    path: Path,
    limits: ReadingLimits,
    page_image: Callable[[Path, int, int], bytes],
    renew: Callable[[], None],
) -> Document:
    """Return the text of the pages that can be recognised within `limits.ocr_s` seconds. `renew` is
    called before each page.

    Raises `UnreadableFileError` if tesseract is not installed or finds no text.
    """
    found = tesseract()
    if found is None:
        raise unreadable("scanned", limits)
    sections: list[Section] = []
    warnings = ["recognised"]
    end, number = time.monotonic() + limits.ocr_s, 1
    while number <= limits.max_pages:
        if time.monotonic() > end:
            warnings.append(f"first_pages:{number - 1}")
            break
        renew()
        try:
            text = _page_text(page_image(path, number, IMAGE_WIDTH), found, limits)
        except UnreadableFileError as error:
            if error.code == "no_page":
                break
            # If one page fails, only its text is missing.
            text = ""
        if text:
            sections.append(Section(f"p. {number}", number, (), text))
        number += 1
    if not sections:
        raise unreadable("scanned", limits)
    return Document(MEDIA_TYPES["pdf"], "pdf", "", number - 1, tuple(sections), tuple(warnings))


def _page_text(image: bytes, found: tuple[str, str], limits: ReadingLimits) -> str:
    with tempfile.TemporaryFile() as file:
        file.write(image)
        file.seek(0)
        output = run_tesseract(file, *found, limits)
    return clean(output.decode(errors="replace")).strip()
