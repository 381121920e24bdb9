"""How an answer is written."""

from typing import Any

from rest_framework.renderers import JSONRenderer


class Json(JSONRenderer):
    """As REST framework's, and can tell half a surrogate pair back to who sent it."""

    def render(self, data: Any, *rest: Any, **options: Any) -> bytes:
        try:
            return super().render(data, *rest, **options)
        except UnicodeEncodeError:
            # Escaped, as it came: UTF-8 has no such character.
            self.ensure_ascii = True
            return super().render(data, *rest, **options)
