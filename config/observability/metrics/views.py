"""The view /metrics. It requires the token that is stored in the data folder."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare
from prometheus_client import REGISTRY, CollectorRegistry, disable_created_metrics, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.multiprocess import MultiProcessCollector

from config.observability.metrics import multiprocess
from config.observability.metrics.collectors import StateCollector

UNAUTHORIZED = (
    "Send “Authorization: Bearer” with STRATA_METRICS_TOKEN or the content of metrics_token.\n"
)

# Without the `_created` series, which would double the number of series.
disable_created_metrics()
_state_registry = CollectorRegistry()
_state_registry.register(StateCollector())


def metrics(request: HttpRequest) -> HttpResponse:
    """Return all metrics in Prometheus' text format."""
    if not _is_authorised(request):
        response = HttpResponse(UNAUTHORIZED, status=401, content_type="text/plain; charset=utf-8")
        response["WWW-Authenticate"] = "Bearer"
        return response
    text = generate_latest(_counter_registry()) + generate_latest(_state_registry)
    return HttpResponse(text, content_type=CONTENT_TYPE_PLAIN_0_0_4)


def _is_authorised(request: HttpRequest) -> bool:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return constant_time_compare(token.strip(), settings.METRICS_TOKEN)
    return request.user.is_active and request.user.is_superuser


def _counter_registry() -> CollectorRegistry:
    if not settings.METRICS_DIR:
        return REGISTRY
    multiprocess.remove_dead_gauges(settings.METRICS_DIR)
    registry = CollectorRegistry()
    MultiProcessCollector(registry, str(settings.METRICS_DIR))
    return registry
