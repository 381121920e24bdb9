"""The write path of files. Pages, API, MCP and the command add files through this module."""

import hashlib
import shutil
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO
from uuid import UUID

from django.conf import settings
from django.core.files.base import File as StoredFile
from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import Exists, Max, OuterRef, Sum
from django.db.models.signals import post_delete
from django.dispatch import receiver
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.attachments import file_removal
from chat.models import Session
from memory.files import reading
from memory.models import ActivityVerb, File, FileRevision, FileState
from memory.models.activity import record_activity
from memory.models.files import MAX_FILE_NAME_CHARS
from memory.wakeups import wake_reading
from projects.core.errors import DomainError, InvalidInputError, LimitError
from projects.core.text import storable
from projects.models import Project

CHUNK_BYTES = 2**20
ZIP_MAGIC = b"PK\x03\x04"


def add_file(
    project: Project, user, name: str, content: IO[bytes], session: Session | None = None
) -> File:
    """Store a file for the project, or with `session` for one chat, and schedule reading it.

    If the project or chat already has a file with this name, the content becomes a new version of
    it. Adding the same content again changes nothing. Raises InvalidInputError for an empty file or
    name, and LimitError if the file or all files of the project are too large.
    """
    name = clean_name(name)
    size, sha256 = _measure(content)
    revision = FileRevision(project=project, size=size, sha256=sha256, added_by=user)
    content.seek(0)
    file_removal.write_file(revision, name, StoredFile(content))
    path = str(revision.file.name)
    try:
        with transaction.atomic():
            document = _store(project, user, name, session, revision)
            file_removal.keep_file(revision, path)
    except BaseException:
        default_storage.delete(path)
        raise
    if revision.file.name != path or revision._state.adding:
        default_storage.delete(path)
    return document


@dataclass
class AddedFiles:
    """The files that were added, and pairs (name, reason) for files that were rejected."""

    added: list[File] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)


def add_upload(
    project: Project, user, name: str, content: IO[bytes], session: Session | None = None
) -> AddedFiles:
    """Add a file, or each file in a zip archive. Rejected files are listed in the result."""
    result = AddedFiles()
    try:
        with _archive_path(content) as path:
            if path is None:
                result.added.append(add_file(project, user, name, content, session))
                return result
            for inner, unpacked in reading.expand_archive(path):
                with unpacked.open("rb") as member:
                    try:
                        result.added.append(add_file(project, user, inner, member, session))
                    except DomainError as error:
                        result.refused.append((inner, str(error)))
    except DomainError as error:
        result.refused.append((name, str(error)))
    return result


@contextmanager
def _archive_path(content: IO[bytes]) -> Iterator[Path | None]:
    """Yield the path of a copy of a zip archive; None for other files, such as Office documents.

    Raises UnreadableFileError if it is a zip file that cannot be read.
    """
    content.seek(0)
    is_zip = content.read(len(ZIP_MAGIC)) == ZIP_MAGIC
    content.seek(0)
    if not is_zip:
        yield None
        return
    with NamedTemporaryFile() as copy:
        shutil.copyfileobj(content, copy)
        copy.flush()
        path = Path(copy.name)
        yield path if reading.recognise(path, "") == "zip" else None


def clean_name(name: str) -> str:
    """Return the name or relative path on one line. Raises InvalidInputError if it is empty.

    The name is normalised, because archives of macOS write “ü” as two characters.
    """
    name = unicodedata.normalize("NFC", storable(name))
    name = "".join(char if char.isprintable() else " " for char in name)
    parts = (part.strip() for part in name.replace("\\", "/").split("/"))
    name = "/".join(part for part in parts if part not in ("", ".", ".."))
    # Keep the end of a path, which is more specific and has the suffix.
    name = name[-MAX_FILE_NAME_CHARS:].lstrip(" /")
    if not name:
        raise InvalidInputError(_("The file needs a name."), field="file")
    return name


def _measure(content: IO[bytes]) -> tuple[int, str]:
    """Return the size in bytes and the SHA-256. Raises InvalidInputError and LimitError."""
    size, digest = 0, hashlib.sha256()
    content.seek(0)
    while block := content.read(CHUNK_BYTES):
        size += len(block)
        digest.update(block)
        if size > settings.MAX_FILE_MB * 2**20:
            reason = _("This file is too large. The limit is %(most)d MB.")
            raise LimitError(reason % {"most": settings.MAX_FILE_MB}, field="file")
    if not size:
        raise InvalidInputError(_("This file is empty."), field="file")
    return size, digest.hexdigest()


def _store(
    project: Project, user, name: str, session: Session | None, revision: FileRevision
) -> File:
    """Save the revision, unless the file already has this content. Return the file."""
    # Locked, so that names stay unique, the quota holds, and nothing is forgotten in the meantime.
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    now = timezone.now()
    files = File.objects.filter(project=project, session=session)
    if not files.filter(name=name).exists():
        # Names of earlier files are not normalised.
        files.filter(name=unicodedata.normalize("NFD", name)).update(name=name)
    document, is_new = File.objects.get_or_create(
        project=project,
        session=session,
        name=name,
        defaults={"added_by": user, "created_at": now, "changed_at": now},
    )
    if not is_new:
        # Before its versions, in the order in which a worker locks them.
        File.objects.select_for_update().get(project=project, pk=document.pk)
    latest = document.revisions.filter(project=project).order_by("-number").first()
    if latest is not None and latest.sha256 == revision.sha256:
        if latest.state == FileState.FAILED:
            retry(document)
        return document
    revision.document, revision.created_at = document, now
    revision.number = latest.number + 1 if latest else 1
    # Copies of the same bytes share a stored file. Locked, so that it is not removed now.
    copies = FileRevision.objects.filter(project=project, sha256=revision.sha256)
    if copy := copies.select_for_update(of=("self",)).first():
        revision.file = copy.file.name
    # Each copy of the same content counts, because it has passages and chunks of its own.
    sizes = FileRevision.objects.filter(project=project).aggregate(Sum("size", default=0))
    if sizes["size__sum"] + revision.size > settings.PROJECT_FILES_MB * 2**20:
        reason = _("The files of this project would be larger than %(most)d MB together.")
        raise LimitError(reason % {"most": settings.PROJECT_FILES_MB}, field="file")
    revision.save(force_insert=True)
    Project.objects.filter(pk=project.pk, has_files=False).update(has_files=True)
    project.has_files = True
    if not is_new:
        File.objects.filter(project=project, pk=document.pk).update(changed_at=now)
    record_activity(
        project.pk,
        ActivityVerb.FILE_ADDED,
        by=user,
        related=[document.pk],
        session_id=session.pk if session else None,
    )
    wake_reading()
    return document


def retry(document: File) -> None:
    """Schedule reading the latest version again, if that has failed."""
    rows = FileRevision.objects.filter(project=document.project_id, document=document)
    latest = rows.aggregate(Max("number"))["number__max"]
    failed = rows.filter(number=latest, state=FileState.FAILED)
    if failed.update(
        state=FileState.WAITING, reason="", failures=0, next_try_at=None, last_error=""
    ):
        wake_reading()


def index_again(project: UUID) -> None:
    """Schedule writing the chunks of the project's files again, in its current search language.

    Earlier versions have no chunks. If one was indexed first, the file would be summarised from it.
    """
    ready = FileRevision.objects.filter(project=project, state=FileState.READY)
    later = ready.filter(document=OuterRef("document"), number__gt=OuterRef("number"))
    if ready.filter(~Exists(later)).update(state=FileState.INDEXING, indexed_passages=0):
        wake_reading()


@receiver(post_delete, sender=FileRevision)
def remove_stored_file(instance: FileRevision, **kwargs: object) -> None:
    if instance.file:
        file_removal.schedule_removal(instance.project_id, str(instance.file.name))
