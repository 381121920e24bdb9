"""Filter forms of the search page and the activity log."""

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from memory.layers.periods import LAYER_TITLES
from memory.models import ActivityVerb
from memory.models.activity import ActivityQuerySet
from memory.recall.speakers import MAX_NAME_CHARS
from projects.models import Project

EVERYONE = _("Everyone")
# The value of `by` for automatic actions, which have no user.
STRATA = "strata"
# Values of `what` in addition to the layers.
MESSAGES, FACTS, FILES = "said", "facts", "files"
MAX_SUGGESTIONS = 200
# The verbs of the activity log, grouped by subject, with labels for the filter.
VERB_GROUPS: Sequence[tuple[str, Any, Mapping[ActivityVerb, Any]]] = (
    (
        "memory",
        _("Memory"),
        {
            ActivityVerb.SUMMARISED: _("Chats and files summarised"),
            ActivityVerb.ROLLED_UP: _("Memories merged"),
            ActivityVerb.REWRITTEN: _("Memories rewritten"),
            ActivityVerb.DISSOLVED: _("Memories without sources removed"),
            ActivityVerb.FADED: _("Not sent (no room)"),
            ActivityVerb.RETURNED: _("Memories sent to the model again"),
            ActivityVerb.FAILED: _("Failures"),
        },
    ),
    (
        "review",
        _("Review and changes"),
        {
            ActivityVerb.PROPOSED: _("Sent to review"),
            ActivityVerb.APPROVED: _("Approved"),
            ActivityVerb.CHECKED: _("Confirmed"),
            ActivityVerb.REJECTED: _("Rejected"),
            ActivityVerb.EDITED: _("Edited"),
            ActivityVerb.PINNED: _("Pinned"),
            ActivityVerb.UNPINNED: _("Unpinned"),
            ActivityVerb.HIDDEN: _("Hidden"),
            ActivityVerb.SHOWN: _("Shown again"),
            ActivityVerb.REWRITE_REQUESTED: _("Rewrite requested"),
        },
    ),
    (
        "facts",
        _("Facts and pinned text"),
        {
            ActivityVerb.RECORDED: _("Facts added"),
            ActivityVerb.CLOSED: _("Facts ended"),
            ActivityVerb.BLOCK_WRITTEN: _("Pinned text changed"),
            ActivityVerb.BLOCK_DELETED: _("Pinned text deleted"),
        },
    ),
    (
        "privacy",
        _("Privacy"),
        {
            ActivityVerb.FORGOTTEN: _("Forgotten"),
            ActivityVerb.REDACTED: _("Text removed"),
            ActivityVerb.DELETED: _("Deleted"),
            ActivityVerb.READ: _("Private text opened"),
        },
    ),
    (
        "members",
        _("Members and chats"),
        {
            ActivityVerb.MEMBER_ADDED: _("Members added"),
            ActivityVerb.MEMBER_REMOVED: _("Members removed"),
            ActivityVerb.ROLE_CHANGED: _("Roles changed"),
            ActivityVerb.INVITED: _("Invitations"),
            ActivityVerb.JOINED: _("Joined by invitation"),
            ActivityVerb.IMPORTED: _("Imports"),
            ActivityVerb.FILE_ADDED: _("Files"),
            ActivityVerb.CHAT_CLOSED: _("Chats closed"),
            ActivityVerb.ARCHIVED: _("Archived"),
            ActivityVerb.UNARCHIVED: _("Unarchived"),
        },
    ),
)


def date_field(label: Any, **options: Any) -> forms.DateField:
    """Return an optional date field with the browser's date widget, which sends ISO dates."""
    widget = forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")
    return forms.DateField(label=label, required=False, widget=widget, **options)


class MemorySearchForm(forms.Form):
    """A search of messages, summaries, facts and files, with filters. All fields are optional."""

    q = forms.CharField(
        label=_("Search messages, memories, facts and files"),
        required=False,
        max_length=2_000,
        widget=forms.TextInput(
            attrs={"type": "search", "placeholder": _("Search messages, memories, facts and files")}
        ),
    )
    since = date_field(_("From"))
    until = date_field(_("To"))
    what = forms.ChoiceField(
        label=_("In"),
        required=False,
        choices=(
            ("", _("Everything")),
            (MESSAGES, _("Messages")),
            (_("Memories"), [*LAYER_TITLES.items()]),
            (FACTS, _("Facts")),
            (FILES, _("Files")),
        ),
    )
    session = forms.UUIDField(required=False, widget=forms.HiddenInput)

    author = forms.CharField(
        label=_("Person"),
        required=False,
        max_length=MAX_NAME_CHARS,
        widget=forms.TextInput(attrs={"list": "people", "placeholder": EVERYONE}),
    )

    def __init__(self, project: Project, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Only suggestions, because speakers of imported chats can also be entered.
        members = project.memberships.order_by("user__username")
        self.people = members.values_list("user__username", flat=True)[:MAX_SUGGESTIONS]


class ActivityForm(forms.Form):
    """Filters of the activity log. `verb` is one verb or the name of a group of verbs."""

    verb = forms.ChoiceField(
        label=_("Type"),
        choices=[
            ("", _("Everything")),
            *(
                (title, [(name, format_lazy(_("All: {group}"), group=title)), *verbs.items()])
                for name, title, verbs in VERB_GROUPS
            ),
        ],
        required=False,
    )
    before = forms.UUIDField(required=False, widget=forms.HiddenInput)

    def __init__(self, project: Project, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        members = project.memberships.select_related("user").order_by("user__username")
        people = [(str(member.user_id), member.user.get_username()) for member in members]
        self.fields["by"] = forms.ChoiceField(
            label=_("Person"), required=False, choices=[("", EVERYONE), (STRATA, "Strata"), *people]
        )

    def apply(self, activities: ActivityQuerySet) -> ActivityQuerySet:
        """Filter `activities`."""
        data = self.cleaned_data
        if data["verb"]:
            groups = {name: list(verbs) for name, _title, verbs in VERB_GROUPS}
            activities = activities.filter(verb__in=groups.get(data["verb"], [data["verb"]]))
        if data["by"]:
            activities = activities.filter(by=None if data["by"] == STRATA else data["by"])
        if data["before"]:
            activities = activities.filter(pk__lt=data["before"])
        return activities
