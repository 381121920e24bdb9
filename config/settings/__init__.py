"""Django's settings. Environment variables are declared in `config.settings.env`."""

import os

# numpy reads this at its first import. With more threads, the small products of the built-in
# embedder would take ten times as long, because the threads wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from config.settings.api import *
from config.settings.auth import *
from config.settings.celery import *
from config.settings.database import *
from config.settings.env import BASE_DIR
from config.settings.files import *
from config.settings.models import *
from config.settings.observability import *
from config.settings.security import *

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
    "config.http.middleware.PageCompressionMiddleware",
    # Before the static files, so that their responses also have the policy.
    "csp.middleware.CSPMiddleware",
    "config.http.middleware.SecurityHeadersMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "config.http.middleware.RequestLogMiddleware",
    "config.http.middleware.PublicUrlMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "config.http.middleware.PageLocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "projects.accounts.browser_sessions.BrowserSessionMiddleware",
    "config.http.middleware.PageRateLimitMiddleware",
    "projects.accounts.browser_sessions.PageLoginMiddleware",
    "config.http.error_pages.DomainErrorMiddleware",
    "config.http.middleware.FormAddressMiddleware",
]
if TRACES:
    MIDDLEWARE.insert(
        MIDDLEWARE.index("config.http.middleware.RequestLogMiddleware"),
        "config.observability.tracing.TracingMiddleware",
    )
ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
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
                "chat.context_processors.demo_model",
            ],
            "builtins": ["projects.templatetags.translated"],
        },
    }
]
LANGUAGE_CODE = "en"
# The name of each language in that language.
LANGUAGES = [("en", "English"), ("de", "Deutsch")]
LANGUAGE_COOKIE_AGE = 365 * 24 * 3600
LANGUAGE_COOKIE_SAMESITE = "Lax"
LOCALE_PATHS = [BASE_DIR / "config/locale"]
FORMAT_MODULE_PATH = "config.formats"
TIME_ZONE = "UTC"
