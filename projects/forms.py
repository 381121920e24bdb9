"""Forms of projects, members, invitations and tokens."""

import re
from datetime import timedelta
from functools import cache
from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.conf import settings
from django.contrib.auth import get_user_model
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext

from projects import persona_template
from projects.core.errors import InvalidInputError
from projects.core.search_languages import search_languages
from projects.models import MemberRole, Project
from projects.models.invitations import MAX_USES
from projects.models.projects import MODEL_FIELDS, IndexedRole, project_models
from projects.models.tokens import SCOPES
from projects.permissions import projects_for


class SearchableSelect(forms.Select):
    """A select with a search field above it if it has many options. `option-search.js` filters the
    options; without JavaScript the search field is hidden.
    """

    MIN_OPTIONS = 20

    def render(self, name, value, attrs=None, renderer=None) -> SafeString:
        select = super().render(name, value, attrs, renderer)
        if select.count("<option") < self.MIN_OPTIONS:
            return select
        return format_html(
            '<input type="search" class="option-search" data-option-search autocomplete="off"'
            ' placeholder="{0}" aria-label="{0}">{1}',
            _("Search this list"),
            select,
        )


def language_select() -> forms.Select:
    """Return a select of the database's languages. An empty choice means the server's default."""
    own = _("Server default: %(language)s") % {"language": settings.SEARCH_LANGUAGE}
    return forms.Select(choices=[("", own), *((name, name) for name in search_languages())])


class NewProjectForm(forms.ModelForm):
    class Meta:
        model = Project
        fields = ("name", "instructions")
        labels = {"name": _("Name"), "instructions": _("Instructions (optional)")}
        widgets = {"instructions": forms.Textarea(attrs={"rows": 3})}


# The groups of a project's settings: the tab of the page, the heading and the fields.
SETTING_GROUPS = (
    (
        "general",
        _("General"),
        ("name", "instructions", "custom_context", "timezone", "search_language"),
    ),
    ("model", _("Model"), ("chat_model", "fallback_model", "system_model", "history_limit")),
    (
        "memory",
        _("Memory"),
        (
            "memory_enabled",
            "bank_max_tokens",
            "blocks_max_tokens",
            "idle_minutes",
            "review_memories",
            "share_raw_turns",
            "memory_daily_tokens",
        ),
    ),
    ("memory", _("Search"), ("indexed_roles", "min_index_chars")),
    ("retention", _("Retention"), ("close_after_hours", "keep_days", "keep_deleted")),
)
# The beginnings of old names of time zones, and of zones without a place.
OLD_TIMEZONES = ("Etc/", "US/", "SystemV/", "Brazil/", "Canada/", "Chile/", "Mexico/")


@cache
def timezones_by_region() -> dict[str, list[tuple[str, str]]]:
    """Return pairs (name, place) of time zones, by region. Cached, because reading them is slow."""
    regions: dict[str, list[tuple[str, str]]] = {}
    for name in sorted(available_timezones()):
        region, slash, place = name.partition("/")
        if slash and not name.startswith(OLD_TIMEZONES):
            regions.setdefault(region, []).append((name, place.replace("_", " ")))
    return regions


def timezone_select(current: str) -> SearchableSelect:
    """Return a select of the time zones. `current` is included even if its name is obsolete."""
    regions = timezones_by_region()
    listed = {name for places in regions.values() for name, _place in places}
    first = [(name, name) for name in dict.fromkeys(["UTC", current]) if name not in listed]
    return SearchableSelect(choices=[*first, *regions.items()])


# How a value of `PairLinesField` is written in one line: the escape of a backslash, and of each
# character at which `str.splitlines` splits.
LINE_ESCAPES = {"\\": r"\\", "\n": r"\n", "\r": r"\r"}
LINE_ESCAPES |= {char: f"\\u{ord(char):04x}" for char in "\v\f\x1c\x1d\x1e\x85\u2028\u2029"}
LINE_ESCAPE = re.compile("|".join(map(re.escape, LINE_ESCAPES.values())))


class PairLinesField(forms.CharField):
    """A dict of strings, entered as lines of the form `key = value`. See `LINE_ESCAPES`."""

    widget = forms.Textarea

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, dict):
            escapes = str.maketrans(LINE_ESCAPES)
            return "\n".join(f"{key} = {text.translate(escapes)}" for key, text in value.items())
        return value

    def to_python(self, value: Any) -> dict[str, str]:  # type: ignore[override]
        characters = {escape: character for character, escape in LINE_ESCAPES.items()}
        pairs = {}
        for line in (super().to_python(value) or "").splitlines():
            key, equals, text = line.partition("=")
            if line.strip() and not equals:
                raise forms.ValidationError(
                    _("Write each line as key = value: %(line)s") % {"line": line[:80]}
                )
            if line.strip():
                pairs[key.strip()] = LINE_ESCAPE.sub(lambda m: characters[m[0]], text.strip())
        return pairs


class ProjectForm(forms.ModelForm):
    """A project's settings: how its assistant answers, which models it uses, and what is
    remembered.

    With `tab`, the form contains only the fields of this tab of the page.
    """

    custom_context = PairLinesField(
        label=_("Custom context"),
        required=False,
        max_length=60_000,
        help_text=_(
            "One text per line, such as “team = Platform”. In the instructions, write "
            "{{ context.team }} to insert it. Write a line break in a text as \\n, and a backslash "
            "as \\\\."
        ),
        widget=forms.Textarea(attrs={"rows": 3, "data-autogrow": ""}),
    )
    indexed_roles = forms.MultipleChoiceField(
        label=_("Search messages from"),
        choices=IndexedRole.choices,
        widget=forms.CheckboxSelectMultiple,
    )

    class Meta:
        model = Project
        fields = [name for _tab, _heading, names in SETTING_GROUPS for name in names]
        labels = {
            "instructions": _("Instructions"),
            "chat_model": _("Chat model"),
            "fallback_model": _("Second chat model"),
            "system_model": _("Model for summaries"),
            "history_limit": _("Messages sent to the model"),
            "keep_deleted": _("Let the assistant see deleted messages"),
            "keep_days": _("Delete chats after (days)"),
            "close_after_hours": _("Close chats after (hours without messages)"),
            "min_index_chars": _("Minimum length (characters)"),
            "memory_enabled": _("Remember chats"),
            "bank_max_tokens": _("Memory budget (tokens)"),
            "blocks_max_tokens": _("Budget for pinned text (tokens)"),
            "idle_minutes": _("Summarise a chat after (minutes without messages)"),
            "review_memories": _("Review new memories"),
            "share_raw_turns": _("Quote shared chats"),
            "timezone": _("Time zone"),
            "search_language": _("Search language"),
            "memory_daily_tokens": _("Daily limit for summaries (tokens)"),
        }
        help_texts = {
            "chat_model": "",
            "fallback_model": _(
                "Answers when the chat model is out of credit or unavailable. The reply shows why."
            ),
            "system_model": "",
            "close_after_hours": _(
                "A closed chat is summarised at once and can be reopened. Leave empty for the "
                "server default."
            ),
            "memory_daily_tokens": _(
                "When models have used this many tokens for summaries, further summaries wait "
                "until midnight in the project’s time zone. Leave empty for no limit."
            ),
            "keep_deleted": _(
                "Deleted messages are removed from pages, memory and search. They stay in "
                "prompts, marked with the time of deletion."
            ),
            "search_language": _(
                "Search finds other forms of a word, such as “builds” for “build”. After a "
                "change, it takes a few minutes until search finds older messages again."
            ),
            "share_raw_turns": _(
                "Search results and replies can quote shared chats to all members. If this is "
                "off, they only use the summaries."
            ),
        }
        widgets = {"instructions": forms.Textarea(attrs={"rows": 5, "data-autogrow": ""})}

    def __init__(self, *args: Any, tab: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.shown_groups = [group for group in SETTING_GROUPS if tab in ("", group[0])]
        shown = {name for _tab, _heading, names in self.shown_groups for name in names}
        for name in self.fields.keys() - shown:
            del self.fields[name]
        if "timezone" in shown:
            self.fields["timezone"].widget = timezone_select(self.instance.timezone)
            self.fields["search_language"].widget = language_select()
        if "chat_model" in shown:
            models = project_models().models_for(self.instance)
            for name in MODEL_FIELDS:
                self.fields[name].widget = self._model_select(name, models)
        # Compare with the values that the page showed, so that an outdated page does not undo
        # changes that another member has saved.
        for field in self.fields.values():
            field.show_hidden_initial = not isinstance(field, forms.MultipleChoiceField)

    def _model_select(self, name: str, models: Any) -> SearchableSelect:
        return SearchableSelect(
            choices=project_models().select_choices(
                models,
                getattr(self.instance, name),
                is_for_summaries=name == "system_model",
                default=pgettext("model", "None") if name == "fallback_model" else None,
            )
        )

    def clean(self) -> dict[str, Any]:
        """Check changed models, and the instructions with the custom context of this form."""
        data = super().clean() or self.cleaned_data
        for name in MODEL_FIELDS & data.keys() & {*self.changed_data}:
            try:
                project_models().check_model(self.instance, data[name])
            except InvalidInputError as error:
                self.add_error(name, str(error))
        if "instructions" in data and "custom_context" in data:
            try:
                persona_template.check(data["instructions"], data["custom_context"])
            except persona_template.PersonaTemplateError as error:
                self.add_error("instructions", str(error))
        return data

    def groups(self) -> list[tuple[str, list[forms.BoundField]]]:
        return [
            (str(heading), [self[name] for name in names])
            for _tab, heading, names in self.shown_groups
        ]


class MemberForm(forms.Form):
    """The username of a user to invite, and the role in the project."""

    username = forms.CharField(
        label=_("Username"),
        max_length=150,
        validators=[get_user_model().username_validator],
        widget=forms.TextInput(attrs={"autocapitalize": "none", "autocomplete": "off"}),
    )
    role = forms.ChoiceField(label=_("Role"), choices=MemberRole.choices, initial=MemberRole.EDITOR)


class InvitationForm(forms.Form):
    """A new invitation link."""

    LIFETIMES = (("1", _("1 day")), ("7", _("7 days")), ("30", _("30 days")), ("90", _("90 days")))

    role = forms.ChoiceField(label=_("Role"), choices=MemberRole.choices, initial=MemberRole.EDITOR)
    days = forms.ChoiceField(label=_("Expires after"), choices=LIFETIMES, initial="7")
    max_uses = forms.IntegerField(
        label=_("Maximum number of people"),
        min_value=1,
        max_value=MAX_USES,
        initial=1,
        required=False,
        help_text=_("Leave empty for no limit."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # The form for members on the same page also has a field `role`.
        self.auto_id = "invited_%s"

    def invitation(self) -> dict[str, Any]:
        """Return the fields of the new invitation."""
        data = self.cleaned_data
        expires_at = timezone.now() + timedelta(days=int(data["days"]))
        return {"role": data["role"], "expires_at": expires_at, "max_uses": data["max_uses"]}


class DeletionForm(forms.Form):
    """Confirms a deletion: the user must enter the slug of `project`."""

    slug = forms.CharField(
        widget=forms.TextInput(
            attrs={"autocapitalize": "none", "autocomplete": "off", "spellcheck": "false"}
        )
    )

    def __init__(self, project: Project, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.project = project
        self.fields["slug"].label = _("Type %(slug)s to confirm") % {"slug": project.slug}

    def clean_slug(self) -> str:
        if self.cleaned_data["slug"] != self.project.slug:
            raise forms.ValidationError(_("This does not match the project’s slug."))
        return self.project.slug


class TokenForm(forms.Form):
    """A new API token of `user`."""

    FOREVER = ""
    LIFETIMES = (
        ("7", _("7 days")),
        ("30", _("30 days")),
        ("90", _("90 days")),
        ("365", _("1 year")),
        (FOREVER, _("Never")),
    )
    SCOPE_CHOICES = (
        ("read", _("Read")),
        ("write", _("Write: send messages and make changes")),
        ("admin", _("Manage: projects, members, forgetting and tokens")),
    )

    name = forms.CharField(
        label=_("Name"),
        max_length=120,
        help_text=_("What the token is for, such as “Editor on my laptop”."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    project = forms.ModelChoiceField(
        label=_("Project"),
        queryset=Project.objects.none(),
        required=False,
        empty_label=_("All my projects"),
        to_field_name="slug",
    )
    scopes = forms.MultipleChoiceField(
        label=_("Permissions"),
        choices=SCOPE_CHOICES,
        initial=["read", "write"],
        widget=forms.CheckboxSelectMultiple,
    )
    days = forms.ChoiceField(
        label=_("Expires after"), choices=LIFETIMES, initial="90", required=False
    )

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
