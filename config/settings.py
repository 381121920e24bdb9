"""The only place that reads the environment. CONTRACT: the names of the variables stay put."""

from ipaddress import IPv4Network, IPv6Network
from logging import DEBUG as LOG_DEBUG
from math import inf
from os import environ
from pathlib import Path
from urllib.parse import urlsplit

import dj_database_url
from csp.constants import NONCE, NONE, SELF
from django.http.request import split_domain_port
from dotenv import load_dotenv

from config import embedded, logs, secrets, storage
from config.environment import (
    database_url,
    flag,
    integer,
    is_there,
    keep_out_of_logs,
    model_name,
    networks,
    one_of,
    origin,
    rate,
    read,
    read_secret,
    text,
    url,
    word,
    words,
)
from config.mail import mail_server

BASE_DIR = Path(__file__).resolve().parent.parent
load_dotenv(BASE_DIR / ".env")

DATA_DIR = read("STRATA_DATA_DIR", BASE_DIR / "var", Path, "the path of a folder").resolve()
DATA_DIR.mkdir(parents=True, exist_ok=True)
PORT = read("PORT", 8000, integer(1, 65535), "a port number from 1 to 65535")
DEBUG = read("STRATA_DEBUG", False, flag, "on or off")
SECRET_KEY = read_secret("STRATA_SECRET_KEY", "", text, "a long random text") or secrets.made(
    DATA_DIR / "secret_key"
)
keep_out_of_logs(SECRET_KEY)
# Where people reach it. With https:// nothing of it goes over the wire without TLS (see SECURE_…).
URL = read("STRATA_URL", "", origin, "an address without a path, https://strata.example.org")
HTTPS = URL.startswith("https://")
_authority = urlsplit(URL).netloc
ALLOWED_HOSTS = [
    *read("STRATA_ALLOWED_HOSTS", list[str](), words, "host names separated by commas"),
    *("localhost", "127.0.0.1", "[::1]"),
]
CSRF_TRUSTED_ORIGINS = [
    f"https://{'*' if host.startswith('.') else ''}{host}"
    for host in ALLOWED_HOSTS
    if "*" not in host
]
if URL:
    ALLOWED_HOSTS.insert(0, split_domain_port(_authority)[0])
    CSRF_TRUSTED_ORIGINS.insert(0, URL)
ADMIN_PASSWORD = read_secret(
    "STRATA_ADMIN_PASSWORD", "", text, "the first administrator's password"
)

# Requests to addresses that people name go to the public internet alone, and to these.
OUTBOUND_ALLOW: list[IPv4Network | IPv6Network] = read(
    "STRATA_OUTBOUND_ALLOW",
    [],
    networks,
    "networks such as 10.1.0.0/16 or addresses, separated by commas",
)

# What a model may take.

# Seconds. A model that sends nothing for so long is taken to hang.
MODEL_FIRST_TOKEN_TIMEOUT = read(
    "STRATA_FIRST_TOKEN_TIMEOUT", 60, integer(1, 3600), "a number of seconds from 1 to 3600"
)
MODEL_TIMEOUT = read(
    "STRATA_MODEL_TIMEOUT", 300, integer(1, 3600), "a number of seconds from 1 to 3600"
)

# Database and broker: the embedded PostgreSQL unless told otherwise.

DATABASE_URL = read_secret(
    "DATABASE_URL",
    "",
    database_url,
    "postgresql://USER:PASSWORD@HOST/NAME, in a password %40 for @, %2F for /, %25 for % and so on",
)
EMBEDDED_POSTGRES = not DATABASE_URL
DATABASES: dict[str, dict[str, object]]
if EMBEDDED_POSTGRES:
    _socket_directory = embedded.socket_directory(DATA_DIR)
    DATABASES = {
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": "postgres",
            "USER": "postgres",
            "HOST": str(_socket_directory),
        }
    }
    _default_broker = embedded.broker_url(_socket_directory)
else:
    DATABASES = {"default": dict(dj_database_url.parse(DATABASE_URL))}
    _default_broker = "pgmq" + DATABASE_URL[DATABASE_URL.index("://") :]
# A stream gives its connection back while it waits, so a pool serves many more streams than it
# has connections. With six of the broker a process has 20 of them at most.
# https://docs.djangoproject.com/en/5.2/ref/databases/#connection-pool
_options = DATABASES["default"].setdefault("OPTIONS", {})
assert isinstance(_options, dict)
_options["pool"] = {"min_size": 0, "max_size": 14, "timeout": 30}
# A pooler, such as PgBouncer, may give the next transaction another connection to the server, which
# knows nothing of what this one prepared, opened or listens to.
POOLER = read("STRATA_POOLER", not EMBEDDED_POSTGRES, flag, "on or off")
DATABASES["default"]["DISABLE_SERVER_SIDE_CURSORS"] = POOLER
if not POOLER:
    # What chat.compiled asks is asked at each message.
    _options["prepare_threshold"] = 0
# A copy that PostgreSQL keeps, for searches and exports: see chat/replica.py.
REPLICA_URL = read_secret(
    "STRATA_REPLICA_URL", "", database_url, "postgresql://USER:PASSWORD@HOST/NAME"
)
if REPLICA_URL:
    _replica: dict[str, object] = dict(dj_database_url.parse(REPLICA_URL))
    _own = _replica.get("OPTIONS", {})
    assert isinstance(_own, dict)
    # One that is away is not waited for: the primary answers.
    _brief = {"connect_timeout": 3, "pool": {"min_size": 0, "max_size": 20, "timeout": 3}}
    DATABASES["replica"] = _replica | {
        "DISABLE_SERVER_SIDE_CURSORS": POOLER,
        "OPTIONS": _options | _own | _brief,
        "TEST": {"MIRROR": "default"},
    }
DATABASE_ROUTERS = ["chat.replica.Router"]

CELERY_BROKER_URL = read_secret(
    "CELERY_BROKER_URL",
    _default_broker,
    url("pgmq", "redis", "rediss", "amqp", "amqps"),
    "a pgmq://, redis:// or amqp:// address",
)
# As it is unless somebody names another.
BROKER_IN_DATABASE = _default_broker == CELERY_BROKER_URL
# Seconds. The soft limit leaves room for the longest single model call before the hard one.
CELERY_TASK_SOFT_TIME_LIMIT = 840
CELERY_TASK_TIME_LIMIT = CELERY_TASK_SOFT_TIME_LIMIT + MODEL_TIMEOUT
# Just above the hard limit: a task whose worker was killed comes back, one that runs does not.
CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, object] = {
    "visibility_timeout": CELERY_TASK_TIME_LIMIT + 60
}
if CELERY_BROKER_URL.startswith("redis"):
    # A connection that died without a word is noticed, not waited for.
    CELERY_BROKER_TRANSPORT_OPTIONS |= {"socket_keepalive": True, "health_check_interval": 30}
if CELERY_BROKER_URL.startswith("pgmq"):
    # A notification wakes the worker at once; without one it looks five times a second.
    CELERY_BROKER_TRANSPORT_OPTIONS |= {
        "init_extension": False,
        "pool_size": 2,
        "use_notify": not POOLER,
        "notify_throttle_interval_ms": 0,
        "wait_time_seconds": 0,
        "polling_interval": 0.2,
    }
    # Of the broker's connections a process keeps so many, each with such a pool and a listener.
    CELERY_BROKER_POOL_LIMIT = 2
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TASK_IGNORE_RESULT = True
# Data, and never objects: who can write to the broker cannot have a worker run anything.
CELERY_TASK_SERIALIZER = CELERY_RESULT_SERIALIZER = CELERY_EVENT_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = CELERY_RESULT_ACCEPT_CONTENT = ["json"]
# `chat`: what a reader waits for, and what takes a moment. `memory`: what may ask a model for
# minutes. `index`: what recall searches. `io`: files on their way in and out, and other servers.
QUEUES = ("chat", "memory", "index", "io")
CELERY_TASK_DEFAULT_QUEUE = "memory"
# The first that fits. A message is run whichever queue it comes by, as from another version.
CELERY_TASK_ROUTES = {
    "chat.tasks.*import*": "io",
    "chat.*": "chat",
    "memory.tasks.run_indexing": "index",
    "memory.tasks.*deliver*": "io",
    "memory.*": "memory",
    "config.tasks.heartbeat": "chat",
    "config.*": "io",
    "projects.*": "chat",
}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TIMEZONE = "UTC"
# Beat writes the last run of each task at once, so that the admin and /readyz tell the truth.
CELERY_BEAT_SYNC_EVERY = 1
CELERY_BEAT_SCHEDULER = "config.beat:LeasedScheduler"

# Models that talk and models that summarise.

CHAT_MODEL = read(
    "STRATA_CHAT_MODEL",
    "demo",
    model_name("demo"),
    "`demo` or a model name such as openai-chat:gpt-5-mini",
)
SYSTEM_MODEL = read(
    "STRATA_SYSTEM_MODEL",
    "extractive" if CHAT_MODEL == "demo" else CHAT_MODEL,
    model_name("demo", "extractive"),
    "`extractive`, `demo` or a model name such as openai-chat:gpt-5-mini",
)
# Whose keys are set. pydantic-ai reads them itself; here only whether they are there counts.
MODEL_KEYS = [
    provider
    for provider, variable in {
        "openai-chat": "OPENAI_API_KEY",
        "anthropic": "ANTHROPIC_API_KEY",
        "google": "GOOGLE_API_KEY",
        "mistral": "MISTRAL_API_KEY",
        "groq": "GROQ_API_KEY",
        "openrouter": "OPENROUTER_API_KEY",
    }.items()
    if read_secret(variable, "", text, "a key")
]
# Those of other providers, which pydantic-ai finds by itself.
for _name in list(environ):
    if _name.endswith(("_API_KEY", "_API_KEY_FILE")):
        read_secret(_name.removesuffix("_FILE"), "", text, "a key")
OLLAMA_URL = read(
    "OLLAMA_BASE_URL", "http://127.0.0.1:11434/v1", url("http", "https"), "the address of an Ollama"
)
# Without it pydantic-ai knows no `ollama:` models, though one on this machine needs no settings.
environ.setdefault("OLLAMA_BASE_URL", OLLAMA_URL)
DEMO_MODEL_URL = read("STRATA_DEMO_URL", "", url("http"), "the demo model's http:// address")
CONTEXT_TOKENS = read(
    "STRATA_CONTEXT_TOKENS", 32_000, integer(2_000, 2_000_000), "a number of tokens from 2000"
)
# The demo model reads 8,192 tokens of its own kind, which are shorter than those we count in; and
# on a laptop a longer prompt would keep its reader waiting.
DEMO_CONTEXT_TOKENS = 4_096
CLOSE_AFTER_DAYS = read(
    "STRATA_CLOSE_AFTER_DAYS", 30, integer(1, 36_500), "a number of days from 1"
)

# How what was said is found again.

EMBEDDER = read(
    "STRATA_EMBEDDER",
    "static",
    model_name("static", "hash"),
    "`static` or an embedding model's name such as openai:text-embedding-3-small",
)
# 0: the embedder's own, which for a model elsewhere is not known.
EMBEDDING_DIMENSIONS = read(
    "STRATA_EMBEDDING_DIMENSIONS",
    0,
    integer(1, 4_000),
    "the number of dimensions of its vectors, from 1 to 4000",
)
if ":" in EMBEDDER and not EMBEDDING_DIMENSIONS:
    raise SystemExit(
        "strata: STRATA_EMBEDDING_DIMENSIONS takes the number of dimensions of the vectors of "
        "STRATA_EMBEDDER, from 1 to 4000"
    )
# PostgreSQL's text search configuration, which cuts texts into words and words to their stems.
SEARCH_LANGUAGE = read(
    "STRATA_SEARCH_LANGUAGE",
    "english",
    word,
    "a text search configuration of PostgreSQL such as english, german or simple",
)
# Consecutive messages of one speaker are one excerpt.
MERGE_TURNS = read("STRATA_MERGE_TURNS", True, flag, "on or off")
# A message with one of these, in any inflection, can be recalled however short it is.
TASK_VERBS = (
    "approve assign book build buy call cancel change check close decide deploy do draft email "
    "finish fix invite merge move order pay postpone print release remind remove reply review "
    "schedule send ship sign start stop submit test update write"
).split()

# A prompt is these sections in this order: from what changes least to what changes most.
CHAT_PROMPT_SECTIONS = [
    "chat.sections.persona",
    "memory.sections.blocks",
    "memory.facts.section.facts",
    "memory.sections.bank",
    "chat.sections.program",
    "chat.sections.history",
    "memory.sections.gists",
    "memory.sections.details",
    "chat.sections.message",
]
# Each takes a queryset of sessions and returns it with one more number, which lists tell.
CHAT_SESSION_COUNTS = ["memory.counts.unsummarised"]
CHAT_IMPORTERS = {
    "jsonl": "chat.importers.jsonl",
    "locomo": "chat.importers.locomo",
    "chatgpt": "chat.importers.chatgpt",
    "claude": "chat.importers.claude",
    "openwebui": "chat.importers.openwebui",
    "strata": "chat.importers.strata",
}
# Modules that take a zip file in as a whole.
CHAT_ARCHIVES = ["memory.portability.importing"]
CHAT_EXPORTERS = {
    "markdown": "chat.exporters.markdown",
    "json": "chat.exporters.json",
}
MAX_UPLOAD_MB = read(
    "STRATA_MAX_UPLOAD_MB", 512, integer(1, 100_000), "a number of megabytes from 1 to 100000"
)

# How often each token may ask: how many times in how many seconds, None for as often as it likes.
# All tokens of a user together may three times as often.
_RATE = "a rate such as 60/minute (or second, hour, day), or off"
RATES = {
    "reads": read("STRATA_RATE_READS", rate("3000/minute"), rate, _RATE),
    "writes": read("STRATA_RATE_WRITES", rate("1200/minute"), rate, _RATE),
    # What has a model answer counts as a write as well.
    "replies": read("STRATA_RATE_REPLIES", rate("120/minute"), rate, _RATE),
}

# Who signs in, and how.

# Whether everybody may make an account; else who has an invitation to a project may.
SIGNUP_OPEN = read("STRATA_SIGNUP", "closed", one_of("open", "closed"), "open or closed") == "open"
# How many proxies stand before this server, each of which adds to X-Forwarded-For.
ALLAUTH_TRUSTED_PROXY_COUNT = read(
    "STRATA_TRUSTED_PROXIES", 0, integer(0, 10), "how many proxies stand before it, from 0 to 10"
)
EMAIL = read_secret(
    "STRATA_EMAIL_URL",
    None,
    mail_server,
    "smtp+tls://USER:PASSWORD@HOST:587, smtps://…:465, smtp://HOST:25 or console://",
)
# Whether mail goes anywhere. Where it does not, pages offer nothing that needs it.
SENDS_MAIL = EMAIL is not None
if EMAIL is not None:
    EMAIL_BACKEND = EMAIL.backend
    EMAIL_HOST, EMAIL_PORT = EMAIL.host, EMAIL.port
    EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = EMAIL.user, EMAIL.password
    EMAIL_USE_TLS, EMAIL_USE_SSL = EMAIL.starttls, EMAIL.tls
EMAIL_TIMEOUT = 20  # seconds
DEFAULT_FROM_EMAIL = read(
    "STRATA_EMAIL_FROM", "Strata <strata@localhost>", text, "the address that mail comes from"
)

# A provider of OpenID Connect.
OIDC_ISSUER = read(
    "STRATA_OIDC_ISSUER", "", url("https", "http"), "the https:// address of an issuer"
).rstrip("/")
OIDC_NAME = read("STRATA_OIDC_NAME", "single sign-on", text, "what people call it")
# Whether it lets in people who have no account here yet, without an invitation.
OIDC_SIGNUP = read("STRATA_OIDC_SIGNUP", False, flag, "on or off")
OIDC_CLIENT = {
    "client_id": read("STRATA_OIDC_CLIENT_ID", "", text, "the client's id"),
    "secret": read_secret("STRATA_OIDC_CLIENT_SECRET", "", text, "the client's secret"),
}
if OIDC_ISSUER and not OIDC_CLIENT["client_id"]:
    raise SystemExit("strata: STRATA_OIDC_CLIENT_ID takes the client's id at STRATA_OIDC_ISSUER")

# What processes share for a while: how often somebody tried to sign in, and codes that were used.
CACHE_URL = read_secret(
    "STRATA_CACHE_URL", "", url("redis", "rediss"), "a redis:// address such as redis://HOST/1"
)
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": CACHE_URL,
    }
    if CACHE_URL
    else {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "projects_cache",
        # Above it some are thrown away, used up or not; those that are over go each hour.
        "OPTIONS": {"MAX_ENTRIES": 50_000},
    }
}

# Django

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "rest_framework",
    "knox",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_htmx",
    "django_celery_beat",
    "csp",
    "django_structlog",
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "allauth.mfa",
    "allauth.usersessions",
    "config",
    "projects",
    "chat",
    "memory",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    # Before the static files, which hold pages of other people's making.
    "csp.middleware.CSPMiddleware",
    "config.headers.Confined",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "config.logs.requests.Logged",
    "config.metrics.requests.Measured",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "config.languages.LanguageOfReader",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "projects.accounts.visits.NotesVisits",
]
ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
WSGI_APPLICATION = "config.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "csp.context_processors.nonce",
                "chat.context.demo_model",
            ],
            "builtins": ["projects.templatetags.translated"],
        },
    }
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "projects"
LOGOUT_REDIRECT_URL = "login"
DEFAULT_EXCEPTION_REPORTER_FILTER = "config.errors.HidesAddresses"
ACCOUNT_ADAPTER = "projects.accounts.adapter.Accounts"
ACCOUNT_FORMS = {
    "login": "projects.accounts.forms.SignIn",
    "signup": "projects.accounts.forms.SignUp",
    "add_email": "projects.accounts.forms.AddAddress",
    "change_password": "projects.accounts.forms.ChangePassword",
    "set_password": "projects.accounts.forms.SetPassword",
    "reset_password": "projects.accounts.forms.ForgottenPassword",
    "reset_password_from_key": "projects.accounts.forms.NewPassword",
    "reauthenticate": "projects.accounts.forms.SamePassword",
}
ACCOUNT_LOGIN_METHODS = {"username", "email"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "email", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "optional"
ACCOUNT_EMAIL_SUBJECT_PREFIX = "[Strata] "
ACCOUNT_EMAIL_NOTIFICATIONS = SENDS_MAIL
# Who has no account is told nothing by mail that a page does not tell.
ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS = False
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_REAUTHENTICATION_REQUIRED = True
# Beside those that allauth has: how often who comes from an address looks at invitations.
ACCOUNT_RATE_LIMITS = {"invitation": "60/m/ip", "oidc": "30/m/ip"}
MFA_ADAPTER = "projects.accounts.factors.Factors"
MFA_FORMS = {
    "authenticate": "projects.accounts.forms.Code",
    "reauthenticate": "projects.accounts.forms.CodeAgain",
    "activate_totp": "projects.accounts.forms.ActivateApp",
    "add_webauthn": "projects.accounts.forms.AddPasskey",
    "edit_webauthn": "projects.accounts.forms.RenamePasskey",
}
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
# Not everybody has a mail address, or a server that sends any.
MFA_ALLOW_UNVERIFIED_EMAIL = True
MFA_TOTP_ISSUER = "Strata"
# A clock may be half a minute off.
MFA_TOTP_TOLERANCE = 1
SOCIALACCOUNT_ADAPTER = "projects.accounts.oidc.Provided"
SOCIALACCOUNT_FORMS = {"signup": "projects.accounts.forms.ProvidedSignUp"}
# To those addresses alone that both the provider and this server have verified.
SOCIALACCOUNT_EMAIL_AUTHENTICATION = True
SOCIALACCOUNT_EMAIL_AUTHENTICATION_AUTO_CONNECT = True
SOCIALACCOUNT_REQUESTS_TIMEOUT = 10  # seconds
SOCIALACCOUNT_PROVIDERS: dict[str, dict[str, object]] = {}
if OIDC_ISSUER:
    SOCIALACCOUNT_PROVIDERS["openid_connect"] = {
        "OAUTH_PKCE_ENABLED": True,
        "APPS": [
            {
                "provider_id": "oidc",
                "name": OIDC_NAME,
                **OIDC_CLIENT,
                "settings": {"server_url": OIDC_ISSUER},
            }
        ],
    }
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LANGUAGE_CODE = "en"
# Each by its own name, for who reads no other.
LANGUAGES = [("en", "English"), ("de", "Deutsch")]
LANGUAGE_COOKIE_AGE = 365 * 24 * 3600
LANGUAGE_COOKIE_SAMESITE = "Lax"
LOCALE_PATHS = [BASE_DIR / "config/locale"]
FORMAT_MODULE_PATH = "config.formats"
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"
# Attachments and files on their way in. They have no address: a view that may serves them.
MEDIA_ROOT = DATA_DIR / "files"
# Which the bucket's library reads itself.
read_secret("AWS_SECRET_ACCESS_KEY", "", text, "a key")
S3_BUCKET = read("STRATA_S3_BUCKET", "", text, "the name of a bucket")
S3_ENDPOINT = read("STRATA_S3_ENDPOINT", "", url("http", "https"), "an http:// or https:// address")
S3_REGION = read("STRATA_S3_REGION", "", text, "the name of a region such as eu-central-1")
for _name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
    # boto3 reads them itself; here only where they are counts.
    read_secret(_name, "", text, "a key")
if S3_ENDPOINT and not S3_BUCKET:
    raise SystemExit("strata: STRATA_S3_BUCKET takes the name of a bucket of STRATA_S3_ENDPOINT")
STORAGES: dict[str, dict[str, object]] = {
    "default": storage.in_bucket(S3_BUCKET, S3_ENDPOINT, S3_REGION)
    if S3_BUCKET
    else {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
# What was forgotten, for backups that are older than that.
TOMBSTONES = DATA_DIR / "tombstones.jsonl"
# Bytes. A program may send an image of 20 MB inside its JSON, in base64.
DATA_UPLOAD_MAX_MEMORY_SIZE = 30_000_000
# Bytes of a form with its files: one to import, or ten images.
MAX_FORM_BYTES = max(MAX_UPLOAD_MB * 2**20, 200_000_000) + 2**20
FILE_UPLOAD_PERMISSIONS = 0o600
FILE_UPLOAD_DIRECTORY_PERMISSIONS = 0o700
STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
# Served straight from the source folders: no collecting step stands between a clone and a page.
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG

# Under `no-referrer` browsers send “Origin: null” with forms, which the CSRF check refuses.
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = LANGUAGE_COOKIE_SECURE = HTTPS
if HTTPS:
    # Browsers take such names from this host alone, and over TLS: no neighbour in the domain can
    # put a session of its own in place. https://httpwg.org/http-extensions/draft-ietf-httpbis-rfc6265bis.html#name-the-__host-prefix
    SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "__Host-sessionid", "__Host-csrftoken"
    LANGUAGE_COOKIE_NAME = "__Host-language"
    SECURE_SSL_REDIRECT, SECURE_SSL_HOST = True, _authority
    # Who looks after the process asks from beside it, behind no proxy.
    SECURE_REDIRECT_EXEMPT = ["^healthz$", "^readyz$", "^metrics$"]
    SECURE_HSTS_SECONDS = 365 * 24 * 3600
if ALLAUTH_TRUSTED_PROXY_COUNT:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
# HSTS for the names below this one, and browsers' lists of such domains, are for whoever has the
# domain to decide: other things may live there.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "img-src": [SELF, "data:"],
        "style-src": [SELF, NONCE],
        "script-src": [SELF, NONCE],
        "object-src": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["projects.authentication.TokenAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": [
        "rest_framework.permissions.IsAuthenticated",
        "projects.authentication.TokenAllows",
    ],
    "DEFAULT_THROTTLE_CLASSES": ["projects.api.throttles.Rate"],
    "DEFAULT_RENDERER_CLASSES": ["projects.api.renderers.Json"],
    "DEFAULT_PARSER_CLASSES": ["projects.api.parsers.Json"],
    "EXCEPTION_HANDLER": "projects.api.problems.handler",
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "projects.api.negotiation.WhatThereIs",
    "DEFAULT_PAGINATION_CLASS": "projects.api.pagination.NewestFirst",
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_SCHEMA_CLASS": "projects.api.schema.Schema",
    "PAGE_SIZE": 50,
}
REST_KNOX = {
    "TOKEN_TTL": None,
    "TOKEN_MODEL": "projects.Token",
    "AUTH_HEADER_PREFIX": "Bearer",
    "TOKEN_PREFIX": "strata_",
}
KNOX_TOKEN_MODEL = "projects.Token"
# Its migrations make a table for a token model that ours stands in for.
MIGRATION_MODULES = {"knox": None}
SPECTACULAR_SETTINGS = {
    "TITLE": "Strata",
    "DESCRIPTION": "Projects that remember.",
    "VERSION": "0.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "projects.api.errors.describe_errors",
    ],
    "ENUM_NAME_OVERRIDES": {
        "MessageRole": "chat.models.Role",
        "MemberRole": "projects.models.Role",
        "InvitationState": "projects.models.Standing",
        "EntryState": "memory.models.State",
        "FactState": "memory.models.Standing",
    },
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}

# How one sees what it does: docs/operations.md.

METRICS_TOKEN = read_secret("STRATA_METRICS_TOKEN", "", text, "a long random text") or secrets.made(
    DATA_DIR / "metrics_token"
)
keep_out_of_logs(METRICS_TOKEN)
# Where processes that serve or work put what they count, so that one page tells of all of them.
# prometheus_client reads the variable itself; without it each process counts for itself.
METRICS_DIR = read("PROMETHEUS_MULTIPROC_DIR", None, Path, "the path of a folder")
PROMETHEUS_LATENCY_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, inf)
TRACES = read("OTEL_EXPORTER_OTLP_ENDPOINT", "", url("http", "https"), "the address of a collector")
if TRACES:
    if not is_there("opentelemetry.exporter.otlp.proto.http"):
        raise SystemExit(
            "strata: OTEL_EXPORTER_OTLP_ENDPOINT is set, and what sends traces is not installed: "
            "pip install -r deploy/requirements-tracing.txt"
        )
    # The packages read their variables themselves.
    environ.setdefault("OTEL_SERVICE_NAME", "strata")
    read_secret("OTEL_EXPORTER_OTLP_HEADERS", "", text, "NAME=VALUE")
    MIDDLEWARE.insert(MIDDLEWARE.index("config.logs.requests.Logged"), "config.tracing.Traced")
# Each process writes to its standard error.
_LEVELS = ", ".join(logs.LEVELS)
LOGGING = logs.configuration(
    read("STRATA_LOG_LEVEL", "info", one_of(*_LEVELS.lower().split(", ")), f"one of {_LEVELS}"),
    read("STRATA_LOG_FORMAT", "text", one_of("text", "json"), "text or json") == "json",
)
DJANGO_STRUCTLOG_CELERY_DEFAULT_LOG_LEVEL = LOG_DEBUG
