"""The root URL configuration. URLs are a public interface and must not change."""

from allauth.account.decorators import secure_admin_login
from django.contrib import admin
from django.contrib.auth.decorators import login_not_required as public
from django.templatetags.static import static
from django.urls import include, path, re_path
from django.views.decorators.cache import never_cache
from django.views.generic import RedirectView
from django.views.i18n import set_language
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView
from rest_framework.negotiation import DefaultContentNegotiation

from config.health.views import healthz, readyz
from config.http.error_pages import bad_request, route_not_found, server_error
from config.http.static_files import other_release
from config.observability.metrics.views import metrics

handler400 = bad_request
handler500 = server_error
# Replace the admin's login by allauth's, which has second factors and rate limits.
admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]
# And its page for a new password, which has no rate limit and revokes no API tokens.
password_page = RedirectView.as_view(pattern_name="account_change_password")
admin.site.password_change = password_page  # type: ignore[method-assign, assignment]
# Without a session, the admin redirects to its start page. A redirect to the sign-in page would
# return to this URL, which accepts only POST.
admin.site.logout = public(never_cache(admin.site.logout))  # type: ignore[method-assign]

api = [
    path("", include("projects.api.urls")),
    path("", include("chat.api.routes")),
    path("", include("memory.api.urls")),
    # Responds in YAML or JSON, depending on the Accept header.
    path(
        "schema/",
        SpectacularAPIView.as_view(content_negotiation_class=DefaultContentNegotiation),
        name="schema",
    ),
    path("docs/", SpectacularSwaggerView.as_view(), name="docs"),
]

urlpatterns = [
    path("admin/", admin.site.urls),
    path("favicon.ico", public(RedirectView.as_view(url=static("img/favicon.svg")))),
    path("static/<path:path>", public(other_release), name="static-file"),
    path("healthz", public(healthz), name="healthz"),
    path("readyz", public(readyz), name="readyz"),
    path("metrics", public(metrics), name="metrics"),
    path("api/v1/", include(api)),
    re_path(r"^api/", public(route_not_found)),
    path("v1/", include("chat.openai_api.urls")),
    re_path(r"^v1/", public(route_not_found)),
    path("language/", public(set_language), name="set_language"),
    path("accounts/", include("projects.accounts.urls")),
    path("", include("projects.urls")),
    path("", include("chat.urls")),
    path("", include("memory.urls")),
]
