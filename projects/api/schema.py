"""What the schema tells of every route that the routes do not tell themselves."""

from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import Direction

from projects.api import idempotency
from projects.api.throttles import TOO_OFTEN

DETAIL = {
    "type": "object",
    "properties": {"detail": {"type": "string"}},
    "required": ["detail"],
}
RETRY_AFTER = {
    "Retry-After": {"schema": {"type": "integer", "minimum": 1}, "description": "Seconds."}
}


class Schema(AutoSchema):
    """Adds headers and answers that follow from how a route is made."""

    @property
    def is_idempotent(self) -> bool:
        handler = getattr(self.view, self.method.lower(), None)
        return getattr(handler, "is_idempotent", False)

    def get_override_parameters(self) -> list[Any]:
        own = super().get_override_parameters()
        return [*own, idempotency.KEY] if self.is_idempotent else own

    def _get_response_bodies(self, direction: Direction = "response") -> dict[str, Any]:
        answers: dict[str, Any] = super()._get_response_bodies(direction)
        if self.is_idempotent:
            for code, meaning in idempotency.REFUSALS.items():
                answers.setdefault(code, told_in_detail(meaning))
        if self.view.throttle_classes and self.get_auth():
            answers.setdefault("429", told_in_detail(TOO_OFTEN) | {"headers": RETRY_AFTER})
        return answers


def told_in_detail(meaning: str) -> dict[str, Any]:
    return {"description": meaning, "content": {"application/json": {"schema": DETAIL}}}
