"""Text that is forgotten while memory processes it is gone afterwards and does not return."""

import io
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import connection
from django.utils import timezone

from chat.conversations import edits
from chat.importers import import_file
from chat.models import Message, Session
from memory.forgetting import tombstones
from memory.forgetting.service import ForgetScope, forget
from memory.layers import conversations, cycle
from memory.layers.bank_cache import rendered_bank
from memory.models import Chunk, Entry, EntryStatus
from memory.recall import indexing
from projects.services import create_project
from tests.scripted import Answer
from tests.torture import cycles

pytestmark = pytest.mark.django_db(transaction=True)

CANARY = re.compile(r"canary\d+x")
START = timezone.now().replace(hour=9) - timedelta(days=40)
LINE = (
    '{{"session": "{session}", "id": "{id}", "role": "{role}", "content": "{text}",'
    ' "created_at": "{at}"}}\n'
)


@pytest.fixture
def repeating_model(crew, model_server):
    """A model that repeats every canary that it is shown."""
    model_server.reset()

    def repeat(request):
        time.sleep(0.02)
        text = " ".join(message["content"] for message in request["messages"])
        birds = list(dict.fromkeys(CANARY.findall(text)))
        return Answer("- Talk of " + ", ".join(birds[:60]) + " and the deploy.")

    model_server.default = repeat
    return model_server


def talk(sessions: int, messages: int) -> str:
    """A file of conversations, a day between them, in which each message names its own canary."""
    lines = []
    for number in range(sessions):
        at = START + timedelta(hours=12 * number)
        for place in range(messages):
            bird = f"canary{number * messages + place}x"
            lines.append(
                LINE.format(
                    session=f"s{number}",
                    id=f"{number}-{place}",
                    role=("user", "assistant")[place % 2],
                    text=f"The deploy of {bird} takes {place} minutes, said somebody at length.",
                    at=(at + timedelta(minutes=place)).isoformat(),
                )
            )
    return "".join(lines)


def everywhere(pattern: re.Pattern[str] = CANARY, like: str = "canary") -> dict[str, set[str]]:
    """The canaries, or what else has `pattern` and `like` in it, in each column of text, JSON,
    tsvector and bytes of every schema, in PostgreSQL's samples, and in each file of the data folder
    but those of the database itself.
    """
    columns_by_bird: dict[str, set[str]] = {}
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
        cursor.execute(
            "SELECT table_schema, table_name, column_name, data_type"
            " FROM information_schema.columns JOIN information_schema.tables"
            " USING (table_schema, table_name)"
            " WHERE table_type = 'BASE TABLE' AND table_schema NOT IN"
            " ('pg_catalog', 'information_schema') AND data_type IN ('text', 'character varying',"
            " 'character', 'json', 'jsonb', 'tsvector', 'bytea', 'ARRAY', 'USER-DEFINED', 'xml')"
        )
        for schema, table, column, kind in cursor.fetchall():
            text = f'"{column}"::text' if kind != "bytea" else f"encode(\"{column}\", 'escape')"
            query = f'SELECT {text} FROM "{schema}"."{table}" WHERE {text} LIKE %s'  # noqa: S608
            cursor.execute(query, [f"%{like}%"])
            birds = {bird for (value,) in cursor.fetchall() for bird in pattern.findall(value)}
            columns_by_bird[f"{schema}.{table}.{column}"] = birds
        cursor.execute(
            "SELECT coalesce(most_common_vals::text, '') || coalesce(histogram_bounds::text, '')"
            " || coalesce(most_common_elems::text, '') FROM pg_stats"
        )
        samples = " ".join(value for (value,) in cursor.fetchall())
        columns_by_bird["pg_stats"] = set(pattern.findall(samples))
    for path in Path(settings.DATA_DIR).rglob("*"):
        if path.is_file() and "postgres" not in path.relative_to(settings.DATA_DIR).parts[0]:
            columns_by_bird[str(path)] = set(pattern.findall(path.read_bytes().decode("latin-1")))
    return {place: birds for place, birds in columns_by_bird.items() if birds}


class Race:
    """Workers that make memory of the talk, and somebody who has parts of it forgotten."""

    def __init__(self, crew, chance, project, user) -> None:
        self.crew, self.chance, self.project, self.user = crew, chance, project, user
        self.now = timezone.now() + timedelta(hours=1)
        self.forgotten: set[str] = set()
        self.over = crew.Event()

    @contextmanager
    def under_way(self, workers: int) -> Iterator[None]:
        """Inside, so many workers make memory of what is said, and one has it found by recall."""
        indexer = self.crew.Process(target=cycles.index, args=(self.over,), daemon=True)
        indexer.start()
        threads = [threading.Thread(target=self._work, args=(number,)) for number in range(workers)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.over.set()
            for item in (*threads, indexer):
                item.join()

    def _work(self, number: int) -> None:
        """Cycles, one process after the other, until the race is over."""
        while not self.over.is_set():
            name = f"worker{number}-{time.monotonic_ns()}"
            # An event lives only as long as somebody here knows it.
            begun = self.crew.Event()
            worker = self.crew.Process(
                target=cycles.work, args=(name, self.now, begun), daemon=True
            )
            worker.start()
            worker.join()

    def forget_something(self, kind: str = "") -> str:
        """Forgets a message, a session, an entry with its sources, or a copy; says which."""
        kinds = ["message", "message", "message", "session", "entry", "copy"]
        kind = kind or self.chance.choice(kinds)
        scope = getattr(self, f"_{kind}")()
        if scope is None:
            return "nothing"
        before = self._standing()
        forget(self.project, scope, self.user)
        self.forgotten |= before - self._standing()
        return kind

    def _standing(self) -> set[str]:
        texts = Message.objects.filter(project=self.project).values_list("text", flat=True)
        return {bird for text in texts for bird in CANARY.findall(text)}

    def _message(self) -> ForgetScope | None:
        standing = list(Message.objects.filter(forgotten_at=None).values_list("pk", flat=True))
        return ForgetScope(message=self.chance.choice(standing)) if standing else None

    def _session(self) -> ForgetScope | None:
        sessions = list(Session.objects.values_list("pk", flat=True))
        # Enough is to be left for the others.
        return ForgetScope(session=self.chance.choice(sessions)) if len(sessions) > 8 else None

    def _entry(self) -> ForgetScope | None:
        entries = list(
            Entry.objects.filter(granularity="conversation").values_list("pk", flat=True)
        )
        if len(entries) < 8:
            return None
        return ForgetScope(entry=self.chance.choice(entries), sources=True)

    def _copy(self) -> ForgetScope | None:
        origin = Message.objects.filter(forgotten_at=None, copied_from=None).order_by("?").first()
        if origin is None:
            return None
        fork = edits.fork(origin, self.user)
        copy = fork.messages.exclude(text="").last()
        return ForgetScope(message=copy.pk) if copy else None

    def visible_canaries(self) -> set[str]:
        """The canaries that a prompt, a page or a search shows now."""
        bank = rendered_bank(self.project)
        shown_texts = [bank.text, *Message.objects.values_list("text", flat=True)]
        shown_texts += Entry.objects.filter(withheld=False).values_list("summary", flat=True)
        shown_texts += Chunk.objects.values_list("text", flat=True)
        return {bird for text in shown_texts for bird in CANARY.findall(text)}

    def check(self) -> None:
        """Whether nothing that was forgotten is there any more, in any store."""
        back = {place: birds & self.forgotten for place, birds in everywhere().items()}
        back = {place: birds for place, birds in back.items() if birds}
        assert not back, f"forgotten, and there: {back}"


def settle(now) -> None:
    for _ in range(20):
        cycle.run(now)
        if not cycle.due(now):
            return


@pytest.fixture
def start(crew, chance):
    """Begins a race: a project with a talk of so many sessions, and the file that it came from."""

    def begin(sessions: int) -> tuple[Race, Callable[[], None]]:
        user = get_user_model().objects.create_user("olive")
        project = create_project(user, name="Forgetting", bank_max_tokens=400, idle_minutes=1)
        file = talk(sessions, 8).encode()

        def bring() -> None:
            import_file(project, user, "talk.jsonl", io.BytesIO(file))

        bring()
        return Race(crew, chance, project, user), bring

    return begin


def test_text_forgotten_while_memory_is_made_of_it_is_nowhere(
    start, repeating_model, chance, scale, tally
):
    forgettings, sessions = scale(200, 16), scale(120, 16)
    race, bring = start(sessions)
    with race.under_way(workers=scale(3, 2)):
        for _ in range(forgettings):
            tally(f"forgotten: {race.forget_something()}")
            back = race.visible_canaries() & race.forgotten
            assert back == set(), f"shown after its receipt: {sorted(back)}"
            time.sleep(chance.random() * 0.2)
            if chance.random() < 0.1:
                bring()
                tally("imports of the source again")
    tally("calls of the model meanwhile", len(repeating_model.requests))
    bring()
    indexing.catch_up()
    settle(race.now)
    race.check()
    standing = race._standing()
    assert standing
    assert standing <= set().union(*everywhere().values())
    waiting = Entry.objects.filter(state=EntryStatus.STALE) | Entry.objects.filter(withheld=True)
    assert not waiting.exists()
    for rows in (Entry.objects.values_list("summary"), Chunk.objects.values_list("text")):
        assert CANARY.search(str(list(rows)))
    tally("canaries that are nowhere", len(race.forgotten))
    tally("canaries that stand", len(standing))
    assert settings.TOMBSTONES.exists()


@pytest.mark.parametrize("kind", ["message", "session"])
def test_without_tombstones_that_would_be_noticed(start, repeating_model, monkeypatch, kind):
    race, bring = start(10)
    settle(race.now)
    assert race.forget_something(kind) == kind
    assert race.forgotten
    bring()
    race.check()
    monkeypatch.setattr(tombstones, "forgotten_subjects", lambda project, subjects: set())
    bring()
    with pytest.raises(AssertionError, match="forgotten, and there: .*chat_message.text"):
        race.check()


def test_without_a_second_look_at_the_sources_that_would_be_noticed(
    start, scripted, repeating_model, monkeypatch
):
    """A message is forgotten while the model has it before its eyes."""
    race, _ = start(1)
    repeat = repeating_model.default

    def forget_meanwhile(request):
        repeating_model.default = repeat
        race.forget_something("message")
        return repeat(request)

    repeating_model.default = forget_meanwhile
    settle(race.now)
    assert race.forgotten
    race.check()
    race.forget_something("message")
    repeating_model.default = forget_meanwhile
    monkeypatch.setattr(conversations.SummaryJob, "sources_unchanged", lambda *_: True)
    settle(race.now)
    with pytest.raises(AssertionError, match="forgotten, and there: .*memory_entry.summary"):
        race.check()
