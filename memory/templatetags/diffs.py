"""`|diff_html`: a text in pieces, with what was removed and added marked."""

from collections.abc import Iterable

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from memory.moderation.diffs import ADDED, REMOVED, DiffPiece

register = template.Library()

FORMATS = {REMOVED: "<del>{}</del>", ADDED: "<ins>{}</ins>"}


@register.filter
def diff_html(pieces: Iterable[DiffPiece]) -> SafeString:
    """Return the pieces as HTML: removed ones inside <del>, added ones inside <ins>."""
    return SafeString(
        "".join(format_html(FORMATS.get(piece.kind, "{}"), piece.text) for piece in pieces)
    )
