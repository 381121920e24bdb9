"""Images of a conversation: uploaded, claimed by the message they go with, read, and cleared away.

Each message that shows an image has a row for it. Rows of a branch or a fork share one file, which
goes with the last of them.
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
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now
from django.db.models.signals import post_delete
from django.dispatch import receiver
from django.http import Http404
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from chat import access, files, images
from chat.compiled import Among, CompiledObjects
from chat.images import Refused
from chat.models import Attachment, Message, Session
from chat.sight import Image
from projects.identifiers import new_id

log = logging.getLogger(__name__)

MOST_A_MESSAGE = 10
TOO_MANY = format_lazy(_("A message takes at most {most} images."), most=MOST_A_MESSAGE)
# How long an upload waits for the message it goes with.
UNCLAIMED = timedelta(days=1)


def attach(session: Session, user, name: str, file: IO[bytes], description: str = "") -> Attachment:
    """An image of `user` for a message to come, made anew from `file`. Raises Refused."""
    return keep(session, user, name, read_upload(file), description)


def read_upload(file: IO[bytes]) -> images.Encoded:
    """The image in `file`, made anew; no more than the bytes allowed are read. Raises Refused."""
    return images.reencode(file.read(images.MOST_BYTES + 1))


def keep(
    session: Session, user, name: str, image: images.Encoded, description: str = ""
) -> Attachment:
    """Stores an image that was made anew, for a message of `user` to come."""
    attachment = Attachment(
        project_id=session.project_id,
        session=session,
        uploaded_by=user,
        name=_plain(PurePath(name).name)[:200],
        description=_plain(description)[:1_000],
        media_type=image.media_type,
        width=image.width,
        height=image.height,
        size=len(image.data),
        sha256=image.sha256,
    )
    attachment.file.save(attachment.name, ContentFile(image.data), save=False)
    attachment.save(force_insert=True)
    return attachment


def _plain(text: str) -> str:
    """On one line, without control characters."""
    return "".join(one if one.isprintable() else " " for one in text).strip()


def describe(pk: UUID, user, description: str) -> None:
    """Gives an upload of `user` that no message claimed yet its description."""
    _unclaimed(user).filter(pk=pk).update(description=_plain(description)[:1_000])


def claim(message: Message, ids: Collection[UUID], user) -> None:
    """Binds uploads of `user` to `message`, inside the transaction that posts it.

    Raises Refused, and the post with it, unless each of `ids` is an upload of the user to the same
    session that no message has yet, and they are no more than MOST_A_MESSAGE.
    """
    wanted = set(ids)
    if not wanted:
        return
    if len(wanted) > MOST_A_MESSAGE:
        raise Refused(TOO_MANY)
    free = _unclaimed(user).filter(pk__in=wanted, session_id=message.session_id)
    if free.update(message=message) != len(wanted):
        raise Refused(_("One of the images is not there, or was sent before. Attach it again."))


def _unclaimed(user):
    return Attachment.objects.filter(uploaded_by=user, message=None)


def carry(copies: Iterable[tuple[UUID, Message]]) -> None:
    """Shows the images of a message on its copy, in a branch or a fork of the same project, too.

    `copies` are pairs of the original's id and the copy, which is written already. Call it inside
    the transaction that writes them.
    """
    made = dict(copies)
    # Locked, so that the file does not go while another row for it comes.
    rows = list(Attachment.objects.select_for_update().filter(message__in=made))
    for row in rows:
        assert row.message_id is not None
        copy = made[row.message_id]
        row.pk, row.message, row.session_id = new_id(), copy, copy.session_id
    Attachment.objects.bulk_create(rows, batch_size=500)


def for_reading(user, pk: UUID, token=None) -> Attachment:
    """The image `pk` for whoever may see its session, or Http404.

    Before its message is posted it is its uploader's alone; with a deleted message it is withheld.
    """
    shown = Q(message__deleted_at=None, message__isnull=False) | Q(message=None, uploaded_by=user)
    found = Attachment.objects.filter(shown, pk=pk).first()
    if found is None:
        raise Http404
    found.session = access.session_for_reading(user, found.session_id, token)
    return found


def stands_without_words(message: Message) -> bool:
    """Whether `message` may have no text, since it shows an image."""
    return message.attachments.exists()


def shown_by(messages: Collection[UUID]) -> dict[UUID, list[Attachment]]:
    """The images of messages, by message, in the order in which they were uploaded: one query."""
    found: dict[UUID, list[Attachment]] = {message: [] for message in messages}
    for row in _of_messages(list(messages)):
        assert row.message_id is not None
        found[row.message_id].append(row)
    return found


def _rows_of(messages: list[UUID]) -> QuerySet[Attachment]:
    return Attachment.objects.filter(Among(F("message"), messages))


_of_messages = CompiledObjects[Attachment](_rows_of, list)


def images_of(messages: Iterable[UUID]) -> dict[UUID, tuple[Image, ...]]:
    """The images of messages, given by their ids, as prompts know them, by message."""
    found: dict[UUID, tuple[Image, ...]] = {}
    wanted = list(messages)
    for row in Attachment.objects.filter(message__in=wanted) if wanted else ():
        assert row.message_id is not None
        image = Image(
            id=row.pk,
            media_type=row.media_type,
            description=row.description or row.name,
            width=row.width,
            height=row.height,
            path=str(row.file.name),
        )
        found[row.message_id] = (*found.get(row.message_id, ()), image)
    return found


def read(shown: Iterable[Image]) -> dict[UUID, bytes]:
    """The bytes of images, by id. It asks no database. A file that is not there is left out."""
    data = {}
    for image in shown:
        if image.data:
            data[image.id] = image.data
            continue
        try:
            with default_storage.open(image.path) as file:
                data[image.id] = file.read()
        except FileNotFoundError:
            log.error("image_missing attachment=%s", image.id)
    return data


def sweep() -> int:
    """Removes uploads that no message claimed within a day; returns how many."""
    late = Attachment.objects.filter(message=None, created_at__lt=Now() - UNCLAIMED)
    with transaction.atomic():
        # Locked, so that none is claimed meanwhile; one that is being claimed is passed over.
        rows = list(late.select_for_update(skip_locked=True).values_list("pk", flat=True)[:1000])
        Attachment.objects.filter(pk__in=rows).delete()
    return len(rows)


@receiver(post_delete, sender=Attachment)
def remove_file(instance: Attachment, **kwargs: object) -> None:
    """The file goes when it is certain that its last row went."""
    files.remove(instance.project_id, str(instance.file.name))
