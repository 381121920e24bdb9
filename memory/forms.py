"""What people write into the memory, and what they look for in it."""

from copy import deepcopy
from typing import Any

from django import forms
from django.contrib.auth import get_user_model
from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext_lazy as _

from chat.models import Message
from memory.forgetting import Scope
from memory.layers.periods import Granularity
from memory.models import Block, Reason, State, Verb, Waiting
from memory.models.blocks import LONGEST_BLOCK, validate_block_name
from memory.models.entries import EntryQuerySet
from memory.moderation import USUAL_REASONS, WORDED, Act, Wish
from memory.templatetags.layers import LAYERS
from projects.models import Membership, Project

LONGEST_SUMMARY = 5_000
EVERYONE = ("", _("Everyone"))
# In place of a name, for what nobody did by hand.
STRATA = "strata"


def _day_input() -> forms.DateInput:
    """A browser's own, which takes ISO dates whatever the language of the page."""
    return forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")


class Lines(forms.CharField):
    """Text with the line ends that it is kept with, whatever a browser sends."""

    def to_python(self, value: object) -> str | None:
        text = super().to_python(value)
        return text and text.replace("\r\n", "\n")


class EntryForm(forms.Form):
    """Another text for an entry, and the revision that its editor read."""

    text = Lines(
        label=_("Text"),
        max_length=LONGEST_SUMMARY,
        widget=forms.Textarea(attrs={"rows": 5, "data-grows": ""}),
        help_text=_("One point a line, each after a hyphen. The text before is kept."),
    )
    revision = forms.IntegerField(required=False, widget=forms.HiddenInput)


class BlockForm(forms.Form):
    """A block's name and text, and the version that its editor read: 0 for one to be made."""

    name = forms.CharField(
        label=_("Name"),
        max_length=60,
        validators=[validate_block_name],
        widget=forms.TextInput(attrs={"autocapitalize": "none", "autocomplete": "off"}),
        help_text=_("Letters, digits and hyphens, such as house-rules."),
    )
    content = Lines(
        label=_("Text"),
        max_length=LONGEST_BLOCK,
        required=False,
        widget=forms.Textarea(attrs={"rows": 4, "data-grows": ""}),
    )
    version = forms.IntegerField(min_value=0, widget=forms.HiddenInput)

    @classmethod
    def of(cls, block: Block) -> "BlockForm":
        told = {"name": block.name, "content": block.content, "version": block.version}
        return cls(initial=told, auto_id=f"block-{block.pk}-%s")

    def changed_to(self, block: Block) -> None:
        """Somebody else was quicker: whoever saves this again has read what there is now."""
        self.data = {name: self.data.get(name) for name in self.data} | {
            "version": str(block.version)
        }
        self.add_error(
            "content",
            _("Somebody changed it since you opened it. It says now: “%(text)s”")
            % {"text": block.content},
        )


class ActForm(forms.Form):
    """Why something is done to entries, and what that takes beside."""

    text = Lines(
        label=_("The words to take out"),
        max_length=LONGEST_SUMMARY,
        strip=False,
        help_text=_("As they stand. They go from the earlier texts too, for good."),
    )
    revision = forms.IntegerField(required=False, widget=forms.HiddenInput)
    sources = forms.BooleanField(
        label=_("The messages they were made of go too"),
        required=False,
        help_text=_("Otherwise those stay in their chats and are remembered no more."),
    )
    reason = forms.ChoiceField(label=_("Why"), choices=Reason.choices)

    def __init__(self, act: Act, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.act = act
        self.initial.setdefault("reason", USUAL_REASONS.get(act, Reason.OTHER))
        if act == Act.EDIT:
            self.fields["text"] = deepcopy(EntryForm.base_fields["text"])
        if act not in WORDED:
            del self.fields["text"], self.fields["revision"]
        if act != Act.FORGET:
            del self.fields["sources"]

    def reads(self, revision: int) -> None:
        """Whoever fills this in reads the text of `revision`, and may put theirs in its place."""
        self.data = {name: self.data.get(name) for name in self.data} | {"revision": revision}

    def wish(self, by: Any) -> Wish:
        """What is wished; of a form that is not complete yet, as far as it goes."""
        given = getattr(self, "cleaned_data", {})
        return Wish(
            act=self.act,
            by=by,
            reason=given.get("reason") or Reason.OTHER,
            text=given.get("text") or "",
            revision=given.get("revision"),
            sources=bool(given.get("sources")),
        )


class QueueForm(forms.Form):
    """Which entries are listed: all conditions hold at once, and none of them has to be given."""

    state = forms.ChoiceField(
        label=_("State"), choices=[("", _("Every state")), *State.choices], required=False
    )
    layer = forms.ChoiceField(
        label=_("Layer"),
        choices=[("", _("Every layer")), *((one.value, LAYERS[one]) for one in Granularity)],
        required=False,
    )
    because = forms.ChoiceField(
        label=_("Waits because"), choices=[("", _("Any reason")), *Waiting.choices], required=False
    )
    since = forms.DateField(
        label=_("From"),
        required=False,
        widget=_day_input(),
    )
    until = forms.DateField(
        label=_("To"),
        required=False,
        widget=_day_input(),
    )
    q = forms.CharField(label=_("Words"), required=False, max_length=200)

    def clean_q(self) -> str:
        return self.cleaned_data["q"].replace("\0", "")

    def among(self, entries: EntryQuerySet) -> EntryQuerySet:
        """Those of `entries` that are asked for. A day is one of the zone that is active."""
        asked = {name: value for name, value in self.cleaned_data.items() if value}
        if words := asked.pop("q", ""):
            entries = entries.matching(words)
        columns = {
            "state": "state",
            "layer": "granularity",
            "because": "waits_because",
            "since": "last_source_at__date__gte",
            "until": "last_source_at__date__lte",
        }
        return entries.filter(**{columns[name]: value for name, value in asked.items()})


class ForgetForm(forms.Form):
    """What is to be forgotten in a project; all conditions hold at once."""

    message = forms.UUIDField(required=False, widget=forms.HiddenInput)
    session = forms.UUIDField(required=False, widget=forms.HiddenInput)
    entry = forms.UUIDField(required=False, widget=forms.HiddenInput)
    fact = forms.UUIDField(required=False, widget=forms.HiddenInput)
    upload = forms.UUIDField(required=False, widget=forms.HiddenInput)
    user = forms.CharField(
        label=_("Everything said by"),
        required=False,
        max_length=150,
        widget=forms.TextInput(
            attrs={"autocapitalize": "none", "autocomplete": "off", "list": "people"}
        ),
        help_text=_("A username. The replies to it go too."),
    )
    before = forms.DateTimeField(
        label=_("Everything said before"),
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        help_text=_("In the project’s time zone."),
    )
    sources = ActForm.base_fields["sources"]
    replies = forms.BooleanField(
        label=_("Replies that were told any of it go too, with what was made of them"),
        required=False,
    )

    def __init__(self, project: Project, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.project = project

    def clean_user(self):
        """The user of that name, who belongs to the project or once spoke in it; else None."""
        name = self.cleaned_data["user"]
        if not name:
            return None
        members = Membership.objects.filter(project=self.project, user=OuterRef("pk"))
        spoken = Message.objects.filter(project=self.project, author=OuterRef("pk"))
        known = get_user_model().objects.filter(Q(Exists(members)) | Q(Exists(spoken)))
        found = known.filter(username=name).first()
        if found is None:
            raise forms.ValidationError(_("Nobody of this name has been here."))
        return found

    def clean(self) -> dict[str, Any]:
        if not self.errors and self.scope().is_empty:
            raise forms.ValidationError(_("Say what is to be forgotten."))
        return self.cleaned_data

    def scope(self) -> Scope:
        given = self.cleaned_data
        user = given["user"]
        return Scope(
            message=given["message"],
            session=given["session"],
            entry=given["entry"],
            fact=given["fact"],
            upload=given["upload"],
            user=user.pk if user else None,
            before=given["before"],
            sources=given["sources"],
            replies=given["replies"],
        )


class Everywhere:
    """What is looked through: all of it, messages, one layer, or facts."""

    SAID, FACTS = "said", "facts"
    CHOICES = (("", _("Everything")), (SAID, _("Messages")), *LAYERS.items(), (FACTS, _("Facts")))


class SearchForm(forms.Form):
    """What is looked for in what was said and remembered; nothing has to be given."""

    q = forms.CharField(
        label=_("What was said about"),
        required=False,
        max_length=2_000,
        widget=forms.TextInput(attrs={"type": "search"}),
    )
    since = forms.DateField(
        label=_("From"),
        required=False,
        widget=_day_input(),
    )
    until = forms.DateField(
        label=_("To"),
        required=False,
        widget=_day_input(),
    )
    what = forms.ChoiceField(label=_("In"), required=False, choices=Everywhere.CHOICES)
    session = forms.UUIDField(required=False, widget=forms.HiddenInput)

    def __init__(self, project: Project, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        people = get_user_model().objects.filter(memberships__project=project)
        self.fields["author"] = forms.ModelChoiceField(
            people.order_by("username"),
            label=_("By"),
            required=False,
            empty_label=EVERYONE[1],
            to_field_name="username",
        )


class ReasonForm(forms.Form):
    reason = forms.ChoiceField(label=_("Why"), choices=Reason.choices, initial=Reason.PRIVATE)


class ActivityForm(forms.Form):
    """Which acts are listed: of what kind, and by whom."""

    verb = forms.ChoiceField(
        label=_("What"), choices=[("", _("Everything")), *Verb.choices], required=False
    )
    before = forms.UUIDField(required=False, widget=forms.HiddenInput)

    def __init__(self, project: Project, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        members = project.memberships.select_related("user").order_by("user__username")
        people = [(str(one.user_id), one.user.get_username()) for one in members]
        self.fields["by"] = forms.ChoiceField(
            label=_("By"), required=False, choices=[EVERYONE, (STRATA, "Strata"), *people]
        )

    def among(self, activities):
        """Those of `activities` that are asked for, the newest first."""
        asked = self.cleaned_data
        if asked["verb"]:
            activities = activities.filter(verb=asked["verb"])
        if asked["by"]:
            activities = activities.filter(by=None if asked["by"] == STRATA else asked["by"])
        if asked["before"]:
            activities = activities.filter(pk__lt=asked["before"])
        return activities.newest_first()
