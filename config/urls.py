"""Every address of Strata. CONTRACT: they stay put."""

from allauth.account.decorators import secure_admin_login
from django.contrib import admin
from django.templatetags.static import static
from django.urls import include, path, re_path
from django.views.generic import RedirectView
from django.views.i18n import set_language
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView
from rest_framework.negotiation import DefaultContentNegotiation

from config.errors import failed, no_such_route, refused
from config.health import healthz, readyz
from config.metrics.page import metrics

handler400 = refused
handler500 = failed
# The admin has no door of its own: a second factor, and the limits, hold for it too.
admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]

api = [
    path("", include("projects.api.routes")),
    path("", include("projects.api.invitations")),
    path("tokens/", include("projects.api.tokens")),
    path("", include("chat.api.routes")),
    path("", include("memory.api.routes")),
    # YAML or JSON, as is accepted.
    path(
        "schema/",
        SpectacularAPIView.as_view(content_negotiation_class=DefaultContentNegotiation),
        name="schema",
    ),
    path("docs/", SpectacularSwaggerView.as_view(), name="docs"),
]

urlpatterns = [
    path("admin/", admin.site.urls),
    path("favicon.ico", RedirectView.as_view(url=static("img/favicon.svg"))),
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("metrics", metrics, name="metrics"),
    path("api/v1/", include(api)),
    re_path(r"^api/", no_such_route),
    path("v1/", include("chat.api.completions.routes")),
    re_path(r"^v1/", no_such_route),
    path("language/", set_language, name="set_language"),
    path("accounts/", include("projects.accounts.urls")),
    path("", include("projects.urls")),
    path("", include("chat.urls")),
    path("", include("memory.urls")),
]
