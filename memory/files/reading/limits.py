"""The limits of reading a file."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ReadingLimits:
    """Limits of one file and of the process that parses it."""

    max_bytes: int = 50 * 2**20
    max_pages: int = 2_000
    # For all sections together. A page of a book has about 2,000 characters.
    max_text_chars: int = 20_000_000
    memory_bytes: int = 400_000_000
    # CPU time in seconds, including the start of the process.
    cpu_s: int = 25
    wall_s: int = 30
    # The time for all pages of a scanned document together, in seconds.
    ocr_s: int = 300


DEFAULT = ReadingLimits()
