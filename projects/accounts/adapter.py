"""django-allauth's account adapter: requires invitations to sign up, and sends mail."""

import logging
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core.exceptions import ImmediateHttpResponse
from django.conf import settings
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from projects import invitations
from projects.core.http.client_ip import client_ip
from projects.permissions import ProjectArchivedError

log = logging.getLogger(__name__)


class AccountAdapter(DefaultAccountAdapter):
    """Requires an invitation to sign up, unless the server is open to everybody.

    A user who signs up by invitation becomes a member in the same transaction, so that the uses of
    the invitation are counted exactly.
    """

    # True if this object sends a mail that reports a completed change.
    is_notifying = False

    error_messages = DefaultAccountAdapter.error_messages | {
        "account_inactive": gettext_lazy("This account is deactivated."),
        "cannot_remove_primary_email": gettext_lazy(
            "Make another address your primary email before you remove this one."
        ),
        "duplicate_email": gettext_lazy("You have already added this email address."),
        "email_taken": gettext_lazy("An account with this email address already exists."),
        "enter_current_password": gettext_lazy("Your current password is incorrect."),
        "email_password_mismatch": gettext_lazy("The email address or password is incorrect."),
        "username_password_mismatch": gettext_lazy("The username or password is incorrect."),
        "too_many_login_attempts": gettext_lazy(
            "Too many attempts. Wait a few minutes, then try again."
        ),
        "rate_limited": gettext_lazy("Too many attempts. Wait a few minutes, then try again."),
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return settings.SIGNUP_OPEN or is_invited(request)

    def save_user(self, request: HttpRequest, user, form, commit: bool = True):
        # The form of a user who comes from the OpenID Connect provider has a `sociallogin`.
        is_from_provider = getattr(form, "sociallogin", None) is not None
        is_open = settings.SIGNUP_OPEN or (settings.OIDC_SIGNUP and is_from_provider)
        with transaction.atomic():
            user = super().save_user(request, user, form, commit)
            admit_pending(request, user, is_open)
        return user

    def get_signup_redirect_url(self, request: HttpRequest) -> str:
        # The page `join` redirects to the project of the invitation.
        if invitations.pending_invitation(request):
            return reverse("join")
        return super().get_signup_redirect_url(request)

    def get_client_ip(self, request: HttpRequest) -> str:
        return client_ip(request)

    def _get_login_attempts_cache_key(self, request: HttpRequest, **credentials: Any) -> str:
        # The inherited key contains the host of the request, with its port. A client could send
        # another port with each attempt.
        login: str = credentials.get("email") or credentials.get("username") or ""
        return login.lower()

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        return reverse("account")

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Send mail. If this fails, raise ImmediateHttpResponse, which redirects back.

        The user sees no message about a notification that fails, because the change has succeeded.
        """
        if settings.URL:
            # Use the site's domain in the text. The default would be the host of the request.
            context = context | {"current_site": SimpleNamespace(domain=settings.URL)}
        try:
            super().send_mail(template_prefix, email, context)
        except (OSError, UnicodeError) as error:
            # A domain may be valid, but too long once it is encoded, which raises UnicodeError.
            log.error("email_failed what=%s reason=%s", template_prefix, error)
            if not self.is_notifying:
                reason = _(
                    "The email could not be sent. Try again later, or contact your administrator."
                )
                messages.error(self.request, reason)
            raise ImmediateHttpResponse(redirect(self.request.path)) from error

    def send_confirmation_mail(self, request, emailconfirmation, signup: bool) -> None:
        if not settings.SENDS_MAIL:
            return
        try:
            super().send_confirmation_mail(request, emailconfirmation, signup)
        except ImmediateHttpResponse:
            # The account was created anyway, and its address can be confirmed later.
            if not signup:
                raise

    def send_notification_mail(self, *args: Any, **kwargs: Any) -> None:
        self.is_notifying = True
        with suppress(ImmediateHttpResponse):
            super().send_notification_mail(*args, **kwargs)

    def should_send_confirmation_mail(self, request, email_address, signup: bool) -> bool:
        return settings.SENDS_MAIL


def is_invited(request: HttpRequest) -> bool:
    """Return whether this browser has opened an invitation link that can be used now."""
    invitation = invitations.pending_invitation(request)
    return invitation is not None and not invitations.closed_reason(invitation)


def admit_pending(request: HttpRequest, user, is_open: bool) -> None:
    """If the browser has opened an invitation link, make the new user a member.

    If the link cannot be used, a user who needs no invitation (`is_open`) gets an account only.
    Others get none: raises ImmediateHttpResponse, which redirects to the reason, or
    `ProjectArchivedError`.
    """
    invitation = invitations.pending_invitation(request)
    if invitation is None:
        return
    try:
        invitations.admit(invitation, user)
    except (invitations.NotAdmittedError, ProjectArchivedError) as error:
        if is_open:
            return
        if isinstance(error, ProjectArchivedError):
            raise
        raise ImmediateHttpResponse(redirect("join")) from error
