"""What browsers are told of every answer, beside what Django and the content policy tell."""

from django.http import HttpRequest, HttpResponseBase
from django.utils.deprecation import MiddlewareMixin

HEADERS = {
    # No page asks for any of these, so that nothing that got into one can.
    "Permissions-Policy": ", ".join(
        f"{feature}=()"
        for feature in (
            *("accelerometer", "browsing-topics", "camera", "display-capture", "geolocation"),
            *("gyroscope", "hid", "magnetometer", "microphone", "midi", "payment", "serial", "usb"),
        )
    ),
    # No page elsewhere shows or runs what is here.
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Confined(MiddlewareMixin):
    """Adds HEADERS where a view said nothing else."""

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response
