"""A project to look around in: two months of a small team's talk, remembered day by day.

What stands in talk.toml is told as if it had been said in the weeks before today, and memory's own
cycles make of it what they would have made then, with the summariser that only quotes: no model is
asked, whatever the server's is.
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

from chat.models import Role, Session, Visibility
from chat.replies import draft, post_messages
from chat.sessions import create_session
from memory import blocks, facts
from memory.layers import conversations, cycle, digests, review
from memory.layers.summarising import EXTRACTIVE
from memory.models import Entry, State
from projects.creation import create_project
from projects.models import Membership, Project

# What its address comes to, where it is the first.
SLUG = "island-ferry"
TALK = Path(__file__).parent / "talk.toml"
# Small enough that two months of talk fill it, and the oldest of it settles.
BUDGET = 900  # tokens
# Between two lines of a chat, and after the last until it counts as over.
PAUSE = timedelta(minutes=2)
SILENCE = timedelta(hours=1)
_DATE = re.compile(r"\{\+(\d+)\}")


@dataclass(frozen=True)
class Chat:
    """A conversation that began at `at`; its lines are (speaker, text), the assistant's without a
    speaker.
    """

    at: datetime
    title: str
    said: list[tuple[str, str]]

    @property
    def ends(self) -> datetime:
        return self.at + PAUSE * len(self.said)


@transaction.atomic
def make(owner: Any, now: datetime | None = None) -> Project:
    """The demo project of `owner`, as if its last chat had been before `now`. Takes seconds."""
    now = now or timezone.now()
    told = tomllib.loads(TALK.read_text())
    project = create_project(
        owner,
        name=told["project"]["name"],
        instructions=told["project"]["instructions"].strip(),
        system_model=EXTRACTIVE,
        bank_max_tokens=BUDGET,
        share_raw_turns=True,
    )
    member = Membership.objects.select_related("project", "user").get(project=project)
    for block in told["block"]:
        blocks.put(project, None, block["name"], block["text"], owner)
    for fact in told["fact"]:
        since = _moment(now, project.zone, fact["days_ago"], "09:00")
        parts = (fact["subject"], fact["predicate"], fact["object"])
        facts.give(member, facts.Statement(*parts, valid_from=since))
    for chat in _chats(told["chat"], now, project.zone):
        session = _hold(chat, project, owner)
        over = min(chat.ends + SILENCE, now)
        # As a cycle would: nothing else is due, and to ask what is takes as long as this.
        conversations.summarise(session.pk, over)
        digests.settle(project.pk, over)
    _pin(project, owner)
    while cycle.due(now, project):
        cycle.run(now, project)
    # From now on the server's own writes. Not by save(), after which all would be looked through.
    Project.objects.filter(pk=project.pk).update(system_model="")
    project.refresh_from_db()
    return project


def _chats(told: list[dict[str, Any]], now: datetime, zone: ZoneInfo) -> Iterator[Chat]:
    """The chats, the oldest first. What would be later than `now` has just ended."""
    for one in told:
        at = _moment(now, zone, one["days_ago"], one["at"])
        lines = [(speaker, _dated(text, at)) for speaker, text in one["said"]]
        latest = now - SILENCE - PAUSE * len(lines)
        yield Chat(min(at, latest), one["title"], lines)


def _moment(now: datetime, zone: ZoneInfo, days_ago: int, clock: str) -> datetime:
    day = timezone.localdate(now, zone) - timedelta(days=days_ago)
    return datetime.combine(day, time.fromisoformat(clock), zone)


def _dated(text: str, at: datetime) -> str:
    """`text` with its dates, which count from the day `at`."""

    def written(found: re.Match[str]) -> str:
        day = at + timedelta(days=int(found[1]))
        return f"{day.day} {day:%B}"

    return _DATE.sub(written, text)


def _hold(chat: Chat, project: Project, owner: Any) -> Session:
    session = create_session(
        project,
        owner,
        title=chat.title,
        visibility=Visibility.PROJECT,
        created_at=chat.at,
        last_activity_at=chat.ends,
    )
    drafts = []
    for number, (speaker, text) in enumerate(chat.said):
        role = Role.USER if speaker else Role.ASSISTANT
        at = chat.at + PAUSE * number
        drafts.append(draft(text, role=role, author_name=speaker, created_at=at))
    post_messages(session, drafts)
    return session


def _pin(project: Project, owner: Any) -> None:
    """One of the latest entries, so that there is a pin to see."""
    shown = project.entries.filter(state=State.LIVE, session__isnull=False)
    entry = shown.order_by("-last_source_at")[1:2].first()
    if isinstance(entry, Entry):
        review.pin(entry, True, owner)
