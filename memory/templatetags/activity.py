"""Filters for the activity log: actor, reason, duration and cost of an act."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from django import template
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memory.layers.periods import Granularity, localized_label
from memory.models import Activity, ActivityVerb, EntryStatus, ModerationReason, ReviewReason
from projects.core.text import translate_reason
from projects.models import MemberRole

register = template.Library()

# The counts of a forget receipt, in the order in which they are shown.
REMOVED_LABELS = {
    "messages": gettext_lazy("messages and replies to them"),
    "sessions": gettext_lazy("chats"),
    "entries": gettext_lazy("memories"),
    "lines": gettext_lazy("lines of other memories"),
    "facts": gettext_lazy("facts, including earlier versions"),
    "entry_revisions": gettext_lazy("earlier versions of memories"),
    "revisions": gettext_lazy("earlier versions of messages"),
    "attachments": gettext_lazy("images"),
    "reactions": gettext_lazy("reactions"),
    "blocks": gettext_lazy("pinned texts"),
    "chunks": gettext_lazy("search index entries"),
    "titles": gettext_lazy("chat titles, replaced"),
    "imports": gettext_lazy("imports"),
    "rendered_bank": gettext_lazy("memory texts for prompts, rebuilt"),
}


@register.filter
def actor(act: Activity) -> str:
    """Return the name of the user who did it, or Strata for automatic acts."""
    if act.by_id is None:
        return "Strata"
    return act.by.get_username() if act.by else _("a former user")


@register.filter
def membership_change(act: Activity) -> str:
    """Return the member and the roles of a membership act; empty for other acts."""
    roles = [str(MemberRole(role).label) for role in (act.role_before, act.role_after) if role]
    if not roles:
        return ""
    member = act.whom.get_username() if act.whom else _("a former user")
    names = [member] if act.whom_id and act.whom_id != act.by_id else []
    return " · ".join([*names, " → ".join(roles)])


@register.filter
def reason_label(act: Activity) -> str:
    """Return the reason of an act; empty if it adds nothing to the verb."""
    # ReviewReason and ModerationReason share values, with different labels.
    reasons = ReviewReason if act.verb == ActivityVerb.PROPOSED else ModerationReason
    if act.reason == ModerationReason.OTHER:
        return ""
    return str(dict(reasons.choices).get(act.reason) or translate_reason(act.reason))


@register.filter
def activity_period(act: Activity) -> str:
    """Return the period that the act was about; empty if there is none."""
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
        (str(REMOVED_LABELS.get(name, name)), removed[name]) for name in names if removed.get(name)
    ]


@register.filter
def state_label(state: str) -> str:
    return str(EntryStatus(state).label)
