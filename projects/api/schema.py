"""How routes tell of themselves beyond what their views declare."""

from typing import Any

from drf_spectacular.openapi import AutoSchema
from rest_framework.permissions import SAFE_METHODS

from projects.api.versions import IF_MATCH, IF_NONE_MATCH, Tagged


class Schema(AutoSchema):
    """What is tagged can be asked for, and changed, on conditions."""

    def get_override_parameters(self) -> list[Any]:
        declared = super().get_override_parameters()
        if not isinstance(self.view, Tagged):
            return declared
        return [*declared, IF_NONE_MATCH if self.method in SAFE_METHODS else IF_MATCH]
