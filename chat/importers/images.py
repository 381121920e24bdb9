"""Images of imported messages: validate them like uploads, and attach them to their messages.

Images are attached after the messages are written, one message at a time, because encoding takes
time. If an import is interrupted between two messages, the next import attaches the remaining
images.
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
from django.db.models import F, Q
from django.utils.crypto import constant_time_compare
from django.utils.translation import gettext_noop as _

from chat.attachments import MAX_IMAGES_PER_MESSAGE, TOO_MANY_IMAGES, images, store_image
from chat.importers.base import (
    ImportedFile,
    ImportedImage,
    ImportRejectedError,
    ImportResult,
    InvalidItemError,
)
from chat.models import Attachment, Message, Session

MAX_BASE64_CHARS = images.MAX_IMAGE_BYTES * 4 // 3 + 4


class ImageSpool:
    """Images from the text of a document, stored on disk because they may not fit into memory.

    The file is deleted together with its last reader.
    """

    def __init__(self) -> None:
        self._file = TemporaryFile()  # noqa: SIM115  (closed with the last reader)

    def __del__(self) -> None:
        self._file.close()

    def data(self, base64: str) -> Callable[[], bytes]:
        """Store the decoded bytes. Return a function that reads them. Raises `InvalidItemError`."""
        if len(base64) > MAX_BASE64_CHARS:
            raise InvalidItemError(images.TOO_MANY_BYTES)
        try:
            data = b64decode(base64, validate=True)
        except (binascii.Error, ValueError):
            raise InvalidItemError(_("It is not base64.")) from None
        start, size = self._file.seek(0, SEEK_END), len(data)
        self._file.write(data)

        def read() -> bytes:
            self._file.seek(start)
            return self._file.read(size)

        return read

    def image(self, base64: str, name: str) -> ImportedImage | None:
        """Return the image, or None if its first bytes are not those of an image."""
        try:
            read = self.data(base64)
        except InvalidItemError:
            return None
        return ImportedImage(name, "", read) if images.looks_like_image(read()[:16]) else None


def image_from_zip(file: ImportedFile | None, name: str, description: str) -> ImportedImage | None:
    """Return the image in a file of the zip file, or None if the file is not an image."""
    if file is None:
        return None

    def read() -> bytes:
        return file.open().read(images.MAX_IMAGE_BYTES + 1)

    try:
        if not images.looks_like_image(file.open().read(16)):
            return None
    except ImportRejectedError:
        return None
    return ImportedImage(name or PurePosixPath(file.name).name, description, read)


@dataclass(frozen=True)
class MessageImages:
    """The images of `message` in `session`."""

    session: Session
    message: UUID
    images: tuple[ImportedImage, ...]


def attach_images(
    items: Iterable[MessageImages], owner, result: ImportResult, report_progress: Callable[[], None]
) -> None:
    """Attach the images of each message in one transaction. Skip messages that already have images
    or no longer exist.

    `report_progress` is called before each message. A damaged image is skipped and added to
    `result`. Until they are attached, images are uploads of `owner`, which are deleted after a day.
    Therefore nothing is left if the import dies. Do not call this in a transaction.
    """
    wanted = {item.message: item for item in items}
    without_images = Message.objects.filter(pk__in=wanted, deleted_at=None, attachments=None)
    # A file can name any message. What another user wrote in Strata gets no image from it.
    imported = ~Q(source_key=None)
    without_images = without_images.filter(imported | Q(author=owner) | Q(author=None))
    for pk in list(without_images.order_by("session", "seq").values_list("pk", flat=True)):
        report_progress()
        item = wanted[pk]
        stored = [
            store_image(item.session, owner, image.name, encoded, image.description).pk
            for image, encoded in _encoded(item, result)
        ]
        if stored:
            _claim(item, stored)


def _encoded(
    item: MessageImages, result: ImportResult
) -> Iterable[tuple[ImportedImage, images.EncodedImage]]:
    if len(item.images) > MAX_IMAGES_PER_MESSAGE:
        result.errors.append(f"“{item.session.label}”: {TOO_MANY_IMAGES}")
    for image in item.images[:MAX_IMAGES_PER_MESSAGE]:
        try:
            yield image, _encode(image)
        except (images.ImageRejectedError, ImportRejectedError) as error:
            place = f"“{item.session.label}”: " + _("Image %s") % f"“{image.name}”"
            result.errors.append(f"{place}: {error}")


def _encode(image: ImportedImage) -> images.EncodedImage:
    """Re-encode the image, unless its signature shows that this server encoded it.

    Raises `ImportRejectedError`.
    """
    data = image.read()
    encoded = images.EncodedImage(
        data, image.media_type, image.width, image.height, sha256(data).hexdigest()
    )
    is_ours = constant_time_compare(images.sign(encoded), image.signature)
    return encoded if is_ours else images.reencode(data)


@transaction.atomic
def _claim(item: MessageImages, attachments: list[UUID]) -> None:
    # Locked, so that two concurrent imports do not attach the same images twice, and the message is
    # not deleted or forgotten now.
    Session.objects.select_for_update().get(pk=item.session.pk)
    rows = Attachment.objects.filter(pk__in=attachments)
    message = Message.objects.filter(pk=item.message, deleted_at=None, attachments=None)
    if message.exists():
        rows.update(message=item.message)
        Session.objects.filter(pk=item.session.pk).update(version=F("version") + 1)
    else:
        rows.delete()
