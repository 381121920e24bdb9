"""Images on their way in from elsewhere: checked as uploads are, and shown on their messages.

They follow after their messages, one message at a time: each costs time, and an import that ends
between two of them is carried on by the next.
"""

import binascii
from base64 import b64decode
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from os import SEEK_END
from pathlib import PurePosixPath
from tempfile import TemporaryFile
from uuid import UUID

from django.db import transaction
from django.db.models import F

from chat import images
from chat.attachments import MOST_A_MESSAGE, TOO_MANY, keep
from chat.importers.base import Document, ImportedImage, ImportResult, Refused, Unusable
from chat.models import Attachment, Message, Session
from chat.seals import is_sealed

__all__ = ["MOST_A_MESSAGE", "Shown", "Spool", "attach", "beside"]

LONGEST_BASE64 = images.MOST_BYTES * 4 // 3 + 4  # characters


class Spool:
    """The images that stand in a document itself, on disk: together they may be too much for
    memory. They are gone with the last who reads them.
    """

    def __init__(self) -> None:
        self._file = TemporaryFile()  # noqa: SIM115  (closed with the last reader)

    def __del__(self) -> None:
        self._file.close()

    def data(self, base64: str) -> Callable[[], bytes]:
        """Lays the bytes aside. Raises Unusable."""
        if len(base64) > LONGEST_BASE64:
            raise Unusable(images.TOO_BIG)
        try:
            data = b64decode(base64, validate=True)
        except (binascii.Error, ValueError):
            raise Unusable("It is not base64.") from None
        start, size = self._file.seek(0, SEEK_END), len(data)
        self._file.write(data)

        def read() -> bytes:
            self._file.seek(start)
            return self._file.read(size)

        return read

    def image(self, base64: str, name: str) -> ImportedImage | None:
        """The image that is written there, if it is one at first sight."""
        try:
            read = self.data(base64)
        except Unusable:
            return None
        return ImportedImage(name, "", read) if images.seems_one(read()[:16]) else None


def beside(file: Document | None, name: str, description: str) -> ImportedImage | None:
    """The image in a file of the same zip, if that is there and one at first sight."""
    if file is None:
        return None

    def read() -> bytes:
        return file.open().read(images.MOST_BYTES + 1)

    try:
        if not images.seems_one(file.open().read(16)):
            return None
    except Refused:
        return None
    return ImportedImage(name or PurePosixPath(file.name).name, description, read)


@dataclass(frozen=True)
class Shown:
    """The images that belong to the message `message` of `session`."""

    session: Session
    message: UUID
    images: tuple[ImportedImage, ...]


def attach(shown: Iterable[Shown], owner, result: ImportResult, pulse: Callable[[], None]) -> None:
    """Shows images on messages that stand and have none yet, all of a message at once.

    `pulse` is called before each message. A damaged image costs only itself, with a reason in
    `result`. Until they are shown they are uploads of `owner`, which are cleared away if nobody
    claims them: so nothing stays of an import that dies here. Not to be called in a transaction.
    """
    wanted = {one.message: one for one in shown}
    bare = Message.objects.filter(pk__in=wanted, deleted_at=None, attachments=None)
    for pk in list(bare.order_by("session", "seq").values_list("pk", flat=True)):
        pulse()
        one = wanted[pk]
        kept = [
            keep(one.session, owner, image.name, encoded, image.description).pk
            for image, encoded in _encoded(one, result)
        ]
        if kept:
            _claim(one, kept)


def _encoded(one: Shown, result: ImportResult) -> Iterable[tuple[ImportedImage, images.Encoded]]:
    if len(one.images) > MOST_A_MESSAGE:
        result.errors.append(f"“{one.session.label}”: {TOO_MANY}")
    for image in one.images[:MOST_A_MESSAGE]:
        try:
            yield image, _checked(image)
        except (images.Refused, Refused) as reason:
            result.errors.append(f"“{one.session.label}”, image “{image.name}”: {reason}")


def _checked(image: ImportedImage) -> images.Encoded:
    """The image made anew, or as it is if that was done here before. Raises Refused."""
    data = image.read()
    told = images.Encoded(
        data, image.media_type, image.width, image.height, sha256(data).hexdigest()
    )
    return told if is_sealed(told, image.seal) else images.reencode(data)


@transaction.atomic
def _claim(one: Shown, kept: list[UUID]) -> None:
    # Locked, so that two imports at once do not both show theirs.
    Session.objects.select_for_update().get(pk=one.session.pk)
    rows = Attachment.objects.filter(pk__in=kept)
    if Attachment.objects.filter(message=one.message).exists():
        rows.delete()
    else:
        rows.update(message=one.message)
        Session.objects.filter(pk=one.session.pk).update(version=F("version") + 1)
