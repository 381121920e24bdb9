"""Conversations from elsewhere. A format is a module here and a line in CHAT_IMPORTERS."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, BinaryIO, Protocol, cast
from zipfile import ZipFile

from django.conf import settings
from django.db import transaction

from chat.importers import images, memories
from chat.importers.archives import Contents, opened, refuse_bombs, unzipped
from chat.importers.base import (
    Document,
    FileResult,
    ImportedSession,
    Importer,
    ImportResult,
    Refused,
)
from chat.importers.record import Record
from chat.importers.sources import key
from chat.importers.times import settled, trusted
from chat.models import Import, Session
from chat.signals import memories_imported
from chat.storable import storable
from projects.models import Project

__all__ = ["FileResult", "Refused", "check", "import_file", "key", "storable"]

# Messages that are written in one transaction, so far as whole conversations allow, and the
# characters of their texts.
BATCH = 1_000
BATCH_TEXT = 8_000_000
# Bytes of the beginning of a file by which its format is recognised.
HEAD = 64 * 1024


@dataclass(frozen=True)
class Source:
    """A document whose format is known."""

    format: str
    document: Document

    def sessions(self, result: ImportResult) -> Iterator[ImportedSession]:
        """Its conversations that hold a message, at times that can be trusted. Raises Refused,
        also on the way.
        """
        for found in _importer(self.format).sessions(self.document, result):
            if found.messages:
                begun = trusted(found.created_at)
                messages = list(settled(found.messages, begun))
                yield replace(found, created_at=begun, messages=messages)


def import_file(
    project: Project,
    owner,
    name: str,
    file: BinaryIO,
    format: str = "auto",
    progress: Callable[[int, int], None] | None = None,
    result: FileResult | None = None,
    upload: Import | None = None,
) -> FileResult:
    """Adds to `project` what `file`, called `name`, holds and the project does not have yet.

    New conversations belong to `owner` and are shared with the project, with the times of their
    source. Each is written whole or not at all, and then its images, message by message, so an
    import that was interrupted is finished by the next one. The file is read twice: first it is
    only counted. `progress` hears the messages done and all there are, in the transaction that
    writes them and before the images of each, while `result` is counted on. What is added is kept
    with `upload`. Raises Refused.
    """
    result = result if result is not None else FileResult()
    with unzipped(file) as archive:
        whole = _taker(archive)
        if archive is not None and whole is not None:
            refuse_bombs(archive)
            whole.take_in(project, owner, archive, result)
            return result
    with opened(name, file) as contents:
        sources = _sources(contents, format)
        total = sum(_counted(sources))
        record = Record(project, owner, upload)

        def pulse() -> None:
            if progress:
                progress(result.imported + result.skipped, total)

        for source in sources:
            for batch in _batches(_unless_refused(source, sources, result)):
                with transaction.atomic():
                    written = record.write(source.format, batch, result)
                    pulse()
                shown = (one for session in written for one in session.images())
                images.attach(shown, owner, result, pulse)
        _offer_memories(record, sources, contents, result)
    return result


class Taker(Protocol):
    """What a module of CHAT_ARCHIVES offers: it takes a zip file in as a whole."""

    def recognises(self, names: set[str]) -> bool:
        """Whether a zip file with files of these names is its own."""

    def take_in(self, project: Project, owner, archive: ZipFile, result: FileResult) -> None:
        """Brings it into `project` on behalf of `owner`, whole or not at all. Raises Refused."""


def _taker(archive: ZipFile | None) -> Taker | None:
    names = set(archive.namelist()) if archive is not None else set()
    takers = (cast(Taker, import_module(path)) for path in settings.CHAT_ARCHIVES)
    return next((taker for taker in takers if names and taker.recognises(names)), None)


def check(name: str, file: BinaryIO, format: str = "auto") -> None:
    """Raises Refused for what cannot be imported, as far as the beginning of `file` tells."""
    with unzipped(file) as archive:
        if _taker(archive) is not None:
            return
    with opened(name, file) as contents:
        _sources(contents, format)


def _sources(contents: Contents, format: str) -> list[Source]:
    """The documents in the format that is given, or each in its own, without those in none."""
    if format != "auto":
        _importer(format)
        return [Source(format, document) for document in contents.documents]
    recognised = ((_recognised(document), document) for document in contents.documents)
    sources = [Source(found, document) for found, document in recognised if found]
    if not sources:
        raise Refused(f"It is of none of the formats {', '.join(settings.CHAT_IMPORTERS)}.")
    return sources


def _recognised(document: Document) -> str | None:
    head = document.open().read(HEAD)
    formats = settings.CHAT_IMPORTERS
    return next((it for it in formats if _importer(it).recognises(document.name, head)), None)


def _importer(format: str) -> Importer:
    if format not in settings.CHAT_IMPORTERS:
        raise Refused(f"“{format}” is none of the formats {', '.join(settings.CHAT_IMPORTERS)}.")
    return cast(Importer, import_module(settings.CHAT_IMPORTERS[format]))


def _counted(sources: list[Source]) -> Iterator[int]:
    """How many messages each conversation has. Raises Refused when every source is refused."""
    refusals: list[Refused] = []
    for source in sources:
        try:
            for conversation in source.sessions(FileResult()):
                yield len(conversation.messages)
        except Refused as refusal:
            refusals.append(refusal)
    if len(refusals) == len(sources):
        raise refusals[0]


def _unless_refused(
    source: Source, sources: list[Source], result: FileResult
) -> Iterator[ImportedSession]:
    """The conversations of one source. That it is refused costs the others nothing."""
    try:
        yield from source.sessions(result)
    except Refused as reason:
        result.errors.append(f"{source.document.name}: {reason}")


def _batches(conversations: Iterable[ImportedSession]) -> Iterator[list[ImportedSession]]:
    """`conversations` in their order, so many at once as hold BATCH messages."""
    batch: list[ImportedSession] = []
    messages = text = 0
    for conversation in conversations:
        batch.append(conversation)
        messages += len(conversation.messages)
        text += sum(len(message.text) for message in conversation.messages)
        if messages >= BATCH or text >= BATCH_TEXT:
            yield batch
            batch, messages, text = [], 0, 0
    if batch:
        yield batch


def _offer_memories(
    record: Record, sources: list[Source], contents: Contents, result: FileResult
) -> None:
    """What else a zip file remembers is kept as a conversation, and whoever listens hears of it."""
    readers: dict[str, Any] = {source.format: _importer(source.format) for source in sources}
    for format, reader in readers.items():
        if not hasattr(reader, "memories"):
            continue
        texts = map(storable, reader.memories(contents.asides, result))
        told = memories.conversation(reader.NAME, record.owner, texts)
        if not told.messages:
            continue
        with transaction.atomic():
            for written in record.write(format, [told], result):
                if written.new:
                    memories_imported.send(
                        sender=Session,
                        session=written.session,
                        messages=written.new,
                        source=format,
                    )
