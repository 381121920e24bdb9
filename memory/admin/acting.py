"""What staff may do to memory beside looking at it."""

from django.contrib.auth import get_permission_codename
from django.http import HttpRequest
from django.utils import translation

from projects.admin import LookOnly


def in_english(words: object) -> str:
    """As the admin's own record keeps `words`, in whatever language who acts reads them."""
    with translation.override("en"):
        return str(words)


class Acting(LookOnly):
    """To be looked at by staff, and acted on by those who may change the model."""

    def has_act_permission(self, request: HttpRequest) -> bool:
        return self._has(request, "change")

    def has_forget_permission(self, request: HttpRequest) -> bool:
        """For what cannot be taken back."""
        return self._has(request, "delete")

    def _has(self, request: HttpRequest, what: str) -> bool:
        codename = get_permission_codename(what, self.opts)
        return request.user.has_perm(f"{self.opts.app_label}.{codename}")
