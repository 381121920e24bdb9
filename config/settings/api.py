"""Settings of the REST API: authentication, rate limits, pagination and the schema."""

from typing import Any

from config import __version__
from config.settings.env import Rate, Variables, load, number, rate, var


def _rate(name: str, default: str, description: str) -> Any:
    takes = "a rate such as 60/minute (or second, hour, day), or off"
    shown = f"`{default}`"
    return var(name, rate(default), takes, description, shown_default=shown, example=default)


class LimitVariables(Variables):
    title = "Limits"

    rate_reads: Rate = _rate(
        "STRATA_RATE_READS",
        "3000/minute",
        "How often a token may read. All tokens of a user together may three times as often.",
    )
    rate_writes: Rate = _rate("STRATA_RATE_WRITES", "1200/minute", "How often a token may write.")
    rate_replies: Rate = _rate(
        "STRATA_RATE_REPLIES",
        "120/minute",
        "How often a token may request a model's answer. Each answer also counts as a write.",
    )
    rate_pages: Rate = _rate(
        "STRATA_RATE_PAGES",
        "1200/minute",
        "How often a signed-in user, or an address without sign-in, may request pages.",
    )
    streams_per_user: int = number(
        "STRATA_STREAMS_PER_USER",
        100,
        (1, 100_000),
        "How many event streams a web process holds open for a user. Each open chat page takes "
        "one.",
    )
    streams_per_project: int = number(
        "STRATA_STREAMS_PER_PROJECT",
        2000,
        (1, 100_000),
        "How many event streams a web process holds open for a project.",
    )


_env = load(LimitVariables)
# The rate limits of each token as (requests, seconds); None means no limit. All tokens of a user
# together have three times the limit.
RATES = {"reads": _env.rate_reads, "writes": _env.rate_writes, "replies": _env.rate_replies}
PAGE_RATE = _env.rate_pages
STREAMS_PER_USER, STREAMS_PER_PROJECT = _env.streams_per_user, _env.streams_per_project
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["projects.authentication.TokenAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": [
        "rest_framework.permissions.IsAuthenticated",
        "projects.authentication.TokenScopePermission",
    ],
    "DEFAULT_THROTTLE_CLASSES": ["projects.rate_limits.TokenRateThrottle"],
    "DEFAULT_RENDERER_CLASSES": ["projects.core.api.json.SafeJSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["projects.core.api.json.SafeJSONParser"],
    "EXCEPTION_HANDLER": "projects.core.api.exception_handler.handle_exception",
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "projects.core.api.json.JSONOnlyNegotiation",
    "DEFAULT_PAGINATION_CLASS": "projects.core.api.pagination.NewestFirstPagination",
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_SCHEMA_CLASS": "projects.api.schema.StrataAutoSchema",
    "PAGE_SIZE": 50,
}
REST_KNOX = {
    "TOKEN_TTL": None,
    "TOKEN_MODEL": "projects.Token",
    "AUTH_HEADER_PREFIX": "Bearer",
    "TOKEN_PREFIX": "strata_",
}
KNOX_TOKEN_MODEL = "projects.Token"
# No migrations, because they would create a table for knox's own token model, which is not used.
MIGRATION_MODULES = {"knox": None}
SPECTACULAR_SETTINGS = {
    "TITLE": "Strata",
    "DESCRIPTION": "Projects that remember.",
    "VERSION": __version__,
    "SERVE_INCLUDE_SCHEMA": False,
    "DEFAULT_GENERATOR_CLASS": "projects.api.schema.EnglishSchemaGenerator",
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "projects.api.schema.describe_errors",
    ],
    "ENUM_NAME_OVERRIDES": {
        "MessageRole": "chat.models.Role",
        "MemberRole": "projects.models.MemberRole",
        "InvitationState": "projects.models.InvitationStatus",
        "EntryState": "memory.models.EntryStatus",
        "FactState": "memory.models.FactStatus",
    },
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}
