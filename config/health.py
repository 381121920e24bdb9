"""Is it alive, and is it ready: for load balancers and for the supervisor."""

from datetime import timedelta

from celery import current_app
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse, JsonResponse

from config import signs
from config.backup import marker
from config.models import Heartbeat

# Three signs of life may be missed before a part counts as missing.
SILENCE = timedelta(seconds=90)


def healthz(request: HttpRequest) -> HttpResponse:
    """The web process answers."""
    return HttpResponse("ok", content_type="text/plain")


def readyz(request: HttpRequest) -> JsonResponse:
    """Database, broker, worker and beat, each true or false; 503 while one is missing.

    And whether some worker takes from each queue, which a balancer need not mind.
    """
    parts = {"database": _database(), "broker": _broker()}
    seen = set()
    if parts["database"]:
        recent = Heartbeat.objects.filter(seen_at__gte=Now() - SILENCE)
        seen = set(recent.values_list("part", flat=True))
    parts |= {"worker": "worker" in seen, "beat": "beat" in seen}
    status = 200 if all(parts.values()) else 503
    queues = {name: signs.queue(name) in seen for name in settings.QUEUES}
    return JsonResponse(parts | {"queues": queues}, status=status)


def _database() -> bool:
    """Whether it answers, and no restore of it was broken off."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        return not marker.is_set()
    except DatabaseError:
        return False


def _broker() -> bool:
    with current_app.connection_for_read() as broker:
        try:
            broker.ensure_connection(max_retries=1, timeout=2)
        except broker.connection_errors:
            return False
    return True
