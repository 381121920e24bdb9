"""Actions on single sentences of a project's memory."""

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, resolve_url
from django.utils.translation import gettext as _

from memory.moderation.sentence_changes import SentenceAction, SentenceChange, change_sentence
from memory.views import project_page
from projects.core.errors import DomainError
from projects.models import Membership
from projects.permissions import WRITERS

# The pages that show sentences, to which the action returns.
PAGES = ("project", "overview", "about-me")


@project_page(get=(), post=WRITERS)
def decide(request: HttpRequest, member: Membership) -> HttpResponse:
    """Confirm, remove or edit a sentence of a source, and return to the page `back`."""
    data = request.POST
    try:
        change = SentenceChange(
            key=data.get("source", ""),
            action=data.get("action", ""),
            version=_number(data.get("version", "")),
            place=_number(data.get("place", "0")),
            text=data.get("text", ""),
        )
        messages.success(request, change_sentence(member, change))
    except DomainError as error:
        messages.error(request, _refusal(error, data))
    except ValidationError:
        # The id is malformed.
        messages.error(request, _("This no longer exists."))
    back = data.get("back", "")
    page = back if back in PAGES else PAGES[0]
    return redirect(resolve_url(page, member.project.slug) + "#knows")


def _refusal(error: DomainError, data: QueryDict) -> str:
    """Return the reason, with the correction that was not saved, so that it can be copied."""
    text = data.get("text", "").strip()
    if data.get("action") != SentenceAction.EDIT or not text:
        return str(error)
    return _("%(reason)s You wrote: “%(text)s”") % {"reason": error, "text": text}


def _number(text: str) -> int:
    """Return the number in `text`, otherwise 0, which no version has."""
    return int(text) if text.isdecimal() and len(text) < 10 else 0
