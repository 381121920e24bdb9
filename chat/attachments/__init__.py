"""Images of a session: upload them, attach them to messages, and delete them.

Each message that shows an image has its own row. Copies in a branch or fork share the file, which
is removed together with its last row.
"""

import logging
from collections.abc import Collection, Iterable
from datetime import timedelta
from pathlib import PurePath
from typing import IO
from uuid import UUID

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.db.models.signals import post_delete
from django.dispatch import receiver
from django.http import Http404
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from chat import permissions
from chat.attachments import file_removal, images
from chat.attachments.images import ImageRejectedError
from chat.models import Attachment, Message, Session
from chat.prompt.types import PromptImage
from projects.core.database import PreparedObjects
from projects.core.models import new_id

log = logging.getLogger(__name__)

MAX_IMAGES_PER_MESSAGE = 10
TOO_MANY_IMAGES = format_lazy(
    _("A message can have at most {most} images."), most=MAX_IMAGES_PER_MESSAGE
)
MISSING_IMAGE = _("One of the images is missing or was already sent. Attach it again.")
MAX_NAME_CHARS = 200
MAX_DESCRIPTION_CHARS = 1_000
# An upload that is not attached to a message within this time is deleted.
CLAIM_WITHIN = timedelta(days=1)
SWEEP_BATCH_SIZE = 1_000


def upload_image(
    session: Session, user, name: str, file: IO[bytes], description: str = ""
) -> Attachment:
    """Encode and store an image for a later message of `user`. Raises `ImageRejectedError`."""
    return store_image(session, user, name, read_upload(file), description)


def read_upload(file: IO[bytes]) -> images.EncodedImage:
    """Return the encoded image in `file`, which is read up to the size limit.

    Raises `ImageRejectedError`.
    """
    return images.reencode(file.read(images.MAX_IMAGE_BYTES + 1))


def store_image(
    session: Session, user, name: str, image: images.EncodedImage, description: str = ""
) -> Attachment:
    """Store an encoded image for a later message of `user`."""
    attachment = store_file(session.project_id, user, name, image, description)
    attachment.session = session
    try:
        with transaction.atomic():
            attachment.save(force_insert=True)
            file_removal.keep_file(attachment)
    except BaseException:
        # The session was deleted in the meantime, or the database is away.
        attachment.file.delete(save=False)
        raise
    return attachment


def store_file(
    project_id: UUID, user, name: str, image: images.EncodedImage, description: str = ""
) -> Attachment:
    """Store the file of an encoded image. Return its unsaved row, which has no session yet.

    If the caller does not save the row, it must delete the file.
    """
    attachment = Attachment(
        project_id=project_id,
        uploaded_by=user,
        name=_one_line(PurePath(name).name)[:MAX_NAME_CHARS],
        description=_one_line(description)[:MAX_DESCRIPTION_CHARS],
        media_type=image.media_type,
        width=image.width,
        height=image.height,
        size=len(image.data),
        sha256=image.sha256,
    )
    file_removal.write_file(attachment, attachment.name, ContentFile(image.data))
    return attachment


def _one_line(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text).strip()


def set_description(pk: UUID, user, description: str) -> None:
    """Set the description of an unclaimed upload of `user`."""
    rows = unclaimed_uploads(user).filter(pk=pk)
    rows.update(description=_one_line(description)[:MAX_DESCRIPTION_CHARS])


def check_uploads(session: Session, ids: Collection[UUID], user, new_images: int) -> None:
    """Raise the errors of `claim_uploads` for `ids` and `new_images` further images.

    Call this before the further images are stored. If the transaction is rolled back later, their
    files stay without a row, and nothing removes them.
    """
    unique_ids = set(ids)
    uploads = _named_uploads(session.pk, unique_ids, user, new_images)
    if unique_ids and uploads.count() != len(unique_ids):
        raise ImageRejectedError(MISSING_IMAGE)


def claim_uploads(message: Message, ids: Collection[UUID], user) -> None:
    """Attach uploads of `user` to `message`, inside the transaction that posts it.

    Raises `ImageRejectedError` if one of `ids` is not an unclaimed upload of the user to this
    session, or if there are more than MAX_IMAGES_PER_MESSAGE.
    """
    unique_ids = set(ids)
    uploads = _named_uploads(message.session_id, unique_ids, user)
    if unique_ids and uploads.update(message=message) != len(unique_ids):
        raise ImageRejectedError(MISSING_IMAGE)


def _named_uploads(session: UUID, ids: set[UUID], user, new_images: int = 0):
    if len(ids) + new_images > MAX_IMAGES_PER_MESSAGE:
        raise ImageRejectedError(TOO_MANY_IMAGES)
    return unclaimed_uploads(user).filter(pk__in=ids, session_id=session)


def unclaimed_uploads(user):
    return Attachment.objects.filter(uploaded_by=user, message=None)


def copy_attachments(copies: Iterable[tuple[UUID, Message]]) -> None:
    """Attach the images of messages to their copies in a branch or a fork of the same project.

    `copies` are pairs (id of the original, stored copy). Call this in the transaction that writes
    the copies.
    """
    copy_of = dict(copies)
    # Locked, so that the file is not removed before the new row exists.
    rows = list(Attachment.objects.select_for_update().filter(message__in=copy_of))
    for row in rows:
        assert row.message_id is not None
        copy = copy_of[row.message_id]
        row.pk, row.message, row.session_id = new_id(), copy, copy.session_id
    Attachment.objects.bulk_create(rows, batch_size=500)


def attachment_for_reading(user, pk: UUID, token=None) -> Attachment:
    """Return the image `pk` if `user` may read its session. Raises `Http404`.

    An unclaimed image can only be read by its uploader. An image of a deleted message is withheld.
    """
    visible = Q(message__deleted_at=None, message__isnull=False) | Q(message=None, uploaded_by=user)
    attachment = Attachment.objects.filter(visible, pk=pk).first()
    # Query the session even if the image does not exist, so that a missing image takes as many
    # queries as a forbidden image.
    session_id = attachment.session_id if attachment else new_id()
    session = permissions.session_for_reading(user, session_id, token)
    if attachment is None:
        raise Http404
    attachment.session = session
    return attachment


def attachments_by_message(messages: Collection[UUID]) -> dict[UUID, list[Attachment]]:
    """Return the images of `messages` in the order of their upload, with one query."""
    result: dict[UUID, list[Attachment]] = {message: [] for message in messages}
    for row in Attachment.objects.filter(message__in=messages):
        assert row.message_id is not None
        result[row.message_id].append(row)
    return result


@PreparedObjects.of(UUID)
def attachments_of(message: UUID) -> QuerySet[Attachment]:
    """Return the images of a message in the order of their upload."""
    return Attachment.objects.filter(message=message)


def prompt_images_by_message(messages: Iterable[UUID]) -> dict[UUID, tuple[PromptImage, ...]]:
    """Return the images of the messages with these ids, as prompts contain them."""
    result: dict[UUID, tuple[PromptImage, ...]] = {}
    ids = list(messages)
    for row in Attachment.objects.filter(message__in=ids) if ids else ():
        assert row.message_id is not None
        image = PromptImage(
            id=row.pk,
            media_type=row.media_type,
            description=row.description or row.name,
            width=row.width,
            height=row.height,
            path=str(row.file.name),
        )
        result[row.message_id] = (*result.get(row.message_id, ()), image)
    return result


def read_images(prompt_images: Iterable[PromptImage]) -> dict[UUID, bytes]:
    """Return the bytes of images by id, without a query. A missing file is left out."""
    data = {}
    for image in prompt_images:
        if image.data:
            data[image.id] = image.data
            continue
        try:
            with default_storage.open(image.path) as file:
                data[image.id] = file.read()
        except FileNotFoundError:
            log.error("image_missing attachment=%s", image.id)
    return data


def delete_unclaimed() -> int:
    """Delete uploads that no message claimed in time, and return their number."""
    expired = Attachment.objects.filter(message=None, created_at__lt=Now() - CLAIM_WITHIN)
    with transaction.atomic():
        # Locked, so that nobody claims these uploads. Uploads that are being claimed are skipped.
        locked = expired.select_for_update(skip_locked=True)
        ids = list(locked.values_list("pk", flat=True)[:SWEEP_BATCH_SIZE])
        Attachment.objects.filter(pk__in=ids).delete()
    return len(ids)


@receiver(post_delete, sender=Attachment)
def remove_attachment_file(instance: Attachment, **kwargs: object) -> None:
    file_removal.schedule_removal(instance.project_id, str(instance.file.name))
