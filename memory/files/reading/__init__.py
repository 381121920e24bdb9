"""Reads files of unknown origin: text with its places, and images of pages.

The parsers run in a process without rights (`memory.files.parsers`).
"""

from memory.files.parsers.documents import Document, Section
from memory.files.reading.archives import expand_archive
from memory.files.reading.errors import UnreadableFileError, explain
from memory.files.reading.limits import DEFAULT, ReadingLimits
from memory.files.reading.recognition import recognise
from memory.files.reading.service import page_image, read_document
