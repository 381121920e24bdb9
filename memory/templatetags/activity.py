"""What was done, in words: who, why, how long it took and what it cost."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from django import template
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memory.layers.periods import Granularity
from memory.models import Activity, Reason, State, Verb, Waiting
from memory.templatetags.layers import period_name
from projects.models import Role
from projects.templatetags.translated import translated

register = template.Library()

# What a receipt counts, store by store.
STORES = {
    "messages": gettext_lazy("messages, with the replies to them"),
    "sessions": gettext_lazy("chats"),
    "entries": gettext_lazy("summaries and digests"),
    "facts": gettext_lazy("facts, with their earlier versions"),
    "entry_revisions": gettext_lazy("earlier texts of summaries"),
    "revisions": gettext_lazy("earlier texts of messages"),
    "attachments": gettext_lazy("images"),
    "reactions": gettext_lazy("reactions"),
    "blocks": gettext_lazy("blocks"),
    "chunks": gettext_lazy("excerpts that search found"),
    "titles": gettext_lazy("titles of chats, made anew"),
    "imports": gettext_lazy("imports"),
    "rendered_bank": gettext_lazy("rendered text of the memory, made anew"),
}


@register.filter
def doer(act: Activity) -> str:
    """The name of who did it; Strata where nobody did it by hand."""
    if act.by_id is None:
        return "Strata"
    return act.by.get_username() if act.by else _("somebody who left")


@register.filter
def belonging(act: Activity) -> str:
    """Of an act on who belongs to the project: whom it concerned, and the roles; else empty."""
    roles = [str(Role(role).label) for role in (act.role_before, act.role_after) if role]
    if not roles:
        return ""
    whom = act.whom.get_username() if act.whom else _("somebody who left")
    named = [whom] if act.whom_id and act.whom_id != act.by_id else []
    return " · ".join([*named, " → ".join(roles)])


@register.filter
def why(act: Activity) -> str:
    """The reason for people, empty where none says more than the act itself."""
    # Why something waits and why somebody did something share names, not meanings.
    names = Waiting if act.verb == Verb.PROPOSED else Reason
    if act.reason == Reason.OTHER:
        return ""
    return str(dict(names.choices).get(act.reason) or translated(act.reason))


@register.filter
def period_of(act: Activity) -> str:
    """The period that the act was about; empty when it was about none."""
    if not act.period_key:
        return ""
    return period_name(Granularity(act.granularity), act.period_key)


@register.filter
def seconds(milliseconds: int | None) -> str:
    """“0.4 s”, “2 min 5 s”; empty when it is not known."""
    if milliseconds is None:
        return ""
    whole = round(milliseconds / 1000)
    if whole >= 60:
        return _("%(minutes)s min %(seconds)s s") % {"minutes": whole // 60, "seconds": whole % 60}
    return _("%(seconds)s s") % {"seconds": number_format(milliseconds / 1000, 1)}


@register.filter
def dollars(cost: Decimal | None) -> str:
    """“$0.0041”; empty when it is not known."""
    return "" if cost is None else f"${cost:.4f}"


@register.filter
def stores(removed: Mapping[str, Any]) -> list[tuple[str, int]]:
    """(what, how many went) for each store from which something did."""
    ordered = [*STORES, *(name for name in removed if name not in STORES)]
    return [(str(STORES.get(name, name)), removed[name]) for name in ordered if removed.get(name)]


@register.filter
def state_name(state: str) -> str:
    return str(State(state).label)
