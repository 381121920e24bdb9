"""Settings of PostgreSQL, the read replica, the broker and the cache."""

from typing import Annotated

import dj_database_url
from pydantic import BeforeValidator

from config.postgres import server
from config.settings.env import Database, Variables, address, load, var
from config.settings.security import DATA_DIR

Broker = Annotated[str, BeforeValidator(address("pgmq", "redis", "rediss", "amqp", "amqps"))]


class DatabaseVariables(Variables):
    title = "Database and broker"

    database_url: Database = var(
        "DATABASE_URL",
        "",
        "postgresql://USER:PASSWORD@HOST/NAME, in a password %40 for @, %2F for /, %25 for % and "
        "so on",
        "Any PostgreSQL ≥ 15 with pgvector ≥ 0.8.",
        example="postgresql://strata@db.example.org/strata",
        shown_default="embedded PostgreSQL 18",
        secret=True,
        in_readme=True,
    )
    pooler: bool | None = var(
        "STRATA_POOLER",
        None,
        "on or off",
        "Set `off` if no pooler such as PgBouncer is in front of PostgreSQL. Statements are then "
        "prepared, and workers wake at once.",
        example="off",
        shown_default="on with `DATABASE_URL`",
    )
    replica_url: Database = var(
        "STRATA_REPLICA_URL",
        "",
        "postgresql://USER:PASSWORD@HOST/NAME",
        "A read replica for searches and exports.",
        example="postgresql://strata@replica.example.org/strata",
        shown_default="none",
        secret=True,
    )
    broker_url: Broker = var(
        "CELERY_BROKER_URL",
        "",
        "a pgmq://, redis:// or amqp:// address",
        "The broker of background tasks: `pgmq://`, `redis://` or `amqp://`.",
        example="redis://redis.example.org/0",
        shown_default="the same PostgreSQL",
        secret=True,
        in_readme=True,
    )
    cache_url: Annotated[str, BeforeValidator(address("redis", "rediss"))] = var(
        "STRATA_CACHE_URL",
        "",
        "a redis:// address such as redis://HOST/1",
        "A Redis server for short-lived data: counts of sign-in attempts, and used codes.",
        example="redis://redis.example.org/1",
        shown_default="the database",
        secret=True,
    )


_env = load(DatabaseVariables)
DATABASE_URL: str = _env.database_url
BROKER_URL: str = _env.broker_url
EMBEDDED_POSTGRES = not DATABASE_URL
DATABASES: dict[str, dict[str, object]]
if EMBEDDED_POSTGRES:
    DATABASES = {
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": "postgres",
            "USER": "postgres",
            "HOST": str(server.socket_directory(DATA_DIR)),
        }
    }
else:
    DATABASES = {"default": dict(dj_database_url.parse(DATABASE_URL))}
# A stream returns its connection while it waits, so a pool serves many more streams than it has
# connections. A worker has one more connection, to the broker.
# https://docs.djangoproject.com/en/5.2/ref/databases/#connection-pool
_options = DATABASES["default"].setdefault("OPTIONS", {})
assert isinstance(_options, dict)
_options["pool"] = {"min_size": 0, "max_size": 14, "timeout": 30, "max_idle": 60}
# Without these, a query waits a quarter of an hour for a server whose packets are lost. With them,
# it fails after 20 seconds. Sockets in folders ignore them. `DATABASE_URL` can set others.
# https://www.postgresql.org/docs/18/libpq-connect.html
DATABASE_TIMEOUTS: dict[str, object] = {
    "connect_timeout": 10,
    "tcp_user_timeout": 20_000,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 2,
}
DATABASES["default"]["OPTIONS"] = _options = DATABASE_TIMEOUTS | _options
# With a pooler such as PgBouncer, the next transaction may use another server connection, without
# the prepared statements, cursors and listeners of the current one.
POOLER = not EMBEDDED_POSTGRES if _env.pooler is None else _env.pooler
DATABASES["default"]["DISABLE_SERVER_SIDE_CURSORS"] = POOLER
if not POOLER:
    # Prepare statements at their first use, because each message runs the same few statements. This
    # applies to projects.core.database.server_cursor; Django's own cursors never prepare. Without
    # generic plans, PostgreSQL would plan most of them at each use, because it estimates a lower
    # cost for a plan for the values. This planning takes longer than the statement itself.
    # https://www.postgresql.org/docs/18/sql-prepare.html
    _options["prepare_threshold"] = 0
    _arguments = [str(_options.get("options", "")), "-c plan_cache_mode=force_generic_plan"]
    _options["options"] = " ".join(_arguments).strip()
if _env.replica_url:
    _replica: dict[str, object] = dict(dj_database_url.parse(_env.replica_url))
    _replica_options = _replica.get("OPTIONS", {})
    assert isinstance(_replica_options, dict)
    # A short timeout: if the replica is not available, the primary is used.
    _brief = {"connect_timeout": 3, "pool": {"min_size": 0, "max_size": 20, "timeout": 3}}
    DATABASES["replica"] = _replica | {
        "DISABLE_SERVER_SIDE_CURSORS": POOLER,
        "OPTIONS": _options | _replica_options | _brief,
        "TEST": {"MIRROR": "default"},
    }
DATABASE_ROUTERS = ["projects.core.database.ReplicaRouter"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Short-lived data shared by all processes: counts of sign-in attempts, and codes that were used.
CACHE_URL = _env.cache_url
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": CACHE_URL}
    if CACHE_URL
    else {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "projects_cache",
        # Above this number of rows, some are removed. Expired rows are removed each hour.
        "OPTIONS": {"MAX_ENTRIES": 50_000},
    }
}
