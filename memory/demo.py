"""The demo project: two months of a small team's chats, with the memory made from them.

The chats are in demo.toml. They are dated in the weeks before today. The normal summarising code
writes the memory with the extractive summariser, so that no model is called.
"""

import logging
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from pathlib import Path
from threading import Thread
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.utils import timezone

from chat.context_processors import DEMO_MODEL
from chat.conversations.messages import draft, post_messages
from chat.conversations.sessions import create_session
from chat.models import Role, Session, Visibility
from chat.prompt.preview import preview
from chat.prompt.types import PromptMessage
from chat.providers import ProviderError, get_provider
from memory import blocks, facts
from memory.layers import conversations, cycle, digests
from memory.layers.summarising.base import EXTRACTIVE
from memory.models import Entry, EntryStatus
from memory.moderation import entry_operations
from memory.recall import indexing
from projects.models import MemberRole, Membership, Project
from projects.services import create_project

# The slug of the first demo project on a server. Random characters are added for the others.
SLUG = "island-ferry"
TALK = Path(__file__).with_suffix(".toml")
# A budget that two months of chats exceed, so that the oldest conversations are rolled up.
BANK_TOKENS = 900
# The time between two messages of a chat, and between the last message and the summary.
LINE_INTERVAL = timedelta(minutes=2)
IDLE_TIME = timedelta(hours=1)
# The percentage that is shown once all chats exist, and the time limits of the remaining work.
FILLED = 80
INDEXING_S = 60.0
READING_S = 20.0
_DATE = re.compile(r"\{\+(\d+)\}")

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class DemoChat:
    """A conversation that began at `at`. `lines` are pairs (speaker, text); the assistant has no
    name.
    """

    at: datetime
    title: str
    lines: list[tuple[str, str]]

    @property
    def ends(self) -> datetime:
        return self.at + LINE_INTERVAL * len(self.lines)


def create_demo(owner: Any, now: datetime | None = None) -> Project:
    """Create and fill a demo project whose last chat ended before `now`. Takes seconds."""
    with transaction.atomic():
        project = _create_empty(owner)
        fill(project.pk, now)
    project.refresh_from_db()
    return project


def begin_demo(owner: Any) -> Project:
    """Return the demo project of `owner`. If there is none, create an empty one."""
    with transaction.atomic():
        # If two requests arrive at once, the second finds the project of the first.
        get_user_model().objects.select_for_update().get(pk=owner.pk)
        own = Project.objects.filter(memberships__user=owner, memberships__role=MemberRole.OWNER)
        demo = own.filter(archived_at=None).exclude(demo_progress=None).order_by("pk").last()
        return demo or _create_empty(owner)


def make(project_id: UUID) -> None:
    """Fill a demo project while a page shows the progress, and prepare the first reply.

    Meanwhile the demo model is loaded. While recall indexes the chats, the model also processes the
    prompt of the first reply, which takes seconds on a busy machine.
    """
    project = Project.objects.filter(pk=project_id).first()
    if project is None or not project.is_being_made:
        return
    uses_demo_model = project.chat_model_name == DEMO_MODEL.setting
    if uses_demo_model:
        _in_thread(_warm_up, [PromptMessage("user", "Hello.")])

    def report(percent: int) -> None:
        _in_thread(_store_progress, project_id, percent).join()

    if not fill(project_id, report=report, progress=FILLED):
        return
    reading = _in_thread(_read_prompt, project_id) if uses_demo_model else None
    indexing.catch_up(project, seconds=INDEXING_S)
    if reading is not None:
        reading.join(READING_S)
    Project.objects.filter(pk=project_id).update(demo_progress=100)


@transaction.atomic
def _store_progress(project_id: UUID, percent: int) -> None:
    """Store the percentage. Do nothing if the project is locked."""
    rows = Project.objects.filter(pk=project_id)
    if rows.select_for_update(no_key=True, skip_locked=True).values_list("pk"):
        rows.update(demo_progress=percent)


def _in_thread(work: Callable[..., object], *args: object) -> Thread:
    """Run `work` in a thread with its own database connection."""

    def run() -> None:
        try:
            work(*args)
        finally:
            connection.close()

    thread = Thread(target=run, daemon=True)
    thread.start()
    return thread


def _read_prompt(project_id: UUID) -> None:
    """Let the model process the prompt of the first reply. The model server caches the result."""
    # The project may have been deleted meanwhile.
    if project := Project.objects.filter(pk=project_id).first():
        session = Session(project=project, visibility=Visibility.PROJECT)
        _warm_up(preview(session, DEMO_MODEL.questions[0], None).messages)


def _warm_up(prompt: Sequence[PromptMessage]) -> None:
    try:
        get_provider(DEMO_MODEL.setting, "warm-up").complete(prompt, max_tokens=1)
    except ProviderError as error:
        log.info("demo_warm_up_failed reason=%s", error)


def _create_empty(owner: Any) -> Project:
    described = tomllib.loads(TALK.read_text())["project"]
    return create_project(
        owner,
        name=described["name"],
        instructions=described["instructions"].strip(),
        system_model=EXTRACTIVE,
        bank_max_tokens=BANK_TOKENS,
        share_raw_turns=True,
        demo_progress=0,
    )


@transaction.atomic
def fill(
    project_id: UUID,
    now: datetime | None = None,
    report: Callable[[int], None] = lambda _: None,
    progress: int = 100,
) -> bool:
    """Add the chats of the demo and the memory made from them to a demo project.

    Returns False if another process is filling the project. `report` is called with the percentage
    that is done. It must use another database connection, because everything is written in one
    transaction. At the end, `progress` is stored as the percentage.
    """
    now = now or timezone.now()
    members = Membership.objects.select_related("project", "user").filter(project=project_id)
    # Held by the process that fills the project. A lock of the project would block `report`.
    member = members.select_for_update(of=("self",), skip_locked=True).first()
    if member is None:
        return False
    project, owner = member.project, member.user
    if Session.objects.filter(project=project).exists():
        return True
    content = tomllib.loads(TALK.read_text())
    for number, chat in enumerate(_chats(content["chat"], now, project.zone)):
        session = _create_session(chat, project, owner)
        idle_at = min(chat.ends + IDLE_TIME, now)
        # No cycle is run, because its search for due work takes as long as the work itself.
        conversations.summarise(session.pk, idle_at)
        digests.update_layers(project.pk, idle_at)
        report(number * FILLED // len(content["chat"]))
    # After the chats, because these changes lock the project, which would block `report`.
    for block in content["block"]:
        blocks.put(project, None, block["name"], block["text"], owner)
    for fact in content["fact"]:
        since = _moment(now, project.zone, fact["days_ago"], "09:00")
        parts = (fact["subject"], fact["predicate"], fact["object"])
        facts.create_fact(member, facts.Statement(*parts, valid_from=since))
    # Pin an entry, so that the demo shows one.
    shown = project.entries.filter(state=EntryStatus.LIVE, session__isnull=False)
    entry = shown.order_by("-last_source_at")[1:2].first()
    if isinstance(entry, Entry):
        entry_operations.pin(entry, True, owner)
    while cycle.due(now, project):
        cycle.run(now, project)
    # New summaries use the server's model. save() would also schedule a check of the project.
    Project.objects.filter(pk=project.pk).update(system_model="", demo_progress=progress)
    return True


def _chats(tables: list[dict[str, Any]], now: datetime, zone: ZoneInfo) -> Iterator[DemoChat]:
    """Yield the chats, oldest first. A chat that would end after `now` is moved earlier."""
    for table in tables:
        at = _moment(now, zone, table["days_ago"], table["at"])
        lines = [(speaker, _with_dates(text, at)) for speaker, text in table["lines"]]
        latest = now - IDLE_TIME - LINE_INTERVAL * len(lines)
        yield DemoChat(min(at, latest), table["title"], lines)


def _moment(now: datetime, zone: ZoneInfo, days_ago: int, clock: str) -> datetime:
    day = timezone.localdate(now, zone) - timedelta(days=days_ago)
    return datetime.combine(day, time.fromisoformat(clock), zone)


def _with_dates(text: str, at: datetime) -> str:
    """Replace each `{+N}` in `text` by the date N days after `at`."""

    def format_date(match: re.Match[str]) -> str:
        day = at + timedelta(days=int(match[1]))
        return f"{day.day} {day:%B}"

    return _DATE.sub(format_date, text)


def _create_session(chat: DemoChat, project: Project, owner: Any) -> Session:
    session = create_session(
        project,
        owner,
        title=chat.title,
        visibility=Visibility.PROJECT,
        created_at=chat.at,
        last_activity_at=chat.ends,
    )
    drafts = []
    for number, (speaker, text) in enumerate(chat.lines):
        role = Role.USER if speaker else Role.ASSISTANT
        at = chat.at + LINE_INTERVAL * number
        drafts.append(draft(text, role=role, author_name=speaker, created_at=at))
    post_messages(session, drafts)
    return session
