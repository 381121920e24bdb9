"""The demo project: two months of a small team's chats, with the memory made from them.

The chats in demo.toml are dated in the weeks before today. The usual cycles summarise them with the
extractive summariser, so that no model is called.
"""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from django.db import transaction
from django.utils import timezone

from chat.conversations.messages import draft, post_messages
from chat.conversations.sessions import create_session
from chat.models import Role, Session, Visibility
from memory import blocks, facts
from memory.layers import conversations, cycle, digests
from memory.layers.summarising.base import EXTRACTIVE
from memory.models import Entry, EntryStatus
from memory.moderation import entry_operations
from projects.models import Membership, Project
from projects.services import create_project

# The slug of the first demo project on a server.
SLUG = "island-ferry"
TALK = Path(__file__).with_suffix(".toml")
# Two months of chats fill this budget, so that the oldest conversations are rolled up.
BANK_TOKENS = 900
# The time between two lines of a chat, and from the last line to its summary.
LINE_INTERVAL = timedelta(minutes=2)
IDLE_TIME = timedelta(hours=1)
_DATE = re.compile(r"\{\+(\d+)\}")


@dataclass(frozen=True)
class DemoChat:
    """A conversation that began at `at`, as (speaker, text); the assistant's speaker is empty."""

    at: datetime
    title: str
    lines: list[tuple[str, str]]

    @property
    def ends(self) -> datetime:
        return self.at + LINE_INTERVAL * len(self.lines)


@transaction.atomic
def create_demo(owner: Any, now: datetime | None = None) -> Project:
    """Create a demo project whose last chat was before `now`. Takes seconds."""
    now = now or timezone.now()
    content = tomllib.loads(TALK.read_text())
    project = create_project(
        owner,
        name=content["project"]["name"],
        instructions=content["project"]["instructions"].strip(),
        system_model=EXTRACTIVE,
        bank_max_tokens=BANK_TOKENS,
        share_raw_turns=True,
    )
    member = Membership.objects.select_related("project", "user").get(project=project)
    for block in content["block"]:
        blocks.put(project, None, block["name"], block["text"], owner)
    for fact in content["fact"]:
        since = _moment(now, project.zone, fact["days_ago"], "09:00")
        parts = (fact["subject"], fact["predicate"], fact["object"])
        facts.create_fact(member, facts.Statement(*parts, valid_from=since))
    for chat in _chats(content["chat"], now, project.zone):
        session = _create_session(chat, project, owner)
        idle_at = min(chat.ends + IDLE_TIME, now)
        # A cycle would do the same, but searching for due work takes as long as the work.
        conversations.summarise(session.pk, idle_at)
        digests.update_layers(project.pk, idle_at)
    # The demo shows a pinned entry.
    shown = project.entries.filter(state=EntryStatus.LIVE, session__isnull=False)
    entry = shown.order_by("-last_source_at")[1:2].first()
    if isinstance(entry, Entry):
        entry_operations.pin(entry, True, owner)
    while cycle.due(now, project):
        cycle.run(now, project)
    # New summaries use the server's model. save() would schedule a check of the whole project.
    Project.objects.filter(pk=project.pk).update(system_model="")
    project.refresh_from_db()
    return project


def _chats(tables: list[dict[str, Any]], now: datetime, zone: ZoneInfo) -> Iterator[DemoChat]:
    """Yield the chats, oldest first. A chat that would end after `now` is moved before it."""
    for table in tables:
        at = _moment(now, zone, table["days_ago"], table["at"])
        lines = [(speaker, _with_dates(text, at)) for speaker, text in table["lines"]]
        latest = now - IDLE_TIME - LINE_INTERVAL * len(lines)
        yield DemoChat(min(at, latest), table["title"], lines)


def _moment(now: datetime, zone: ZoneInfo, days_ago: int, clock: str) -> datetime:
    day = timezone.localdate(now, zone) - timedelta(days=days_ago)
    return datetime.combine(day, time.fromisoformat(clock), zone)


def _with_dates(text: str, at: datetime) -> str:
    """Replace each `{+3}` in `text` by the date three days after `at`."""

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
