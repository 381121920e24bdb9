"""What search knows of a project as a whole: in how many chunks its commoner words stand."""

from collections import Counter
from collections.abc import Iterable

from django.db import connection, transaction
from django.db.models import F, Q

from memory.models import Chunk, Corpus
from projects.models import Project

# Counted anew when so many chunks changed, and again when so great a share of them did.
CHANGES = 50
SHARE = 0.25
# A word that stands in less than this share of the chunks is rare enough to search for anyway.
RARE = 0.0005

_COUNT = """
    WITH total AS (SELECT count(*) AS chunks FROM memory_chunk WHERE project_id = %(project)s),
    known AS (
        SELECT term, count(*) AS times
        FROM memory_chunk, unnest(terms) term
        WHERE project_id = %(project)s
        GROUP BY term
        HAVING count(*) >= greatest(2, %(rare)s * (SELECT chunks FROM total))
    )
    UPDATE memory_corpus SET
        chunks = (SELECT chunks FROM total),
        floor = greatest(2, %(rare)s * (SELECT chunks FROM total)),
        terms = (SELECT coalesce(array_agg(term ORDER BY term), '{}') FROM known),
        counts = (SELECT coalesce(array_agg(times ORDER BY term), '{}') FROM known),
        changes = changes - %(seen)s, counted_at = now()
    WHERE project_id = %(project)s
"""


def note_changes(*changed: Iterable[Chunk]) -> None:
    """Counts the chunks that were written or went, by project."""
    changes = Counter(chunk.project_id for chunks in changed for chunk in chunks)
    for project_id, count in sorted(changes.items()):
        rows = Corpus.objects.filter(pk=project_id)
        if not rows.update(changes=F("changes") + count):
            Corpus.objects.bulk_create(
                [Corpus(project_id=project_id, changes=count)], ignore_conflicts=True
            )


def recount_changed(project: Project | None = None) -> int:
    """Counts anew where enough changed; how many projects that were."""
    changed = Corpus.objects.filter(changes__gte=CHANGES).filter(
        Q(changes__gte=F("chunks") * SHARE)
    )
    young = Corpus.objects.filter(changes__gt=0, chunks__lt=CHANGES)
    rows = (changed | young) if project is None else (changed | young).filter(project=project)
    due = list(rows.values_list("pk", flat=True)[:1_000])
    return sum(recount(project_id) for project_id in due)


@transaction.atomic
def recount(project_id) -> bool:
    """Counts the project's words; False when somebody else is at it."""
    rows = Corpus.objects.filter(pk=project_id).select_for_update(skip_locked=True)
    found = rows.first()
    if found is None:
        return False
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, {"project": project_id, "rare": RARE, "seen": found.changes})
    return True
