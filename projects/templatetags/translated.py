"""What the record keeps in English, in the reader's language: in every template, without a load.

Names and reasons are kept, sent to models and exported in English, whoever reads; only a page
says them in its reader's words.
"""

from django import template
from django.utils.translation import gettext, gettext_noop

register = template.Library()

# What stands where nobody chose a name.
STAND_INS = {
    gettext_noop("Untitled chat"),
    gettext_noop("a private chat"),
    gettext_noop("Assistant"),
    gettext_noop("Someone"),
}


@register.filter
def named(name: str) -> str:
    """`name`; a stand-in for one is translated. A title that somebody chose stays as it is."""
    return gettext(name) if name in STAND_INS else name


@register.filter
def translated(reason: str) -> str:
    """A reason in Strata's own words; one that the catalogue lacks stays in English."""
    return gettext(reason) if reason else ""
