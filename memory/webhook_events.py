"""Record events for the webhooks that subscribe to them, in the transaction of the event.

A payload contains ids, kinds and numbers. The receiver reads the text through the API, with the
permissions that apply then. Therefore no message text leaves through a webhook, and a payload never
contains forgotten text. Messages of private sessions are not reported. Memory events from a private
session do not name the session, like the activity log.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.db.models.signals import post_save, pre_delete
from django.dispatch import Signal, receiver
from django.utils.translation import gettext as _

from chat.models import FINAL, Import, Message, Session, Visibility
from chat.signals import (
    import_finished,
    message_added,
    message_edited,
    messages_deleted,
    reply_stored,
    session_closed,
)
from memory.models import (
    Activity,
    ActivityVerb,
    Delivery,
    Webhook,
    WebhookEvent,
    WebhookOffReason,
)
from memory.wakeups import wake_deliveries
from memory.webhooks import MAX_AGE, switch_off
from projects.core.database import PreparedQuery
from projects.core.errors import InvalidInputError
from projects.models import MemberRole, Membership
from projects.signals import member_removed, role_changed

EVENT_OF_VERB = {
    ActivityVerb.SUMMARISED: WebhookEvent.ENTRY_WRITTEN,
    ActivityVerb.REWRITTEN: WebhookEvent.ENTRY_WRITTEN,
    ActivityVerb.EDITED: WebhookEvent.ENTRY_WRITTEN,
    ActivityVerb.REDACTED: WebhookEvent.ENTRY_WRITTEN,
    ActivityVerb.ROLLED_UP: WebhookEvent.ENTRY_ROLLED_UP,
    ActivityVerb.PROPOSED: WebhookEvent.MEMORY_PROPOSED,
    ActivityVerb.FORGOTTEN: WebhookEvent.MEMORY_FORGOTTEN,
    # Covers facts from a summary and facts entered by hand.
    ActivityVerb.RECORDED: WebhookEvent.FACT_CHANGED,
}
# Verbs that concern a fact if the activity has one.
FACT_VERBS = {
    ActivityVerb.EDITED,
    ActivityVerb.CLOSED,
    ActivityVerb.APPROVED,
    ActivityVerb.REJECTED,
    ActivityVerb.HIDDEN,
    ActivityVerb.SHOWN,
}

Payload = Mapping[str, Any]


def emit(project_id: UUID, event: WebhookEvent, payloads: Callable[[], Sequence[Payload]]) -> None:
    """Store a delivery of each payload for each subscribed webhook, and wake the worker on commit.

    If nothing is subscribed, this takes one query and `payloads` is not called.
    """
    webhooks = list(_subscribers(event)(project_id))
    if not webhooks:
        return
    Delivery.objects.bulk_create(
        [
            Delivery(
                project_id=project_id,
                webhook_id=webhook,
                event=event,
                # A new name of the project must not change the body of a later attempt.
                data={"project": slug, **payload},
            )
            for payload in payloads()
            for webhook, slug in webhooks
        ]
    )
    wake_deliveries()


@cache
def _subscribers(event: WebhookEvent) -> PreparedQuery:
    def make(project: UUID) -> QuerySet:
        return Webhook.objects.subscribed_to(project, event).values_list("pk", "project__slug")

    return PreparedQuery(make, UUID)


def send_test(webhook: Webhook) -> Delivery:
    """Queue a test event before all pending deliveries. Send it even if the webhook waits to retry.

    Raises InvalidInputError if the webhook is off.
    """
    if not webhook.is_on:
        raise InvalidInputError(_("Turn the webhook on first."))
    with transaction.atomic():
        Webhook.objects.filter(pk=webhook.pk).update(next_try_at=None)
        delivery = Delivery.objects.create(
            project_id=webhook.project_id,
            webhook=webhook,
            event=WebhookEvent.TEST,
            data={"project": webhook.project.slug},
            next_try_at=Now() - MAX_AGE,
        )
        wake_deliveries()
    return delivery


@receiver(message_added)
def emit_messages(session: Session, messages: list[Message], **kwargs: object) -> None:
    """Report new messages, except imported messages and messages copied into a fork."""
    posted = [
        message
        for message in messages
        if message.status in FINAL and not message.source_key and not message.copied_from_id
    ]
    _emit_messages(session, WebhookEvent.MESSAGE_POSTED, posted, "role")


@receiver(reply_stored)
def emit_reply(session: Session, message: Message, **kwargs: object) -> None:
    _emit_messages(session, WebhookEvent.REPLY_FINISHED, [message], "status")


@receiver(message_edited)
def emit_edit(session: Session, message: Message, **kwargs: object) -> None:
    _emit_messages(session, WebhookEvent.MESSAGE_EDITED, [message], "role", "version")


@receiver(messages_deleted)
def emit_deletions(session: Session, messages: list[Message], **kwargs: object) -> None:
    _emit_messages(session, WebhookEvent.MESSAGE_DELETED, messages, "role")


@receiver(session_closed)
def emit_closing(session: Session, expired: bool, **kwargs: object) -> None:
    if session.visibility == Visibility.PROJECT:
        payload = {"session": str(session.pk), "reason": "expired" if expired else "closed"}
        emit(session.project_id, WebhookEvent.SESSION_CLOSED, lambda: [payload])


def _emit_messages(
    session: Session, event: WebhookEvent, messages: Sequence[Message], *names: str
) -> None:
    """Report messages of a session that is not private, each with its fields `names`."""

    def payload(message: Message) -> Payload:
        ids = {"session": str(message.session_id), "message": str(message.pk)}
        return ids | {name: getattr(message, name) for name in names}

    if messages and session.visibility == Visibility.PROJECT:
        emit(session.project_id, event, lambda: [payload(message) for message in messages])


@receiver(post_save, sender=Activity)
def emit_activity(instance: Activity, **kwargs: object) -> None:
    event = _event_of(instance)
    if event is not None:
        emit(instance.project_id, event, lambda: [_activity_payload(instance)])


def _event_of(act: Activity) -> WebhookEvent | None:
    verb = ActivityVerb(act.verb)
    if act.fact_id is not None and verb in FACT_VERBS:
        return WebhookEvent.FACT_CHANGED
    event = EVENT_OF_VERB.get(verb)
    if event == WebhookEvent.ENTRY_WRITTEN and act.entry_id is None:
        return None
    return event


def _activity_payload(act: Activity) -> Payload:
    # The session that the activity names, or the session of the message that it names.
    named = Q(messages=act.message_id) if act.message_id else Q(pk__in=[])
    if act.session_id:
        named |= Q(pk=act.session_id)
    is_private = Session.objects.filter(named, visibility=Visibility.PRIVATE).exists()

    def text(pk: UUID | None) -> str | None:
        return str(pk) if pk else None

    return {
        "activity": str(act.pk),
        "verb": str(act.verb),
        "entry": text(act.entry_id),
        "fact": text(act.fact_id),
        "session": None if is_private else text(act.session_id),
        "message": None if is_private else text(act.message_id),
        "granularity": act.granularity,
        "period_key": act.period_key,
        "count": act.count,
    }


@receiver(import_finished)
def emit_import(upload: Import, **kwargs: object) -> None:
    counts = {name: getattr(upload, name) for name in ("sessions", "imported", "skipped")}
    emit(
        upload.project_id,
        WebhookEvent.IMPORT_DONE,
        lambda: [{"import": str(upload.pk), "state": upload.state, **counts}],
    )


@receiver([member_removed, role_changed])
def switch_off_of_former_owner(member: Membership, signal: Signal, **kwargs: object) -> None:
    """Switch off the webhooks that a former owner created, because only they may know the receiver.
    Another owner can switch them on.
    """
    if signal is member_removed or member.role != MemberRole.OWNER:
        _switch_off_of(member.user, project=member.project_id)


@receiver(post_save, sender=settings.AUTH_USER_MODEL)
def switch_off_of_inactive_user(instance: Any, update_fields: Any, **kwargs: object) -> None:
    # Skip the frequent saves of `last_login` at sign-in.
    if not instance.is_active and (update_fields is None or "is_active" in update_fields):
        _switch_off_of(instance)


@receiver(pre_delete, sender=settings.AUTH_USER_MODEL)
def switch_off_of_deleted_user(instance: Any, **kwargs: object) -> None:
    _switch_off_of(instance)


def _switch_off_of(user: Any, **conditions: object) -> None:
    for webhook in Webhook.objects.filter(created_by=user, off_because="", **conditions):
        switch_off(webhook, WebhookOffReason.CREATOR)
