"""The facts in the search index: all versions in all states, as one chunk each.

Search joins the facts, so that permissions, states and validity are conditions of its query, and
only a new text has to be indexed. A trigger deletes the chunks of deleted facts.
"""

from collections.abc import Sequence
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from chat.models import Role
from memory.models import Chunk, Fact, SourceType, Vector
from memory.recall import chunk_writer, embedders
from memory.recall.embedders import Embedder
from projects.models import Project

# The number of facts that are read, embedded and committed together.
BATCH_SIZE = 500
# The chunk of a fact has this `first_seq`, and the version of the fact as `last_seq`.
FIRST_SEQ = 1


def update_project(project: Project) -> int:
    """Write the chunks of facts whose chunk is missing or outdated, and return their number.

    Raises EmbedderError.
    """
    embedder = embedders.get_for_facts()
    ids = list(_unindexed(project, embedder).values_list("pk", flat=True))
    return sum(
        write(project, ids[start : start + BATCH_SIZE], embedder)
        for start in range(0, len(ids), BATCH_SIZE)
    )


def index_fact_now(project: Project, fact: UUID) -> None:
    """Index the fact at once, unless the embedder is remote; then it stays due."""
    embedder = embedders.get_for_facts()
    if embedder.is_local:
        write(project, [fact], embedder)


def _unindexed(project: Project, embedder: Embedder) -> QuerySet[Fact]:
    """Return the facts without a chunk of their version, language and `embedder`."""
    vectors = Vector.objects.filter(project=project, embedder=embedder.name, chunk=OuterRef("pk"))
    chunks = Chunk.objects.filter(
        Exists(vectors),
        project=project,
        source_type=SourceType.FACT,
        source=OuterRef("pk"),
        last_seq=OuterRef("version"),
        language=project.search_language_name,
    )
    return Fact.objects.filter(~Exists(chunks), project=project)


def write(project: Project, ids: Sequence[UUID], embedder: Embedder) -> int:
    """Embed and write these facts, unless they change meanwhile. Return the number of chunks."""
    facts = Fact.objects.filter(project=project, pk__in=ids)
    chunks = [_make_chunk(fact, project.search_language_name) for fact in facts.order_by("pk")]
    plan = chunk_writer.prepare(chunks, [], embedder)
    versions = {chunk.source: chunk.last_seq for chunk in chunks}
    with transaction.atomic():
        locked = facts.order_by("pk").select_for_update(no_key=True, of=("self",))
        rows = list(locked.values_list("pk", "version"))
        return chunk_writer.write(plan, {pk for pk, version in rows if versions.get(pk) == version})


def _make_chunk(fact: Fact, language: str) -> Chunk:
    return Chunk(
        project_id=fact.project_id,
        source_type=SourceType.FACT,
        source=fact.pk,
        first_seq=FIRST_SEQ,
        last_seq=fact.version,
        role=Role.USER,
        text=fact.text,
        occurred_at=fact.valid_from,
        language=language,
    )
