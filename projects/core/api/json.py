"""JSON in the REST API: parser, validation, renderer and content negotiation."""

import re
from collections.abc import Mapping
from io import BytesIO
from itertools import islice
from typing import IO, Any

from rest_framework.exceptions import ParseError, ValidationError
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import JSONParser, get_encoding
from rest_framework.renderers import JSONRenderer
from rest_framework.serializers import Serializer

from projects.core.errors import LimitError

# The maximum number of strings, brackets and commas in a body. 30 MB of empty lists became 1.6 GB,
# and stopped the process for more than the 15 seconds after which it is replaced.
MAX_PARTS = 200_000
_PART = re.compile(r'[\[{,]|"[^"]*"?')


class TooManyValuesError(LimitError):
    """A JSON body has more than MAX_PARTS parts."""

    default_message = "The JSON has too many values."


def require_few_values(body: str) -> None:
    """Check the number of values of a JSON body before it is parsed. Raises `TooManyValuesError`.

    Commas and brackets in strings do not count.
    """
    if sum(map(body.count, "[{,")) <= MAX_PARTS:
        return
    # Without these escapes, each string ends at the next quotation mark.
    plain = body.replace(r"\\", "").replace(r"\"", "")
    if sum(1 for _part in islice(_PART.finditer(plain), MAX_PARTS + 1)) > MAX_PARTS:
        raise TooManyValuesError


class SafeJSONParser(JSONParser):
    """A JSON parser that responds 400 to a body that is nested too deeply, and 413 to one with too
    many values.
    """

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        body = stream.read()
        try:
            require_few_values(body.decode(get_encoding(parser_context or {}), "replace"))
            return super().parse(BytesIO(body), media_type, parser_context)
        except UnicodeError as error:
            raise ParseError("JSON parse error - the charset does not fit.") from error
        except RecursionError as error:
            raise ParseError("JSON parse error - this is nested too deep.") from error


def validated(serializer_class: type[Serializer], data: Any, **context: Any) -> Any:
    """Return `data` as the serializer validates and converts it. Raises ValidationError."""
    serializer = serializer_class(data=data, context=context)
    serializer.is_valid(raise_exception=True)
    return serializer.validated_data


class StrictSerializer(Serializer):
    """A serializer that rejects unknown and read-only fields. For requests that delete text
    permanently: without a condition or `preview` that is misspelled, they would delete more. A
    misspelled limit would not be set, and a token or an invitation would give more rights.
    """

    def to_internal_value(self, data: Any) -> Any:
        writable = {name for name, field in self.fields.items() if not field.read_only}
        unknown = data.keys() - writable if isinstance(data, Mapping) else ()
        if unknown:
            raise ValidationError({name: ["There is no such field."] for name in unknown})
        return super().to_internal_value(data)


class SafeJSONRenderer(JSONRenderer):
    """A JSON renderer that can also return unpaired surrogates, which a request may contain."""

    def render(self, data: Any, *rest: Any, **options: Any) -> bytes:
        try:
            return super().render(data, *rest, **options)
        except UnicodeEncodeError:
            # Escape it, like the request did, because UTF-8 cannot encode unpaired surrogates.
            self.ensure_ascii = True
            return super().render(data, *rest, **options)


class JSONOnlyNegotiation(DefaultContentNegotiation):
    """Content negotiation that always selects JSON, so that no request gets 406.

    The few routes with files and event streams do not use renderers. Django REST framework then
    gives the parameter `?format=` no meaning, so routes can define it.
    """

    def select_renderer(self, request, renderers, format_suffix=None):
        return renderers[0], renderers[0].media_type
