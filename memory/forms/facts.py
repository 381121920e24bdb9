"""What people write into facts, and which of them they look for."""

from dataclasses import replace
from datetime import date, datetime, time
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memory.facts.changing import statement_of
from memory.facts.recording import Statement
from memory.models import Fact, Reason
from memory.models.facts import LONGEST_OBJECT, LONGEST_PREDICATE, LONGEST_SUBJECT, FactQuerySet
from projects.models import Project


def _day(label: Any, **options: Any) -> forms.DateField:
    widget = forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")
    return forms.DateField(label=label, required=False, widget=widget, **options)


class FactForm(forms.Form):
    """A statement, in days of the project's time zone."""

    subject = forms.CharField(label=_("Subject"), max_length=LONGEST_SUBJECT)
    predicate = forms.CharField(label=_("Predicate"), max_length=LONGEST_PREDICATE)
    object = forms.CharField(label=_("Object"), max_length=LONGEST_OBJECT)
    valid_from = _day(_("Since"), help_text=_("Now, if you leave it empty."))
    valid_until = _day(_("Until"), help_text=_("Empty: until the next fact of this subject."))
    mine = forms.BooleanField(
        label=_("It is about me alone"),
        required=False,
        help_text=_("Nobody else sees it; it stands in your private chats only."),
    )
    version = forms.IntegerField(required=False, widget=forms.HiddenInput)

    def __init__(self, project: Project, *args: Any, fact: Fact | None = None, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.zone, self.fact = project.zone, fact
        if fact is not None:
            # Whom a fact is about stays as it is.
            del self.fields["mine"]
            self.fields["valid_from"].required = True
            self.fields["valid_from"].help_text = ""

    @classmethod
    def of(cls, project: Project, fact: Fact) -> "FactForm":
        """To change `fact`."""
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

    def clean_subject(self) -> str:
        return self._words("subject")

    def clean_predicate(self) -> str:
        return self._words("predicate")

    def clean_object(self) -> str:
        return self._words("object")

    def _words(self, name: str) -> str:
        return self.cleaned_data[name].replace("\0", "")

    def clean(self) -> dict[str, Any]:
        given = self.cleaned_data
        begin, end = given.get("valid_from"), given.get("valid_until")
        if begin and end and end <= begin:
            self.add_error("valid_until", _("It would end before it begins."))
        return given

    def statement(self, user: Any) -> Statement:
        """What is said; a day that stays is the moment that it was."""
        given = self.cleaned_data
        there = self.fact and statement_of(self.fact)
        told = there or Statement("", "", "", timezone.now())
        told = replace(told, **{name: given[name] for name in ("subject", "predicate", "object")})
        return replace(
            told,
            valid_from=self._moment(given["valid_from"], told.valid_from) or told.valid_from,
            valid_until=self._moment(given["valid_until"], told.valid_until),
            user_id=told.user_id if there else (user.pk if given["mine"] else None),
        )

    def _moment(self, day: date | None, there: datetime | None) -> datetime | None:
        if day is None or (there and there.astimezone(self.zone).date() == day):
            return there if day else None
        return midnight(day, self.zone)


def midnight(day: date, zone: Any) -> datetime:
    return datetime.combine(day, time.min, zone)


class CloseForm(forms.Form):
    at = _day(_("It ended on"))
    reason = forms.ChoiceField(
        label=_("Why"), choices=Reason.choices, initial=Reason.OUTDATED, required=False
    )


class SearchForm(forms.Form):
    """Which facts are listed: all conditions hold at once, and none of them has to be given."""

    q = forms.CharField(label=_("Words"), required=False, max_length=200)
    valid_at = _day(_("So on"))
    recorded_at = _day(_("As known on"))
    ended = forms.BooleanField(label=_("Also what has ended"), required=False)

    def among(self, facts: FactQuerySet, zone: Any) -> FactQuerySet:
        """Those of `facts` that are asked for: what is so today, unless told otherwise. A day is
        taken at its end.
        """
        asked = self.cleaned_data
        known = facts.known(_end(asked["recorded_at"], zone))
        if asked["q"]:
            known = known.matching(asked["q"])
        if asked["ended"] and not asked["valid_at"]:
            return known
        return known.valid_at(_end(asked["valid_at"], zone) or timezone.now())


def _end(day: date | None, zone: Any) -> datetime | None:
    return datetime.combine(day, time.max, zone) if day else None
