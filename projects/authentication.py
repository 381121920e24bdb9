"""Token → the user, and the one project it opens."""

from django.utils import timezone
from knox.auth import TokenAuthentication as KnoxAuthentication
from rest_framework.permissions import SAFE_METHODS, BasePermission


class TokenAuthentication(KnoxAuthentication):
    """`Authorization: Bearer TOKEN`; `request.auth` is the Token."""

    def _cleanup_token(self, auth_token) -> bool:
        # The inherited clean-up loads every token of the user at each request. An expired one is
        # refused here and stays listed until its owner deletes it.
        return auth_token.expiry is not None and auth_token.expiry < timezone.now()


class TokenAllows(BasePermission):
    """Reading takes the scope `read`, changing `write`; views may ask for `admin`."""

    message = "The token's scopes do not allow this."

    def has_permission(self, request, view) -> bool:
        if request.auth is None:
            return True
        scope = "read" if request.method in SAFE_METHODS else getattr(view, "scope", "write")
        return scope in request.auth.scopes
