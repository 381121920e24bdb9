"""Settings of the REST API: authentication, rate limits, pagination and the schema."""

from config import __version__
from config.settings.env import Rate, Variables, load, var

_RATE = "a rate such as 60/minute (or second, hour, day), or off"


class LimitVariables(Variables):
    title = "Limits"

    rate_reads: Rate = var(
        "STRATA_RATE_READS",
        (3000, 60),
        _RATE,
        "How often a token may read. All tokens of a user together may three times as often.",
        shown_default="`3000/minute`",
        example="3000/minute",
    )
    rate_writes: Rate = var(
        "STRATA_RATE_WRITES",
        (1200, 60),
        _RATE,
        "How often a token may write.",
        shown_default="`1200/minute`",
        example="1200/minute",
    )
    rate_replies: Rate = var(
        "STRATA_RATE_REPLIES",
        (120, 60),
        _RATE,
        "How often a token may request a model's answer. Each answer also counts as a write.",
        shown_default="`120/minute`",
        example="120/minute",
    )
    rate_pages: Rate = var(
        "STRATA_RATE_PAGES",
        (1200, 60),
        _RATE,
        "How often a signed-in user, or an address without sign-in, may request pages.",
        shown_default="`1200/minute`",
        example="1200/minute",
    )
    streams_per_user: int = var(
        "STRATA_STREAMS_PER_USER",
        100,
        "a number from 1 to 100000",
        "How many event streams a web process holds open for a user. Each open chat page takes "
        "one.",
        ge=1,
        le=100_000,
    )
    streams_per_project: int = var(
        "STRATA_STREAMS_PER_PROJECT",
        2000,
        "a number from 1 to 100000",
        "How many event streams a web process holds open for a project.",
        ge=1,
        le=100_000,
    )


_env = load(LimitVariables)
# The rate limits of each token as (requests, seconds); None means no limit. All tokens of a user
# together have three times the limit.
RATES = {
    "reads": _env.rate_reads,
    "writes": _env.rate_writes,
    # Each answer of a model also counts as a write.
    "replies": _env.rate_replies,
}
# The rate limit for each signed-in user, and for each IP address without sign-in.
PAGE_RATE = _env.rate_pages
# The maximum number of event streams that a web process holds open.
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
