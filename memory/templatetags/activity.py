"""Template tags for the activity log: an action as a sentence, day, reason, duration, cost."""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from django import template
from django.shortcuts import resolve_url
from django.utils import timezone
from django.utils.formats import date_format, number_format
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, ngettext_lazy

from memory.layers.periods import Granularity, localized_label
from memory.models import Activity, ActivityVerb, EntryStatus, ModerationReason, ReviewReason
from memory.models.entries import CONVERSATION
from projects.core.text import translate_name, translate_reason
from projects.models import MemberRole

register = template.Library()

MAX_FACT_CHARS = 80

# The labels of the counts in a forget receipt, in the order in which they are shown.
REMOVED_LABELS: Mapping[str, Any] = {
    "messages": ngettext_lazy("message or reply to it", "messages and replies to them"),
    "sessions": ngettext_lazy("chat", "chats"),
    "entries": ngettext_lazy("memory", "memories"),
    "lines": ngettext_lazy("line of another memory", "lines of other memories"),
    "facts": ngettext_lazy("fact", "facts, including earlier versions"),
    "entry_revisions": ngettext_lazy("earlier version of a memory", "earlier versions of memories"),
    "revisions": ngettext_lazy("earlier version of a message", "earlier versions of messages"),
    "attachments": ngettext_lazy("image", "images"),
    "reactions": ngettext_lazy("reaction", "reactions"),
    "blocks": ngettext_lazy("pinned text", "pinned texts"),
    "saved_prompts": ngettext_lazy("saved prompt", "saved prompts"),
    "chunks": ngettext_lazy("search index entry", "search index entries"),
    "titles": ngettext_lazy("chat title, replaced", "chat titles, replaced"),
    "imports": ngettext_lazy("import", "imports"),
    "files": ngettext_lazy("file with all versions", "files with all versions"),
    "rendered_bank": ngettext_lazy(
        "memory text for prompts, rebuilt", "memory texts for prompts, rebuilt"
    ),
}

# The actions as sentences. `what` is a link to the memory, fact, message or chat.
SENTENCES: Mapping[str, Any] = {
    ActivityVerb.SUMMARISED: gettext_lazy("%(who)s summarised %(what)s"),
    ActivityVerb.ROLLED_UP: ngettext_lazy(
        "%(who)s merged 1 memory into %(what)s", "%(who)s merged %(n)s memories into %(what)s", "n"
    ),
    ActivityVerb.REWRITTEN: gettext_lazy("%(who)s rewrote %(what)s"),
    ActivityVerb.DISSOLVED: gettext_lazy(
        "%(who)s removed %(what)s, because all its sources were deleted"
    ),
    ActivityVerb.FADED: ngettext_lazy(
        "%(who)s stopped sending 1 memory (no room)",
        "%(who)s stopped sending %(n)s memories (no room)",
        "n",
    ),
    ActivityVerb.RETURNED: ngettext_lazy(
        "%(who)s resumed sending 1 memory", "%(who)s resumed sending %(n)s memories", "n"
    ),
    ActivityVerb.FAILED: gettext_lazy("%(who)s could not summarise %(what)s"),
    ActivityVerb.PROPOSED: gettext_lazy("%(who)s sent %(what)s to review"),
    ActivityVerb.APPROVED: gettext_lazy("%(who)s approved %(what)s"),
    ActivityVerb.CHECKED: gettext_lazy("%(who)s confirmed %(what)s"),
    ActivityVerb.REJECTED: gettext_lazy("%(who)s rejected %(what)s"),
    ActivityVerb.EDITED: gettext_lazy("%(who)s edited %(what)s"),
    ActivityVerb.PINNED: gettext_lazy("%(who)s pinned %(what)s"),
    ActivityVerb.UNPINNED: gettext_lazy("%(who)s unpinned %(what)s"),
    ActivityVerb.HIDDEN: gettext_lazy("%(who)s hid %(what)s"),
    ActivityVerb.SHOWN: gettext_lazy("%(who)s showed %(what)s again"),
    ActivityVerb.DELETED: gettext_lazy("%(who)s deleted %(what)s"),
    ActivityVerb.CHAT_CLOSED: gettext_lazy("%(who)s closed %(what)s"),
    ActivityVerb.ARCHIVED: gettext_lazy("%(who)s archived %(what)s"),
    ActivityVerb.UNARCHIVED: gettext_lazy("%(who)s unarchived %(what)s"),
    ActivityVerb.REDACTED: gettext_lazy("%(who)s removed text from %(what)s"),
    ActivityVerb.REWRITE_REQUESTED: gettext_lazy("%(who)s asked for a new summary of %(what)s"),
    ActivityVerb.FORGOTTEN: gettext_lazy("%(who)s made Strata forget %(what)s"),
    ActivityVerb.BLOCK_WRITTEN: gettext_lazy("%(who)s changed pinned text"),
    ActivityVerb.BLOCK_DELETED: gettext_lazy("%(who)s deleted pinned text"),
    ActivityVerb.READ: gettext_lazy("%(who)s opened the private text of %(what)s"),
    ActivityVerb.RECORDED: gettext_lazy("%(who)s added %(what)s"),
    ActivityVerb.CLOSED: gettext_lazy("%(who)s ended %(what)s"),
    ActivityVerb.MEMBER_ADDED: gettext_lazy("%(who)s added a member: %(whom)s"),
    ActivityVerb.MEMBER_REMOVED: gettext_lazy("%(who)s removed a member: %(whom)s"),
    ActivityVerb.ROLE_CHANGED: gettext_lazy("%(who)s changed a role: %(whom)s"),
    ActivityVerb.INVITED: gettext_lazy("%(who)s invited someone: %(whom)s"),
    ActivityVerb.IMPORTED: gettext_lazy("%(who)s imported %(what)s"),
    ActivityVerb.FILE_ADDED: gettext_lazy("%(who)s added %(what)s"),
    ActivityVerb.JOINED: gettext_lazy("%(who)s joined by invitation: %(whom)s"),
}

LEFT = gettext_lazy("%(who)s left the project: %(whom)s")


@register.simple_tag
def activity_sentence(row: Any, slug: str, is_about_page: bool = False) -> SafeString:
    """Return a row of memory.views.activity as a sentence with links.

    On the page of the memory or fact itself (`is_about_page`), the sentence has no link to it.
    """
    act = row.act
    parts = {
        "who": format_html("<b>{}</b>", actor(act)),
        "whom": format_html("<b>{}</b>", membership_change(act)),
        "what": _this(row) if is_about_page else _object(row, slug),
    }
    left = act.verb == ActivityVerb.MEMBER_REMOVED and act.whom_id == act.by_id
    sentence = LEFT if left else SENTENCES[act.verb]
    return mark_safe(sentence % {"n": act.count, **parts})  # noqa: S308


def _this(row: Any) -> str:
    act = row.act
    if act.verb == ActivityVerb.RECORDED and not act.fact_id:
        return ngettext("1 fact", "%(n)s facts", act.count) % {"n": act.count}
    if act.verb == ActivityVerb.SUMMARISED:
        return _("the file") if row.entry and row.entry.file_id else _("the chat")
    return _("this fact") if act.fact_id else _("this memory")


def _object(row: Any, slug: str) -> str | SafeString:
    """Return the object of an action, as a link if the reader may open it."""
    act = row.act
    chat = _chat_link(row, slug)
    if act.verb == ActivityVerb.IMPORTED:
        return _imported(act)
    if act.verb == ActivityVerb.FILE_ADDED:
        file = row.file
        return _link(resolve_url("file", slug, file.pk), file.name) if file else _("a file")
    if act.fact_id and row.fact is None:
        return _("a fact")
    if act.fact_id:
        label = _("“%(fact)s”") % {"fact": Truncator(row.fact.text).chars(MAX_FACT_CHARS)}
        return _link(resolve_url("fact", slug, row.fact.pk), label)
    if act.verb == ActivityVerb.RECORDED and act.count:
        count = ngettext("1 fact", "%(n)s facts", act.count) % {"n": act.count}
        return format_html(_("{facts} from {chat}"), facts=count, chat=chat) if chat else count
    if act.entry_id:
        return _entry_link(row, slug)
    if act.message_id:
        return format_html(_("a message in {chat}"), chat=chat) if chat else _("a message")
    if act.verb in (ActivityVerb.ARCHIVED, ActivityVerb.UNARCHIVED) and not act.session_id:
        return _("the project")
    if act.verb == ActivityVerb.FAILED and not act.session_id:
        return _("a file or memories")
    return chat or (_("a chat") if act.session_id else _("messages"))


def _imported(act: Activity) -> str:
    chats, messages = act.receipt.get("sessions", 0), act.count
    parts = (
        ngettext("1 chat", "%(n)s chats", chats) % {"n": chats},
        ngettext("1 message", "%(n)s messages", messages) % {"n": messages},
    )
    return _("%(chats)s with %(messages)s") % {"chats": parts[0], "messages": parts[1]}


def _entry_link(row: Any, slug: str) -> SafeString:
    """Return a link with the chat, file or period of the entry, in the colour of the layer."""
    act, entry = row.act, row.entry
    if entry and entry.file and (row.session or not entry.session):
        label = entry.file.document.name
    elif row.session:
        label = row.session.label
    elif entry and entry.session:
        label = entry.session.open_label
    else:
        label = activity_period(act) or (entry and localized_label(entry.layer, entry.period_key))
    label = label or _("a memory")
    dot = format_html('<i class="dot c-{}"></i> ', act.granularity or CONVERSATION)
    return dot + _link(entry and resolve_url("entry", slug, entry.pk), translate_name(label))


def _chat_link(row: Any, slug: str) -> SafeString | str:
    if not row.session:
        return ""
    return _link(resolve_url("session", slug, row.session.pk), translate_name(row.session.label))


def _link(url: str | None, label: str) -> SafeString:
    return format_html('<a href="{}">{}</a>', url, label) if url else conditional_escape(label)


@register.filter
def day_heading(day: date) -> str:
    """Return “Today”, “Yesterday”, or the date with its weekday."""
    days = (timezone.localdate() - day).days
    if days in (0, 1):
        return _("Yesterday") if days else _("Today")
    return date_format(day, "WEEKDAY_FORMAT")


@register.filter
def actor(act: Activity) -> str:
    """Return the name of the user who acted, or Strata for automatic actions."""
    if act.by_id is None:
        return "Strata"
    return act.by.get_username() if act.by else _("a former user")


@register.filter
def membership_change(act: Activity) -> str:
    """Return the member and the roles of a change of membership; empty for other actions."""
    roles = [str(MemberRole(role).label) for role in (act.role_before, act.role_after) if role]
    if not roles:
        return ""
    member = act.whom.get_username() if act.whom else _("a former user")
    names = [member] if act.whom_id and act.whom_id != act.by_id else []
    return " · ".join([*names, " → ".join(roles)])


@register.filter
def reason_label(act: Activity) -> str:
    """Return the reason of an action; empty if the verb already implies it."""
    # Both enumerations have some of the same values, with different labels.
    reasons = ReviewReason if act.verb == ActivityVerb.PROPOSED else ModerationReason
    if act.reason == ModerationReason.OTHER:
        return ""
    return str(dict(reasons.choices).get(act.reason) or translate_reason(act.reason))


@register.filter
def activity_period(act: Activity) -> str:
    """Return the period of the entry that was changed; empty if there is none."""
    if not act.period_key:
        return ""
    return localized_label(Granularity(act.granularity), act.period_key)


@register.filter
def duration(milliseconds: int | None) -> str:
    """Return “0.4 s” or “2 min 5 s”; empty for None."""
    if milliseconds is None:
        return ""
    seconds = round(milliseconds / 1000)
    if seconds >= 60:
        parts = {"minutes": seconds // 60, "seconds": seconds % 60}
        return _("%(minutes)s min %(seconds)s s") % parts
    return _("%(seconds)s s") % {"seconds": number_format(milliseconds / 1000, 1)}


@register.filter
def dollars(cost: Decimal | None) -> str:
    """Return “$0.0041”; empty for None."""
    return "" if cost is None else f"${cost:.4f}"


@register.filter
def removed_counts(removed: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Return (label, count) for each store from which a forget request removed something."""
    names = [*REMOVED_LABELS, *(name for name in removed if name not in REMOVED_LABELS)]
    return [
        (
            str(REMOVED_LABELS[name] % removed[name]) if name in REMOVED_LABELS else name,
            removed[name],
        )
        for name in names
        if removed.get(name)
    ]


@register.filter
def state_label(state: str) -> str:
    return str(EntryStatus(state).label)
