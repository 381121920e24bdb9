"""Authentication of API requests by token, and the check of the token's scopes."""

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
        user, auth_token = super().authenticate_credentials(token)
        auth_token.note_use()
        return user, auth_token

    def _cleanup_token(self, auth_token) -> bool:
        # The inherited method loads every token of the user at each request. Here an expired token
        # is refused, and is listed until its owner deletes it.
        return auth_token.is_expired


class TokenScopePermission(BasePermission):
    """Requires the scope `read` for reading and `write` for changes; views may require others."""

    message = "The token's scopes do not allow this."

    def has_permission(self, request, view) -> bool:
        if request.auth is None:
            return True
        if request.method in SAFE_METHODS:
            scope = getattr(view, "reading_scope", "read")
        else:
            scope = getattr(view, "scope", "write")
        return scope in request.auth.scopes
