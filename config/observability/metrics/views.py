"""/metrics: for those who know the token, which lies beside the database."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare
from prometheus_client import (
    REGISTRY,
    CollectorRegistry,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.multiprocess import MultiProcessCollector

from config.metrics import shared
from config.metrics.state import State

ASKS = "It takes “Authorization: Bearer” with STRATA_METRICS_TOKEN or what metrics_token holds.\n"

# When each series began, which doubles them and which nobody asks.
disable_created_metrics()
_state = CollectorRegistry()
_state.register(State())


def metrics(request: HttpRequest) -> HttpResponse:
    """What is counted and what is the case, in Prometheus' text format."""
    if not _may_read(request):
        refused = HttpResponse(ASKS, status=401, content_type="text/plain; charset=utf-8")
        refused["WWW-Authenticate"] = "Bearer"
        return refused
    told = generate_latest(_counted()) + generate_latest(_state)
    return HttpResponse(told, content_type=CONTENT_TYPE_PLAIN_0_0_4)


def _may_read(request: HttpRequest) -> bool:
    kind, _, token = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return constant_time_compare(token.strip(), settings.METRICS_TOKEN)
    return request.user.is_active and request.user.is_superuser


def _counted() -> CollectorRegistry:
    if not settings.METRICS_DIR:
        return REGISTRY
    shared.forget_the_dead(settings.METRICS_DIR)
    registry = CollectorRegistry()
    MultiProcessCollector(registry, str(settings.METRICS_DIR))
    return registry
