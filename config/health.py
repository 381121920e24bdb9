"""Is it alive, and is it ready: for load balancers, for the supervisor and for whoever wonders."""

import shutil
from datetime import timedelta

from celery import current_app
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models import F
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse, JsonResponse
from kombu.exceptions import OperationalError
from psycopg import ProgrammingError

from config import signs
from config.backup import marker
from config.models import Heartbeat
from config.probes import Probe
from memory.recall.embedders import static

# Three signs of life may be missed before a part counts as missing.
SILENCE = timedelta(seconds=90)
# Seconds that the database and the broker have to answer.
PATIENCE = 2.0
AWAY = f"It did not answer within {PATIENCE:.0f} seconds."
# Of the disk with STRATA_DATA_DIR; PostgreSQL stops when nothing is left.
NEARLY_FULL = 0.05

Missing = dict[str, str]

_migrated = False


def healthz(request: HttpRequest) -> HttpResponse:
    """The web process answers."""
    return HttpResponse("ok", content_type="text/plain")


def readyz(request: HttpRequest) -> JsonResponse:
    """Database, broker, worker and beat, each true or false, and in words why one is missing or
    needs a look; 503 while something is missing.

    And whether some worker takes from each queue, which a balancer need not mind.
    """
    database, broker = _database.begin(), _broker.begin()
    missing, seen = database.within(PATIENCE, ({"database": AWAY}, {}))
    missing = missing | broker.within(PATIENCE, {"broker": AWAY}) | _embedder()
    for part in ("worker", "beat"):
        if reason := _silence(seen.get(part), bool(seen) or "database" not in missing):
            missing[part] = reason
    parts: dict[str, object] = {
        part: part not in missing for part in ("database", "broker", "worker", "beat")
    }
    told = {
        "queues": {name: not _silence(seen.get(signs.queue(name))) for name in settings.QUEUES},
        "missing": missing,
        "warnings": _disk(),
        "seen_seconds_ago": {part: seen[part] for part in ("worker", "beat") if part in seen},
    }
    return JsonResponse(parts | told, status=503 if missing else 200)


def _look_at_database() -> tuple[Missing, dict[str, int]]:
    """What is missing of it, and how many seconds ago each part was seen."""
    try:
        ages = Heartbeat.objects.annotate(age=Now() - F("seen_at"))
        seen = {part: round(age.total_seconds()) for part, age in ages.values_list("part", "age")}
        return _restore() | _migrations(), seen
    except DatabaseError:
        # A new database answers, and has no tables yet.
        return _answers(), {}


def _answers() -> Missing:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        return _restore() | _migrations()
    except DatabaseError:
        return {"database": "It cannot be reached, or refuses who asks: see the log."}


def _restore() -> Missing:
    if marker.is_set():
        return {"database": "A restore of it was not finished: run manage.py restore again."}
    return {}


def _migrations() -> Missing:
    """Once all are there, this version needs no more."""
    global _migrated
    if _migrated:
        return {}
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    _migrated = not plan
    if _migrated:
        return {}
    return {"migrations": f"{len(plan)} are not applied: run manage.py prepare."}


def _look_at_broker() -> Missing:
    with current_app.connection_for_read() as broker:
        try:
            broker.ensure_connection(max_retries=1, timeout=PATIENCE)
        except ProgrammingError:
            return {"broker": "Its tables are not in the database: run manage.py prepare."}
        except (OperationalError, *broker.connection_errors):
            return {"broker": "It cannot be reached, or refuses who asks."}
    return {}


def _silence(age: int | None, known: bool = True) -> str:
    """Why a part counts as missing that was seen so many seconds ago; empty when it does not."""
    if not known:
        return "Not known without the database."
    if age is None:
        return "No sign of life yet."
    if age < -SILENCE.total_seconds():
        return "No sign of life since the clock was set back."
    return f"No sign of life for {age} s." if age > SILENCE.total_seconds() else ""


def _embedder() -> Missing:
    if settings.EMBEDDER == "static" and not (static.FOLDER / "model.safetensors").exists():
        return {"embedder": "The file of the built-in embedding model is not there."}
    return {}


def _disk() -> Missing:
    usage = shutil.disk_usage(settings.DATA_DIR)
    if usage.free < NEARLY_FULL * usage.total:
        free = f"{usage.free / 1e9:.1f} GB"
        return {"disk": f"{free} are left where STRATA_DATA_DIR is."}
    return {}


_database = Probe(_look_at_database)
_broker = Probe(_look_at_broker)
