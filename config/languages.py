"""In which language an answer is: pages in the reader's, what programs read always in English."""

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.middleware.locale import LocaleMiddleware
from django.utils import translation

from config.bodies import PROGRAMS


class LanguageOfReader(LocaleMiddleware):
    """As Django's, for pages: the language that was chosen, else the first that the browser asks
    for. A program's errors do not depend on its headers.
    """

    def process_request(self, request: HttpRequest) -> None:
        if request.path_info.startswith(PROGRAMS):
            translation.activate(settings.LANGUAGE_CODE)
            request.LANGUAGE_CODE = settings.LANGUAGE_CODE
        else:
            super().process_request(request)

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        if request.path_info.startswith(PROGRAMS):
            return response
        return super().process_response(request, response)
