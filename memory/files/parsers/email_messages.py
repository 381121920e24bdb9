"""Parses emails: headers, text, and the names of attachments."""

from collections.abc import Iterator
from email import message_from_binary_file, policy
from email.message import EmailMessage, Message
from itertools import islice
from typing import BinaryIO, cast

from memory.files.parsers import html
from memory.files.parsers.documents import Parsed, ParsingBounds, ParsingError, Section
from memory.files.parsers.plain_text import clean, decode

HEADERS = ("From", "To", "Cc", "Date", "Subject")
MAX_HEADER_CHARS = 2_000
MAX_PARTS = 1_000


def parse(file: BinaryIO, name: str, bounds: ParsingBounds) -> Parsed:
    """Return a section for the email, and a section for each email that is attached to it."""
    message = cast(EmailMessage, message_from_binary_file(file, policy=policy.default))
    if len(list(islice(message.walk(), MAX_PARTS + 1))) > MAX_PARTS:
        raise ParsingError("too_many_parts")
    return Parsed(list(_sections(message, ())), title=_header(message, "Subject"))


def _sections(message: EmailMessage, above: tuple[str, ...]) -> Iterator[Section]:
    subject = _header(message, "Subject")
    headings = (*above, *filter(None, [subject]))
    lines = [f"{name}: {text}" for name in HEADERS if (text := _header(message, name))]
    bodies: list[str] = []
    inner: list[EmailMessage] = []
    _collect(message, bodies, lines, inner)
    yield Section("", None, headings, "\n\n".join(["\n".join(lines), *bodies]).strip())
    for forwarded in inner:
        yield from _sections(forwarded, headings)


def _collect(
    part: EmailMessage, bodies: list[str], lines: list[str], inner: list[EmailMessage]
) -> None:
    """Add the texts of `part`, the names of its attachments, and the attached emails."""
    kind = part.get_content_type()
    if kind == "message/rfc822":
        inner.extend(_inside(part))
    elif kind == "multipart/alternative":
        parts = _inside(part)
        # The plain text, or else the last version with text, which is the best one.
        plain = [it for it in parts if it.get_content_type() == "text/plain" and _text(it).strip()]
        others = [it for it in parts if it.is_multipart() or it.get_content_type() == "text/html"]
        for chosen in plain[:1] or others[-1:]:
            _collect(chosen, bodies, lines, inner)
    elif part.is_multipart():
        for inside in _inside(part):
            _collect(inside, bodies, lines, inner)
    elif name := _file_name(part):
        lines.append(f"Attachment: {name}")
    elif kind in ("text/plain", "text/html"):
        text = _text(part).strip()
        if text:
            bodies.append(text)


def _inside(part: EmailMessage) -> list[EmailMessage]:
    payload = part.get_payload()
    # The payload of a damaged part is a string.
    return (
        [it for it in payload if isinstance(it, EmailMessage)] if isinstance(payload, list) else []
    )


def _text(part: EmailMessage) -> str:
    payload = part.get_payload(decode=True)
    data = payload if isinstance(payload, bytes) else b""
    charset = part.get_content_charset() or ""
    if part.get_content_type() != "text/html":
        return decode(data, charset)
    try:
        sections = html.sections(html.tree(data, charset))
        return "\n\n".join("\n".join(filter(None, (*it.headings[-1:], it.text))) for it in sections)
    except ParsingError as error:
        if error.code == "no_text":
            return ""
        raise


def _header(message: Message, name: str) -> str:
    try:
        value = str(message.get(name) or "")
    # For damaged headers, the parser raises many kinds of exceptions.
    except Exception:
        raw = (text for key, text in message.raw_items() if key.lower() == name.lower())
        value = str(next(raw, ""))
    return " ".join(clean(value[:MAX_HEADER_CHARS]).split())


def _file_name(part: EmailMessage) -> str:
    try:
        name = part.get_filename() or ""
        attached = part.get_content_disposition() == "attachment"
    # For the same reason as in `_header`.
    except Exception:
        return "unnamed"
    return " ".join(clean(name[:300]).split()) or ("unnamed" if attached else "")
