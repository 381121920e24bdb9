"""Django middleware for response headers and for the language of a response."""

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.middleware.locale import LocaleMiddleware
from django.utils import translation
from django.utils.deprecation import MiddlewareMixin

from config.http.error_pages import PROGRAM_PATHS

SECURITY_HEADERS = {
    # No page needs these features, so injected code cannot use them either.
    "Permissions-Policy": ", ".join(
        f"{feature}=()"
        for feature in (
            *("accelerometer", "browsing-topics", "camera", "display-capture", "geolocation"),
            *("gyroscope", "hid", "magnetometer", "microphone", "midi", "payment", "serial", "usb"),
        )
    ),
    # No other site may embed or run these resources.
    "Cross-Origin-Resource-Policy": "same-origin",
}


class SecurityHeadersMiddleware(MiddlewareMixin):
    """Adds the headers that Django and django-csp do not set, unless the view set them."""

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        for name, value in SECURITY_HEADERS.items():
            response.headers.setdefault(name, value)
        return response


class PageLocaleMiddleware(LocaleMiddleware):
    """Chooses the language of pages as Django does. API responses are always in English."""

    def process_request(self, request: HttpRequest) -> None:
        if request.path_info.startswith(PROGRAM_PATHS):
            translation.activate(settings.LANGUAGE_CODE)
            request.LANGUAGE_CODE = settings.LANGUAGE_CODE
        else:
            super().process_request(request)

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        if request.path_info.startswith(PROGRAM_PATHS):
            return response
        return super().process_response(request, response)
