"""The process that parses one file: gives up its rights, parses standard input, prints the result.

The result is JSON. For a job with `page`, it is an image of this page.

`memory.files.reading.processes` starts the process. The file is read only after the rights were
given up.
"""

import io
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from importlib import import_module
from typing import Any, BinaryIO

from memory.files.parsers.confinement import confine
from memory.files.parsers.documents import Parsed, Parser, ParsingBounds, ParsingError, Section

PARSERS = {
    "pdf": "pdf",
    "docx": "word",
    "pptx": "slides",
    "xlsx": "sheets",
    "csv": "delimited",
    "tsv": "delimited",
    "markdown": "markdown",
    "html": "html",
    "epub": "epub",
    "email": "email_messages",
    "text": "plain_text",
    "code": "plain_text",
}
# The code of libxml2 for a lack of memory, XML_ERR_NO_MEMORY.
LIBXML_NO_MEMORY = 2
# The number of digits of the length, which is printed first to detect output that was cut off.
LENGTH_DIGITS = 12


def main() -> None:
    """Run the job in the last argument, which is JSON. Print its result, or the code of the error.

    The length of the output is printed first.
    """
    job = json.loads(sys.argv[-1])
    try:
        module = import_module(f"memory.files.parsers.{PARSERS[job['kind']]}")
        enforced = confine(job["memory_bytes"], job["cpu_s"])
        file = io.BufferedReader(io.FileIO(0))
        if job["page"]:
            result = module.render(file, job["page"], job["width"])
        else:
            result = _document(module.parse, file, job, enforced)
    except ParsingError as error:
        result = _failure(error.code)
    except (MemoryError, RecursionError) as error:
        result = _failure("out_of_memory" if isinstance(error, MemoryError) else "damaged")
    # For damaged files, libraries raise exceptions of any type.
    except Exception as error:
        # libxml2 has no separate exception for a lack of memory, and its exception does not always
        # have a message.
        is_libxml = getattr(error, "code", None) == LIBXML_NO_MEMORY
        out_of_memory = is_libxml or "memory" in str(error).lower()
        code = "out_of_memory" if out_of_memory else "damaged"
        # Without the message, which may quote the file: the parent logs the name.
        result = _failure(code, type(error).__name__)
    sys.stdout.buffer.write(f"{len(result):0{LENGTH_DIGITS}d}".encode() + result)
    sys.stdout.flush()


def _failure(code: str, exception: str = "") -> bytes:
    return json.dumps({"error": code, "exception": exception}).encode()


def _document(
    parse: Parser, file: BinaryIO, job: dict[str, Any], enforced: tuple[str, ...]
) -> bytes:
    bounds = ParsingBounds(job["max_pages"], job["max_text_chars"])
    parsed = parse(file, job["name"], bounds)
    sections = list(with_text(_bounded(parsed.sections, bounds.max_text_chars)))
    if not sections:
        raise ParsingError("no_text")
    return _encoded(parsed, sections, enforced)


def _encoded(parsed: Parsed, sections: list[Section], enforced: tuple[str, ...]) -> bytes:
    # In text without a title, such as Markdown, the first heading is used as the title.
    headings = sections[0].headings if parsed.page_count is None else ()
    document = {
        "title": " ".join((parsed.title or "".join(headings[:1])).split())[:500],
        "page_count": parsed.page_count,
        "sections": [asdict(section) for section in sections],
        "warnings": parsed.warnings,
        "enforced": enforced,
    }
    return json.dumps(document, ensure_ascii=False).encode(errors="replace")


def with_text(sections: Iterable[Section]) -> Iterator[Section]:
    """Yield the sections with text. A heading with nothing below it, such as that of a slide with
    a picture, becomes text."""
    alone: Section | None = None
    for section in sections:
        if alone and section.headings[: len(alone.headings)] != alone.headings:
            yield replace(alone, text=alone.headings[-1])
        alone = None
        if section.text.strip():
            yield section
        elif section.headings:
            alone = section
    if alone:
        yield replace(alone, text=alone.headings[-1])


def _bounded(sections: Iterable[Section], most: int) -> Iterable[Section]:
    """Raise `ParsingError` once the sections have more than `most` characters."""
    total = 0
    for section in sections:
        total += len(section.text) + sum(map(len, section.headings))
        if total > most:
            raise ParsingError("too_much_text")
        yield section
