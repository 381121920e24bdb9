"""Import conversations from other programs. Each format is a module here, and is listed in
CHAT_IMPORTERS in `config/settings/models.py`.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, BinaryIO, Protocol, cast
from zipfile import ZipFile

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext_noop as _

from chat.importers import images, memories
from chat.importers.base import (
    FileResult,
    ImportedFile,
    ImportedSession,
    Importer,
    ImportRejectedError,
    ImportResult,
    UnknownFormatError,
    plausible_time,
    source_key_for,
    with_plausible_times,
)
from chat.importers.writer import ImportWriter
from chat.importers.zip_files import UploadContents, check_files, open_documents, open_zip
from chat.models import Import, Session
from chat.signals import memories_imported
from projects.core.text import storable
from projects.models import Project

# A transaction writes complete conversations, until it has about this many messages or characters.
BATCH_MESSAGES = 1_000
BATCH_CHARS = 8_000_000
# The number of bytes at the beginning of a file that are used to recognise its format.
HEAD_BYTES = 64 * 1024


@dataclass(frozen=True)
class ImportSource:
    """A document and its format."""

    format: str
    document: ImportedFile

    def sessions(self, result: ImportResult) -> Iterator[ImportedSession]:
        """Yield the conversations that have messages. Implausible times are replaced.

        Raises `ImportRejectedError`, possibly after some conversations.
        """
        for conversation in get_importer(self.format).sessions(self.document, result):
            if conversation.messages:
                start = plausible_time(conversation.created_at)
                messages = list(with_plausible_times(conversation.messages, start))
                yield replace(conversation, created_at=start, messages=messages)


def import_file(
    project: Project,
    owner,
    name: str,
    file: BinaryIO,
    format: str = "auto",
    progress: Callable[[int, int], None] | None = None,
    result: FileResult | None = None,
    upload: Import | None = None,
    match_members: bool = False,
) -> FileResult:
    """Add the conversations of `file` that `project` does not contain yet.

    New conversations belong to `owner`, are shared with the project, and keep their original times.
    Each is written completely or not at all; its images follow, message by message. Repeating an
    interrupted import completes it. The file is read twice, the first time only to count messages.

    - `progress` is called with two numbers: the processed messages, and all messages. It is called
      in each transaction that writes messages, and before the images of each message.
    - `result` is updated during the import.
    - `upload` records what was added.
    - With `match_members`, messages with the username of a member belong to that member. Otherwise
      only messages with the username of `owner` belong to an account.

    Raises `ImportRejectedError`.
    """
    result = result if result is not None else FileResult()
    with open_zip(file) as archive:
        archive_importer = _archive_importer(archive)
        if archive is not None and archive_importer is not None:
            check_files(archive.infolist())
            archive_importer.import_archive(project, owner, archive, result, match_members)
            return result
    with open_documents(name, file) as contents:
        sources = find_sources(contents, format)
        total = sum(message_counts(sources))
        writer = ImportWriter(project, owner, upload, match_members)

        def report_progress() -> None:
            if progress:
                progress(result.imported + result.skipped, total)

        for source in sources:
            for batch in _batches(_readable_sessions(source, result)):
                with transaction.atomic():
                    written = writer.write(source.format, batch, result)
                    report_progress()
                message_images = (item for session in written for item in session.images())
                images.attach_images(message_images, owner, result, report_progress)
        _import_memories(writer, sources, contents, result)
    return result


class ArchiveImporter(Protocol):
    """The interface of the modules in CHAT_ARCHIVES, each of which imports a complete zip file."""

    def recognises(self, names: set[str]) -> bool:
        """Return whether the module can import a zip file that contains files with these names."""

    def import_archive(
        self,
        project: Project,
        owner,
        archive: ZipFile,
        result: FileResult,
        match_members: bool = False,
    ) -> None:
        """Import the archive completely or not at all. Raises `ImportRejectedError`."""


def _archive_importer(archive: ZipFile | None) -> ArchiveImporter | None:
    names = set(archive.namelist()) if archive is not None else set()
    importers = (cast(ArchiveImporter, import_module(path)) for path in settings.CHAT_ARCHIVES)
    return next((it for it in importers if names and it.recognises(names)), None)


def check_file(name: str, file: BinaryIO, format: str = "auto") -> None:
    """Raise `ImportRejectedError` if the start of `file` shows that it cannot be imported."""
    with open_zip(file) as archive:
        if _archive_importer(archive) is not None:
            return
    with open_documents(name, file) as contents:
        find_sources(contents, format)


def find_sources(contents: UploadContents, format: str) -> list[ImportSource]:
    """Return the documents with their format. With "auto", leave out unrecognised documents."""
    if format != "auto":
        get_importer(format)
        return [ImportSource(format, document) for document in contents.documents]
    recognised = ((_recognise(document), document) for document in contents.documents)
    sources = [ImportSource(name, document) for name, document in recognised if name]
    if not sources:
        raise UnknownFormatError(
            _("It has none of the formats") + f": {', '.join(settings.CHAT_IMPORTERS)}"
        )
    return sources


def _recognise(document: ImportedFile) -> str | None:
    head = document.open().read(HEAD_BYTES)
    formats = settings.CHAT_IMPORTERS
    return next((it for it in formats if get_importer(it).recognises(document.name, head)), None)


def get_importer(format: str) -> Importer:
    """Return the importer of `format`. Raises `ImportRejectedError` for an unknown format."""
    if format not in settings.CHAT_IMPORTERS:
        raise ImportRejectedError(
            f"“{format}” is not one of the formats {', '.join(settings.CHAT_IMPORTERS)}."
        )
    return cast(Importer, import_module(settings.CHAT_IMPORTERS[format]))


def message_counts(sources: list[ImportSource]) -> Iterator[int]:
    """Yield the number of messages of each conversation.

    Raises `ImportRejectedError` if all sources are rejected.
    """
    errors: list[ImportRejectedError] = []
    for source in sources:
        try:
            for conversation in source.sessions(FileResult()):
                yield len(conversation.messages)
        except ImportRejectedError as error:
            errors.append(error)
    if len(errors) == len(sources):
        raise errors[0]


def _readable_sessions(source: ImportSource, result: FileResult) -> Iterator[ImportedSession]:
    """Yield the conversations of one source. If it is rejected, add an error to `result`."""
    try:
        yield from source.sessions(result)
    except ImportRejectedError as error:
        result.errors.append(f"{source.document.name}: {error}")


def _batches(conversations: Iterable[ImportedSession]) -> Iterator[list[ImportedSession]]:
    """Yield the conversations in order, grouped in batches of about BATCH_MESSAGES messages."""
    batch: list[ImportedSession] = []
    messages = text = 0
    for conversation in conversations:
        batch.append(conversation)
        messages += len(conversation.messages)
        text += sum(len(message.text) for message in conversation.messages)
        if messages >= BATCH_MESSAGES or text >= BATCH_CHARS:
            yield batch
            batch, messages, text = [], 0, 0
    if batch:
        yield batch


def _import_memories(
    writer: ImportWriter, sources: list[ImportSource], contents: UploadContents, result: FileResult
) -> None:
    """Store the memories of another program, from a zip file, as a conversation. Then send
    `memories_imported`.
    """
    readers: dict[str, Any] = {source.format: get_importer(source.format) for source in sources}
    for format, reader in readers.items():
        if not hasattr(reader, "memories"):
            continue
        texts = map(storable, reader.memories(contents.memories, result))
        conversation = memories.memories_session(reader.NAME, writer.owner, texts)
        if not conversation.messages:
            continue
        with transaction.atomic():
            for written in writer.write(format, [conversation], result):
                if written.new:
                    memories_imported.send(
                        sender=Session, session=written.session, messages=written.new, source=format
                    )
