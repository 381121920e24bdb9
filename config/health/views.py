"""/healthz and /readyz, for load balancers, the supervisor and operators."""

import shutil
from datetime import timedelta

from celery import current_app
from django.conf import settings
from django.db import DatabaseError
from django.db.models import F
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse, JsonResponse
from kombu.exceptions import OperationalError
from psycopg import ProgrammingError

from config.backup import restore_marker
from config.health import heartbeats
from config.health.probes import Probe
from config.models import Heartbeat
from config.runtime.bootstrap import unapplied_migrations
from memory.recall.embedders import static
from projects.core.database import fetch

# The maximum age of a heartbeat, more than four intervals.
MAX_HEARTBEAT_AGE = timedelta(seconds=90)
# The timeout for the checks of database and broker, which run at the same time.
TIMEOUT_S = 2.0
TIMED_OUT = f"No answer within {TIMEOUT_S:.0f} seconds."
# The minimum free share of the disk of STRATA_DATA_DIR. PostgreSQL stops when the disk is full.
MIN_FREE_DISK_SHARE = 0.05

# The reason for each component with a problem.
Problems = dict[str, str]

_migrations_applied = False


def healthz(request: HttpRequest) -> HttpResponse:
    """Return 200, which shows that the web process responds."""
    return HttpResponse("ok", content_type="text/plain")


def readyz(request: HttpRequest) -> JsonResponse:
    """Report the state of database, broker, worker and beat, with a reason for each problem.

    The status is 503 if one of these components, a migration or the embedding model is missing. A
    queue without a consumer and a nearly full disk do not change the status.
    """
    database, broker = _database.start(), _broker.start()
    missing, ages = database.result(TIMEOUT_S, ({"database": TIMED_OUT}, {}))
    missing = missing | broker.result(TIMEOUT_S, {"broker": TIMED_OUT}) | _check_embedder()
    for component in ("worker", "beat"):
        if not ages and "database" in missing:
            missing[component] = "Unknown without the database."
        elif reason := _heartbeat_problem(ages.get(component)):
            missing[component] = reason
    components: dict[str, object] = {
        name: name not in missing for name in ("database", "broker", "worker", "beat")
    }
    details = {
        "queues": {
            name: not _heartbeat_problem(ages.get(heartbeats.queue(name)))
            for name in settings.QUEUES
        },
        "missing": missing,
        "warnings": _check_disk(),
        "seen_seconds_ago": {name: ages[name] for name in ("worker", "beat") if name in ages},
    }
    return JsonResponse(components | details, status=503 if missing else 200)


def check_database() -> tuple[Problems, dict[str, int]]:
    """Return the problems of the database, and the age of each component's heartbeat in seconds."""
    try:
        rows = Heartbeat.objects.annotate(age=Now() - F("seen_at")).values_list("part", "age")
        return _check_schema(), {name: round(age.total_seconds()) for name, age in rows}
    except DatabaseError:
        pass
    try:
        # A new database is reachable, but has no tables yet.
        fetch("SELECT 1")
        return _check_schema(), {}
    except DatabaseError:
        return {"database": "Unreachable, or it refuses the connection: see the log."}, {}


def _check_schema() -> Problems:
    global _migrations_applied
    if restore_marker.is_set():
        return {"database": "A restore was not finished: run manage.py restore again."}
    # Cached once they are applied, because this version of the code never needs other migrations.
    if _migrations_applied:
        return {}
    missing = unapplied_migrations()
    _migrations_applied = not missing
    return {"migrations": f"{missing} are not applied: run manage.py prepare."} if missing else {}


def check_broker() -> Problems:
    """Return the problems of the broker."""
    with current_app.connection_for_read() as broker:
        try:
            broker.ensure_connection(max_retries=1, timeout=TIMEOUT_S)
        except ProgrammingError:
            return {"broker": "Its tables are not in the database: run manage.py prepare."}
        # RabbitMQ refuses a password with an error of the channel.
        except (OperationalError, *broker.connection_errors, *broker.channel_errors):
            return {"broker": "Unreachable, or it refuses the connection."}
    return {}


def _heartbeat_problem(age: int | None) -> str:
    """Return why a component with a heartbeat of this age has a problem, or ""."""
    if age is None:
        return "No heartbeat yet."
    limit = MAX_HEARTBEAT_AGE.total_seconds()
    if age < -limit:
        return "No heartbeat since the clock was set back."
    return f"No heartbeat for {age} s." if age > limit else ""


def _check_embedder() -> Problems:
    if settings.EMBEDDER == "static" and not (static.MODEL_DIR / "model.safetensors").exists():
        return {"embedder": "The file of the built-in embedding model is missing."}
    return {}


def _check_disk() -> Problems:
    usage = shutil.disk_usage(settings.DATA_DIR)
    if usage.free >= MIN_FREE_DISK_SHARE * usage.total:
        return {}
    return {"disk": f"{usage.free / 1e9:.1f} GB are left on the disk of STRATA_DATA_DIR."}


_database = Probe(check_database)
_broker = Probe(check_broker)
