"""Tags and filters of memory: known sentences, sources, scores, retention, and differences."""

from collections.abc import Iterable, Mapping

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from memory.files import processing
from memory.forgetting import retention
from memory.moderation.diffs import ADDED, REMOVED, DiffPiece
from memory.profile import project_knowledge
from memory.prompt.receipt_sources import readable_sections
from projects.models import Project

register = template.Library()

# Labels by prefix of the signal names in memory.recall.ranking.
SIGNAL_LABELS = (
    (_("Same words"), ("words",)),
    (_("Similar words"), ("meaning",)),
    (_("Similar meaning"), ("likeness",)),
    (_("Date"), ("asked_when", "day")),
)
# How parsers begin the labels of pages, slides and sheets, and how readers see them.
PLACE_LABELS = {"p.": _("p. %(n)s"), "Slide": _("Slide %(n)s"), "Sheet": _("Sheet %(n)s")}
OTHER_LABEL = _("Author and style")
PREVIEWED_DAYS = (30, 90, 365)

DIFF_FORMATS = {REMOVED: "<del>{}</del>", ADDED: "<ins>{}</ins>"}

register.simple_tag(readable_sections, name="prompt_sources")
register.simple_tag(project_knowledge)
register.filter("explained", processing.explain)


@register.filter
def place_label(place: str) -> str:
    """Return the label of a page, slide or sheet in the reader's language, also after the name of
    its file.
    """
    name, comma, label = place.rpartition(", ")
    kind, _space, rest = label.partition(" ")
    if kind not in PLACE_LABELS or not rest:
        return place
    return f"{name}{comma}{PLACE_LABELS[kind] % {'n': rest}}"


@register.filter
def signal_groups(signals: Mapping[str, float]) -> list[tuple[str, float]]:
    """Return (label, score) for each group with a positive score, highest first."""
    scores: dict[str, float] = {}
    for name, value in signals.items():
        label = str(
            next((text for text, starts in SIGNAL_LABELS if name.startswith(starts)), OTHER_LABEL)
        )
        scores[label] = scores.get(label, 0.0) + value
    return sorted(
        ((label, score) for label, score in scores.items() if score > 0), key=lambda pair: -pair[1]
    )


@register.simple_tag
def retention_preview(project: Project) -> list[tuple[int, int]]:
    """Return (days, number of chats that this retention would delete now)."""
    periods = {*PREVIEWED_DAYS, *([project.keep_days] if project.keep_days else [])}
    return [(days, retention.count_expired(project, days)) for days in sorted(periods)]


@register.filter
def diff_html(pieces: Iterable[DiffPiece]) -> SafeString:
    """Return the pieces as HTML: removed ones inside <del>, added ones inside <ins>."""
    return SafeString(
        "".join(format_html(DIFF_FORMATS.get(piece.kind, "{}"), piece.text) for piece in pieces)
    )
