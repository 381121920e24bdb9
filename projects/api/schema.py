"""What the schema tells of every route that the routes do not tell themselves."""

from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import Direction
from rest_framework.permissions import SAFE_METHODS

from projects.api import idempotency
from projects.api.errors import response
from projects.api.throttles import TOO_OFTEN
from projects.api.versions import IF_MATCH, IF_NONE_MATCH, Tagged


class Schema(AutoSchema):
    """Adds headers and answers that follow from how a route is made."""

    @property
    def is_idempotent(self) -> bool:
        handler = getattr(self.view, self.method.lower(), None)
        return getattr(handler, "is_idempotent", False)

    def get_override_parameters(self) -> list[Any]:
        own = super().get_override_parameters()
        if self.is_idempotent:
            own = [*own, idempotency.KEY]
        # What is tagged can be asked for, and changed, on conditions.
        if isinstance(self.view, Tagged):
            own = [*own, IF_NONE_MATCH if self.method in SAFE_METHODS else IF_MATCH]
        return own

    def _get_response_bodies(self, direction: Direction = "response") -> dict[str, Any]:
        answers: dict[str, Any] = super()._get_response_bodies(direction)
        if self.is_idempotent:
            for code, meaning in idempotency.REFUSALS.items():
                answers.setdefault(code, response(int(code), meaning))
        if self.view.throttle_classes and self.get_auth():
            answers.setdefault("429", response(429, TOO_OFTEN))
        return answers
