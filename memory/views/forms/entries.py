"""Forms for entries, pinned blocks and the review queue."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from memory.layers.periods import LAYER_TITLES, Granularity
from memory.models import Block, Entry, EntryStatus, ModerationReason, ReviewReason
from memory.models.blocks import MAX_BLOCK_CHARS, validate_block_name
from memory.models.entries import EntryQuerySet
from memory.moderation.actions import TEXT_ACTIONS, ModerationAction, ModerationRequest
from memory.moderation.diffs import diff_words
from memory.moderation.entry_operations import MAX_SUMMARY_CHARS
from memory.moderation.preview import ModerationPreview
from memory.views.forms.search import date_field
from projects.models import Project

FORGET_SOURCES, KEEP_SOURCES = "on", "off"


class MultilineField(forms.CharField):
    """Text with LF line ends. Browsers send CRLF."""

    def to_python(self, value: object) -> str | None:
        text = super().to_python(value)
        return text and text.replace("\r\n", "\n")


def reason_field() -> forms.TypedChoiceField:
    """Return a field for the reason of a change. By default it is empty, which means OTHER."""
    return forms.TypedChoiceField(
        label=_("Reason (optional)"),
        choices=[("", "–"), *ModerationReason.choices],
        required=False,
        empty_value=ModerationReason.OTHER,
    )


def sources_field() -> forms.TypedChoiceField:
    """Return the question whether to forget the original messages too.

    If a request has no answer, they are kept. Pages preselect the first answer, which keeps
    nothing.
    """
    return forms.TypedChoiceField(
        label=_("Also forget the original messages?"),
        choices=[
            (FORGET_SOURCES, _("Yes, forget them too. Nothing is left.")),
            (
                KEEP_SOURCES,
                _("No, keep them. They stay in their chats, but are no longer remembered."),
            ),
        ],
        coerce=lambda value: value == FORGET_SOURCES,
        empty_value="",
        required=False,
        widget=forms.RadioSelect,
    )


class EntryForm(forms.Form):
    """A new text for an entry, and the revision that the editor read."""

    text = MultilineField(
        label=_("Text"),
        max_length=MAX_SUMMARY_CHARS,
        widget=forms.Textarea(attrs={"rows": 5, "data-autogrow": ""}),
        help_text=_("One point per line, starting with a hyphen. The previous text is kept."),
    )
    revision = forms.IntegerField(required=False, widget=forms.HiddenInput)


class BlockForm(forms.Form):
    """The name and text of a block, and the version that the editor read; 0 for a new block."""

    name = forms.CharField(
        label=_("Name"),
        max_length=60,
        validators=[validate_block_name],
        widget=forms.TextInput(attrs={"autocapitalize": "none", "autocomplete": "off"}),
        help_text=_("Letters, digits and hyphens, such as house-rules."),
    )
    content = MultilineField(
        label=_("Text"),
        max_length=MAX_BLOCK_CHARS,
        required=False,
        widget=forms.Textarea(attrs={"rows": 4, "data-autogrow": ""}),
    )
    version = forms.IntegerField(min_value=0, widget=forms.HiddenInput)

    @classmethod
    def for_block(cls, block: Block) -> "BlockForm":
        initial = {"name": block.name, "content": block.content, "version": block.version}
        return cls(initial=initial, auto_id=f"block-{block.pk}-%s")

    def show_conflict(self, block: Block) -> None:
        """Show the text that another user saved. Saving the form again replaces it."""
        self.data = dict(self.data.items()) | {"version": str(block.version)}
        self.add_error(
            "content",
            _("Someone changed this text while you were editing. It is now: “%(text)s”")
            % {"text": block.content},
        )


class EntryActionForm(forms.Form):
    """The reason for an action on entries, and fields that only some actions need."""

    text = MultilineField(
        label=_("Text to remove"),
        max_length=MAX_SUMMARY_CHARS,
        strip=False,
        help_text=_(
            "Exactly as it appears. It is also removed from earlier versions and cannot "
            "be restored."
        ),
    )
    revision = forms.IntegerField(required=False, widget=forms.HiddenInput)
    sources = sources_field()
    reason = reason_field()

    def __init__(self, act: ModerationAction, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.act = act
        if act == ModerationAction.EDIT:
            self.fields["text"] = deepcopy(EntryForm.base_fields["text"])
        if act not in TEXT_ACTIONS:
            del self.fields["text"], self.fields["revision"]
        if act != ModerationAction.FORGET:
            del self.fields["sources"]

    @classmethod
    def for_preview(cls, act: ModerationAction, data: QueryDict, entry: Entry) -> "EntryActionForm":
        """Return a bound form, or an unbound form if the user has not entered the text yet."""
        if act in TEXT_ACTIONS and "text" not in data:
            initial: dict[str, Any] = {"revision": entry.revision}
            if act == ModerationAction.EDIT and not entry.withheld:
                initial["text"] = entry.summary
            return cls(act, initial=initial)
        data = data.copy()
        if "confirmed" not in data:
            data.setdefault("sources", FORGET_SOURCES)
        return cls(act, data)

    def wish(self, by: Any) -> ModerationRequest:
        """Return the request of this form, which must be valid."""
        data = self.cleaned_data
        return ModerationRequest(
            action=self.act,
            by=by,
            reason=data["reason"],
            text=data.get("text") or "",
            revision=data.get("revision"),
            sources=bool(data.get("sources")),
        )

    def preview_context(
        self,
        by: Any,
        entries: Sequence[Entry],
        impacts_of: Callable[[ModerationRequest], Sequence[tuple[Project, ModerationPreview]]],
    ) -> Mapping[str, Any]:
        """Return `impacts` by project and, for an edit, the diff `texts`.

        An invalid form has no impacts. If the edit or redaction is refused, the reason is added to
        the errors of the form.
        """
        entry = entries[0]
        if self.act == ModerationAction.EDIT and self.is_bound:
            # Confirming replaces this revision, because the page shows its text.
            self.data = dict(self.data.items()) | {"revision": entry.revision}
        if not self.is_valid():
            return {"impacts": []}
        wish = self.wish(by)
        impacts = impacts_of(wish)
        refused = [reason for _, impact in impacts for _, reason in impact.outcome.refused]
        if self.act in TEXT_ACTIONS and refused:
            self.add_error("text", refused[0])
            impacts = []
        texts = None
        if self.act == ModerationAction.EDIT and not entry.withheld:
            texts = diff_words(entry.summary, wish.text)
        return {"impacts": impacts, "texts": texts}


class ReviewQueueForm(forms.Form):
    """Filters of the review queue, combined with AND. All are optional."""

    # Set by the tabs of the page.
    state = forms.ChoiceField(
        choices=[("", _("All states")), *EntryStatus.choices],
        required=False,
        widget=forms.HiddenInput,
    )
    layer = forms.ChoiceField(
        label=_("Layer"),
        choices=[
            ("", _("All layers")),
            *((layer.value, LAYER_TITLES[layer]) for layer in Granularity),
        ],
        required=False,
    )
    because = forms.ChoiceField(
        label=_("Reason for review"),
        choices=[("", _("All reasons")), *ReviewReason.choices],
        required=False,
    )
    since = date_field(_("From"))
    until = date_field(_("To"))
    q = forms.CharField(
        label=_("Search memories"),
        required=False,
        max_length=200,
        widget=forms.TextInput(attrs={"type": "search", "placeholder": _("Search memories")}),
    )

    def clean_q(self) -> str:
        return self.cleaned_data["q"].replace("\0", "")

    @property
    def is_unfiltered(self) -> bool:
        """True if the form selects exactly the entries that wait for review."""
        return {name: value for name, value in self.cleaned_data.items() if value} == {
            "state": EntryStatus.PROPOSED
        }

    def apply(self, entries: EntryQuerySet) -> EntryQuerySet:
        """Filter `entries`. Days are in the active time zone."""
        filters = {name: value for name, value in self.cleaned_data.items() if value}
        if query := filters.pop("q", ""):
            entries = entries.matching(query)
        columns = {
            "state": "state",
            "layer": "granularity",
            "because": "waits_because",
            "since": "last_source_at__date__gte",
            "until": "last_source_at__date__lte",
        }
        return entries.filter(**{columns[name]: value for name, value in filters.items()})
