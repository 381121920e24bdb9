"""Forms of projects, members, invitations and tokens."""

from datetime import timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth import get_user_model
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from projects.core.search_languages import search_languages
from projects.models import MemberRole, Project
from projects.models.invitations import MAX_USES
from projects.models.tokens import SCOPES
from projects.permissions import projects_for


def language_select() -> forms.Select:
    """Return a choice of the database's languages; empty for the server's default."""
    own = _("The server’s: %(language)s") % {"language": settings.SEARCH_LANGUAGE}
    return forms.Select(choices=[("", own), *((name, name) for name in search_languages())])


class NewProjectForm(forms.ModelForm):
    class Meta:
        model = Project
        fields = ("name", "instructions")
        labels = {"name": _("Name"), "instructions": _("Instructions (can wait)")}
        widgets = {"instructions": forms.Textarea(attrs={"rows": 3})}


# The groups of a project's settings on the page, each with its heading.
SETTING_GROUPS = (
    (
        _("The project"),
        (
            "name",
            "instructions",
            "chat_model",
            "system_model",
            "history_limit",
            "keep_deleted",
        ),
    ),
    (_("Retention"), ("keep_days",)),
    (
        _("Memory"),
        (
            "memory_enabled",
            "bank_max_tokens",
            "blocks_max_tokens",
            "idle_minutes",
            "review_memories",
            "share_raw_turns",
            "timezone",
            "search_language",
        ),
    ),
    (
        _("How memory settles"),
        (
            "roll_percent",
            "day_after_days",
            "week_after_days",
            "month_after_days",
            "memory_daily_tokens",
        ),
    ),
)


class ProjectForm(forms.ModelForm):
    """A project's settings: how its assistant speaks, which models, and how it remembers."""

    class Meta:
        model = Project
        fields = [name for _heading, names in SETTING_GROUPS for name in names]
        labels = {
            "instructions": _("Instructions"),
            "chat_model": _("Chat model"),
            "system_model": _("Model that writes summaries"),
            "history_limit": _("Messages of a chat that the model sees"),
            "keep_deleted": _("The assistant still sees deleted messages"),
            "keep_days": _("Days that chats are kept"),
            "memory_enabled": _("Remember conversations"),
            "bank_max_tokens": _("Memory budget, in tokens"),
            "blocks_max_tokens": _("Budget of blocks, in tokens"),
            "idle_minutes": _("Minutes of silence before a chat is summarised"),
            "review_memories": _("Review new memories"),
            "share_raw_turns": _("Share messages word for word"),
            "timezone": _("Time zone"),
            "search_language": _("Language of recall"),
            "roll_percent": _("Settle above this percentage of the budget"),
            "day_after_days": _("Chats settle into a day after days"),
            "week_after_days": _("Days settle into a week after days"),
            "month_after_days": _("Weeks settle into a month after days"),
            "memory_daily_tokens": _("Tokens that memory may spend a day"),
        }
        help_texts = {
            "roll_percent": _(
                "As long as all summaries together stay below it, each is kept as it is. At 125, "
                "a budget of 2,000 tokens may hold 2,500 before older ones are drawn together."
            ),
            "day_after_days": _(
                "A chat younger than this keeps a summary of its own, however full it gets."
            ),
            "week_after_days": _("A day younger than this stays a day."),
            "month_after_days": _("A week younger than this stays a week."),
            "memory_daily_tokens": _(
                "Once models have taken so many to write summaries, the rest waits until midnight "
                "in the project’s time zone; the activity page says so. Empty: no limit."
            ),
            "keep_deleted": _(
                "Pages, memory and search lose a deleted message; prompts keep it, tagged with the "
                "time of its deletion."
            ),
            "search_language": _(
                "In which words are cut to their stems, so that “builds” is found by “build”. "
                "After a change, older messages are found by their words again within a few "
                "minutes."
            ),
            "share_raw_turns": _(
                "Recall may quote members’ shared chats to each other. Off: only what is "
                "remembered of them."
            ),
        }
        widgets = {"instructions": forms.Textarea(attrs={"rows": 5, "data-autogrow": ""})}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["search_language"].widget = language_select()
        # Compare with the values that the page showed, so that an old page does not undo changes
        # that another member saved meanwhile.
        for field in self.fields.values():
            field.show_hidden_initial = True

    def groups(self) -> list[tuple[str, list[forms.BoundField]]]:
        return [(str(heading), [self[name] for name in names]) for heading, names in SETTING_GROUPS]


class MemberForm(forms.Form):
    """The name of an invited user, and their role in the project."""

    username = forms.CharField(
        label=_("Username"),
        max_length=150,
        validators=[get_user_model().username_validator],
        widget=forms.TextInput(attrs={"autocapitalize": "none", "autocomplete": "off"}),
    )
    role = forms.ChoiceField(label=_("Role"), choices=MemberRole.choices, initial=MemberRole.EDITOR)


class InvitationForm(forms.Form):
    """A new invitation link."""

    LIFETIMES = (("1", _("A day")), ("7", _("7 days")), ("30", _("30 days")), ("90", _("90 days")))

    role = forms.ChoiceField(label=_("Role"), choices=MemberRole.choices, initial=MemberRole.EDITOR)
    days = forms.ChoiceField(label=_("Valid for"), choices=LIFETIMES, initial="7")
    max_uses = forms.IntegerField(
        label=_("For how many people"),
        min_value=1,
        max_value=MAX_USES,
        initial=1,
        required=False,
        help_text=_("Empty: for all who have the link."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # The form for members on the same page has a role too.
        self.auto_id = "invited_%s"

    def invitation(self) -> dict[str, Any]:
        """Return the fields of the new invitation."""
        data = self.cleaned_data
        expires_at = timezone.now() + timedelta(days=int(data["days"]))
        return {"role": data["role"], "expires_at": expires_at, "max_uses": data["max_uses"]}


class DeletionForm(forms.Form):
    """The confirmation of a deletion: the user types the slug of `project`."""

    slug = forms.CharField(
        widget=forms.TextInput(
            attrs={"autocapitalize": "none", "autocomplete": "off", "spellcheck": "false"}
        ),
    )

    def __init__(self, project: Project, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.project = project
        self.fields["slug"].label = _("Type %(slug)s to confirm") % {"slug": project.slug}

    def clean_slug(self) -> str:
        if self.cleaned_data["slug"] != self.project.slug:
            raise forms.ValidationError(_("This is not the project’s slug."))
        return self.project.slug


class TokenForm(forms.Form):
    """A new API token of `user`."""

    FOREVER = ""
    LIFETIMES = (
        ("7", _("7 days")),
        ("30", _("30 days")),
        ("90", _("90 days")),
        ("365", _("A year")),
        (FOREVER, _("For ever")),
    )
    SCOPES = (
        ("read", _("Read")),
        ("write", _("Write: say things, and change what its user may")),
        ("admin", _("Manage: projects, members, forgetting, tokens")),
    )

    name = forms.CharField(
        label=_("Name"),
        max_length=120,
        help_text=_("What it is for, such as “Editor on my laptop”."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    project = forms.ModelChoiceField(
        label=_("Project"),
        queryset=Project.objects.none(),
        required=False,
        empty_label=_("All of mine"),
        to_field_name="slug",
    )
    scopes = forms.MultipleChoiceField(
        label=_("It may"),
        choices=SCOPES,
        initial=["read", "write"],
        widget=forms.CheckboxSelectMultiple,
    )
    days = forms.ChoiceField(label=_("Valid for"), choices=LIFETIMES, initial="90", required=False)

    def __init__(self, user, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        project = self.fields["project"]
        assert isinstance(project, forms.ModelChoiceField)
        project.queryset = projects_for(user)

    def token(self) -> dict[str, Any]:
        """Return the fields of the new token."""
        data = self.cleaned_data
        scopes = [scope for scope in SCOPES if scope in data["scopes"]]
        days = data["days"]
        expiry = timezone.now() + timedelta(days=int(days)) if days else None
        return {
            "name": data["name"],
            "project": data["project"],
            "scopes": scopes,
            "expiry": expiry,
        }
