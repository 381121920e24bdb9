"""Forms to enter, end and search facts."""

from dataclasses import replace
from datetime import date, datetime, time
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memory.facts.create import Statement
from memory.models import Fact
from memory.models.facts import (
    MAX_OBJECT_CHARS,
    MAX_PREDICATE_CHARS,
    MAX_SUBJECT_CHARS,
    FactQuerySet,
)
from memory.views.forms.entries import reason_field
from memory.views.forms.search import date_field
from projects.models import Project


class FactForm(forms.Form):
    """The content of a fact. Days are in the project's time zone."""

    subject = forms.CharField(label=_("Subject"), max_length=MAX_SUBJECT_CHARS)
    predicate = forms.CharField(label=_("Predicate"), max_length=MAX_PREDICATE_CHARS)
    object = forms.CharField(label=_("Object"), max_length=MAX_OBJECT_CHARS)
    valid_from = date_field(_("From"), help_text=_("Leave empty for today."))
    valid_until = date_field(_("Until"), help_text=_("Leave empty if it is still true."))
    mine = forms.BooleanField(
        label=_("Only about me"),
        required=False,
        help_text=_("Only you can see it, and it is only used in your private chats."),
    )
    version = forms.IntegerField(required=False, widget=forms.HiddenInput)

    def __init__(self, project: Project, *args: Any, fact: Fact | None = None, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.zone, self.fact = project.zone, fact
        if fact is not None:
            # The user of an existing fact cannot be changed.
            del self.fields["mine"]
            self.fields["valid_from"].required = True
            self.fields["valid_from"].help_text = ""

    @classmethod
    def of(cls, project: Project, fact: Fact) -> "FactForm":
        """Return the form to change `fact`."""
        until = fact.valid_until
        initial = {
            "subject": fact.subject,
            "predicate": fact.predicate,
            "object": fact.object,
            "valid_from": fact.valid_from.astimezone(project.zone).date(),
            "valid_until": until and until.astimezone(project.zone).date(),
            "version": fact.version,
        }
        return cls(project, fact=fact, initial=initial)

    def clean(self) -> dict[str, Any]:
        data = self.cleaned_data
        known = self.fact
        begin = self._moment(data.get("valid_from"), known.valid_from if known else None)
        end = self._moment(data.get("valid_until"), known.valid_until if known else None)
        if begin and end and end <= begin:
            self.add_error("valid_until", _("The end must be after the start."))
        return data

    def statement(self, user: Any) -> Statement:
        """Return the statement. If the day is unchanged, its time of day is kept."""
        data = self.cleaned_data
        if self.fact:
            base = Statement.of(self.fact)
        else:
            user_id = user.pk if data["mine"] else None
            base = Statement("", "", "", timezone.now(), user_id=user_id)
        return replace(
            base,
            subject=data["subject"],
            predicate=data["predicate"],
            object=data["object"],
            valid_from=self._moment(data["valid_from"], base.valid_from) or base.valid_from,
            valid_until=self._moment(data["valid_until"], base.valid_until),
        )

    def _moment(self, day: date | None, before: datetime | None) -> datetime | None:
        if day is None:
            return None
        if before and before.astimezone(self.zone).date() == day:
            return before
        return midnight(day, self.zone)


def midnight(day: date, zone: Any) -> datetime:
    return datetime.combine(day, time.min, zone)


class FactCloseForm(forms.Form):
    at = date_field(_("End date"))
    reason = reason_field()


class FactSearchForm(forms.Form):
    """Conditions on the listed facts, combined with AND; all are optional."""

    q = forms.CharField(label=_("Search"), required=False, max_length=200)
    valid_at = date_field(_("True on"))
    recorded_at = date_field(_("Known by"))
    ended = forms.BooleanField(label=_("Show ended facts"), required=False)

    def among(self, facts: FactQuerySet, zone: Any) -> FactQuerySet:
        """Filter `facts` by day and the other conditions, but not by `q`. Without a day, return the
        facts that are valid today. A day means its end.
        """
        data = self.cleaned_data
        rows = facts.with_validity(_end_of(data["recorded_at"], zone))
        if data["ended"] and not data["valid_at"]:
            return rows
        return rows.valid_at(_end_of(data["valid_at"], zone) or timezone.now())


def _end_of(day: date | None, zone: Any) -> datetime | None:
    return datetime.combine(day, time.max, zone) if day else None
