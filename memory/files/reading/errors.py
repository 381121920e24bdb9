"""The reasons why a file cannot be read, and the warnings about content that was left out.

They are stored as codes, so that each reader sees them in their own language.
"""

from typing import ClassVar

from django.utils.translation import gettext_lazy as _

from memory.files.reading.limits import ReadingLimits
from projects.core.errors import InvalidInputError, StrOrPromise
from projects.core.text import translate_reason


class UnreadableFileError(InvalidInputError):
    """A file that cannot be read. `reason` is one of `MESSAGES`, and `code` is for programs."""

    default_code = "damaged"
    reason = "damaged"
    default_message: ClassVar[StrOrPromise] = _("The file is damaged or not complete.")


MESSAGES: dict[str, StrOrPromise] = {
    "encrypted": _("The file is protected by a password. Add a version without a password."),
    "damaged": UnreadableFileError.default_message,
    "too_large": _("The file is too large. The limit is {megabytes} MB."),
    "too_many_files": _("The archive contains too many files."),
    "compression": _("The compression method is not supported: use deflate."),
    "unpacked_too_large": _("The file would be too large when it is unpacked."),
    "too_much_text": _("The file contains too much text. The limit is {characters} characters."),
    "too_many_pages": _("The file has too many pages. The limit is {pages} pages."),
    "too_many_parts": _("The email has too many parts to read."),
    "too_deep": _("The elements of the file are nested too deeply to read."),
    "no_text": _("The file contains no text."),
    "scanned": _("The pages are images without text. Add a version with recognised text."),
    "no_page": _("The file does not have this page."),
    "unsupported": _("Files of this type cannot be read."),
    "timed_out": _("The file takes too long to read."),
    "out_of_memory": _("The file needs too much memory to read."),
    "interrupted": _("This file could not be read: each attempt was interrupted."),
    # Warnings.
    "recognised": _("The text was recognised in the images of the pages."),
    "first_pages": _("Only the first {count} pages were read."),
    "empty_pages": _("Pages without text: {count}."),
    "left_out_sheets": _("Sheets that were left out: {count}."),
}
# The codes of reasons that share a code with another reason.
_CODES = {
    "too_much_text": "too_large",
    "unpacked_too_large": "too_large",
    "too_many_files": "too_large",
    "compression": "unsupported",
    "scanned": "no_text",
}


def unreadable(reason: str, limits: ReadingLimits) -> UnreadableFileError:
    """Return the error for a `reason` of `MESSAGES`."""
    error = UnreadableFileError(explain(reason, limits), code=_CODES.get(reason, reason))
    error.reason = reason
    return error


def explain(reason: str, limits: ReadingLimits) -> str:
    """Return a stored reason or warning as a sentence in the reader's language.

    It is a code of `MESSAGES`, with a count after a colon if the sentence has one. Sentences that
    earlier versions stored are translated if possible.
    """
    code, _colon, count = reason.partition(":")
    if code not in MESSAGES:
        return translate_reason(reason)
    return str(MESSAGES[code]).format(
        megabytes=limits.max_bytes // 2**20,
        characters=limits.max_text_chars,
        pages=limits.max_pages,
        count=count,
    )
