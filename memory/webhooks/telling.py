"""What happens is written down for the webhooks that want to know, in its own transaction.

A receiver is told ids, kinds and numbers, and reads the rest through the API, where rights hold at
that moment: so nothing that somebody said leaves here, and nothing forgotten stays behind. What is
said in private sessions is not told at all; of what memory makes of them, as in the activity, the
session is not named.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.db.models.signals import post_save
from django.dispatch import receiver
from django.utils.translation import gettext as _

from chat.compiled import Compiled
from chat.models import FINAL, Import, Message, Session, Visibility
from chat.signals import import_finished, message_added, reply_kept
from memory.models import Activity, Delivery, Event, Verb, Webhook
from memory.tasks import wake_deliveries
from memory.webhooks.delivering import TOO_LATE
from memory.webhooks.registering import Refused

EVENTS_OF_MEMORY = {
    Verb.SUMMARISED: Event.ENTRY_WRITTEN,
    Verb.REWRITTEN: Event.ENTRY_WRITTEN,
    Verb.EDITED: Event.ENTRY_WRITTEN,
    Verb.REDACTED: Event.ENTRY_WRITTEN,
    Verb.ROLLED_UP: Event.ENTRY_ROLLED_UP,
    Verb.PROPOSED: Event.MEMORY_PROPOSED,
    Verb.FORGOTTEN: Event.MEMORY_FORGOTTEN,
}

Data = Mapping[str, Any]


def _listening_to(event: Event) -> Compiled:
    return Compiled(
        lambda project: Webhook.objects.listening(project, event).values_list("pk"), UUID
    )


_listening = {event: _listening_to(event) for event in Event}


def tell(project_id: UUID, event: Event, things: Callable[[], Sequence[Data]]) -> None:
    """Has each of `things` told to the project's webhooks that listen to `event`, once this
    transaction is committed. Without such webhooks it is one query, and `things` is not called.
    """
    webhooks = [pk for (pk,) in _listening[event](project_id)]
    if not webhooks:
        return
    Delivery.objects.bulk_create(
        [
            Delivery(project_id=project_id, webhook_id=webhook, event=event, data=data)
            for data in things()
            for webhook in webhooks
        ]
    )
    wake_deliveries()


def test(webhook: Webhook) -> Delivery:
    """Has a test told, now and once: before all that waits, though the receiver failed a moment
    ago. Raises Refused.
    """
    if not webhook.is_on:
        raise Refused(_("Switch it on first."))
    with transaction.atomic():
        Webhook.objects.filter(pk=webhook.pk).update(next_try_at=None)
        delivery = Delivery.objects.create(
            project_id=webhook.project_id,
            webhook=webhook,
            event=Event.TEST,
            next_try_at=Now() - TOO_LATE,
        )
        wake_deliveries()
    return delivery


@receiver(message_added)
def tell_of_messages(session: Session, messages: list[Message], **kwargs: object) -> None:
    """What somebody just said; not what was imported or copied into a fork."""
    said = [
        message
        for message in messages
        if message.status in FINAL and not message.source_key and not message.copied_from_id
    ]
    if said and session.visibility == Visibility.PROJECT:
        tell(
            session.project_id,
            Event.MESSAGE_POSTED,
            lambda: [_named(session, message, role=message.role) for message in said],
        )


@receiver(reply_kept)
def tell_of_the_reply(session: Session, message: Message, **kwargs: object) -> None:
    if session.visibility == Visibility.PROJECT:
        tell(
            session.project_id,
            Event.REPLY_FINISHED,
            lambda: [_named(session, message, status=message.status)],
        )


def _named(session: Session, message: Message, **fields: str) -> Data:
    return {"session": str(session.pk), "message": str(message.pk), **fields}


@receiver(post_save, sender=Activity)
def tell_of_memory(instance: Activity, **kwargs: object) -> None:
    event = EVENTS_OF_MEMORY.get(Verb(instance.verb))
    of_a_fact = event == Event.ENTRY_WRITTEN and instance.entry_id is None
    if event is not None and not of_a_fact:
        tell(instance.project_id, event, lambda: [_of_act(instance)])


def _of_act(act: Activity) -> Data:
    is_told = not _is_private(act)
    return {
        "activity": str(act.pk),
        "verb": str(act.verb),
        "entry": _id(act.entry_id),
        "fact": _id(act.fact_id),
        "session": _id(act.session_id) if is_told else None,
        "message": _id(act.message_id) if is_told else None,
        "granularity": act.granularity,
        "period_key": act.period_key,
        "count": act.count,
    }


def _is_private(act: Activity) -> bool:
    """Whether the session that it names, or whose message it names, is a private one."""
    named = Q(messages=act.message_id) if act.message_id else Q(pk__in=[])
    if act.session_id:
        named |= Q(pk=act.session_id)
    return Session.objects.filter(named, visibility=Visibility.PRIVATE).exists()


def _id(pk: UUID | None) -> str | None:
    return str(pk) if pk else None


@receiver(import_finished)
def tell_of_the_import(upload: Import, **kwargs: object) -> None:
    numbers = {name: getattr(upload, name) for name in ("sessions", "imported", "skipped")}
    tell(
        upload.project_id,
        Event.IMPORT_DONE,
        lambda: [{"import": str(upload.pk), "state": upload.state, **numbers}],
    )
