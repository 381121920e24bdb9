"""Token → the user, and the one project it opens."""

from django.contrib.auth.models import AbstractBaseUser
from knox.auth import TokenAuthentication as KnoxAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import SAFE_METHODS, BasePermission

from projects.models import Token


class TokenAuthentication(KnoxAuthentication):
    """`Authorization: Bearer TOKEN`; `request.auth` is the Token."""

    def authenticate_credentials(self, token: bytes) -> tuple[AbstractBaseUser, Token]:
        if not token.isascii():
            raise AuthenticationFailed("Invalid token.")
        user, found = super().authenticate_credentials(token)
        found.note_use()
        return user, found

    def _cleanup_token(self, auth_token) -> bool:
        # The inherited clean-up loads every token of the user at each request. An expired one is
        # refused here and stays listed until its owner deletes it.
        return auth_token.is_expired


class TokenAllows(BasePermission):
    """Reading takes the scope `read`, changing `write`; views may ask for others."""

    message = "The token's scopes do not allow this."

    def has_permission(self, request, view) -> bool:
        if request.auth is None:
            return True
        if request.method in SAFE_METHODS:
            scope = getattr(view, "reading_scope", "read")
        else:
            scope = getattr(view, "scope", "write")
        return scope in request.auth.scopes
