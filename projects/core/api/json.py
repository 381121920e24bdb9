"""The JSON of the REST API: parser, renderer and content negotiation."""

from collections.abc import Mapping
from typing import IO, Any

from rest_framework.exceptions import ParseError
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import JSONParser
from rest_framework.renderers import JSONRenderer


class SafeJSONParser(JSONParser):
    """A JSON parser that answers 400 to a body which is nested too deep to be read."""

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        try:
            return super().parse(stream, media_type, parser_context)
        except RecursionError as error:
            raise ParseError("JSON parse error - this is nested too deep.") from error


class SafeJSONRenderer(JSONRenderer):
    """A JSON renderer that can return half a surrogate pair to its sender."""

    def render(self, data: Any, *rest: Any, **options: Any) -> bytes:
        try:
            return super().render(data, *rest, **options)
        except UnicodeEncodeError:
            # Escaped, as in the request: UTF-8 has no such character.
            self.ensure_ascii = True
            return super().render(data, *rest, **options)


class JSONOnlyNegotiation(DefaultContentNegotiation):
    """Content negotiation that always selects JSON, so that no request gets 406.

    The few routes with files and event streams do not use renderers. This also leaves `?format=`
    free for the routes.
    """

    def select_renderer(self, request, renderers, format_suffix=None):
        return renderers[0], renderers[0].media_type
