"""Authentication of API requests by token, and the check of the token's scopes."""

from contextlib import suppress
from hmac import compare_digest

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth.models import AbstractBaseUser
from django.contrib.sessions.backends.db import SessionStore
from django.db.models import QuerySet
from django.http import HttpRequest
from knox.auth import TokenAuthentication as KnoxAuthentication
from knox.crypto import hash_token
from knox.settings import CONSTANTS
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from projects.core.database import PreparedObjects
from projects.core.errors import NotAllowedError
from projects.models import Token


class TokenAuthentication(KnoxAuthentication):
    """`Authorization: Bearer TOKEN`; `request.auth` is the Token."""

    def authenticate_credentials(self, token: bytes) -> tuple[AbstractBaseUser, Token]:
        """Return the token's user and the token. Raises `AuthenticationFailed`.

        The inherited method loads every token of the user at each request, to delete those that
        have expired. Here an expired token is refused, and is listed until its owner deletes it.
        """
        if token.isascii():
            text = token.decode()
            for auth_token in _tokens_by_key(text[: CONSTANTS.TOKEN_KEY_LENGTH]):
                is_same = compare_digest(hash_token(text), auth_token.digest)
                if is_same and not auth_token.is_expired:
                    user, _ = self.validate_user(auth_token)
                    auth_token.note_use()
                    return user, auth_token
        raise AuthenticationFailed("Invalid token.")


@PreparedObjects.of(str)
def _tokens_by_key(key: str) -> QuerySet[Token]:
    return Token.objects.filter(token_key=key).select_related("user")


def is_signed_in(request: HttpRequest) -> bool:
    """Return whether the request has a valid token or a valid session cookie.

    For code that runs before the middleware. After an invalid token, the session cookie is checked
    too, because proxies may send tokens of their own with the requests of browsers.
    """
    with suppress(AuthenticationFailed):
        if TokenAuthentication().authenticate(request) is not None:
            return True
    request.session = SessionStore(request.COOKIES.get(settings.SESSION_COOKIE_NAME))
    return get_user(request).is_authenticated


class TokenScopePermission(BasePermission):
    """Requires the scope `read` for reading and `write` for changes. A view can name other scopes
    in its attributes `reading_scope`, `scope` (for changes) and `deleting_scope` (for DELETE only).
    """

    message = "The token's scopes do not allow this."

    def has_permission(self, request, view) -> bool:
        if request.method in SAFE_METHODS:
            scope = getattr(view, "reading_scope", "read")
        else:
            scope = getattr(view, "scope", "write")
            if request.method == "DELETE":
                scope = getattr(view, "deleting_scope", scope)
        return has_scope(request, scope)


def has_scope(request: Request, scope: str) -> bool:
    """Return whether the token of the request has `scope`. True for a request without a token."""
    return request.auth is None or scope in request.auth.scopes


def require_scope(request: Request, scope: str) -> None:
    """Check a scope that depends on the body of the request. Raises `NotAllowedError`."""
    if not has_scope(request, scope):
        raise NotAllowedError(TokenScopePermission.message)
