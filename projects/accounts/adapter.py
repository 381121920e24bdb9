"""Where django-allauth asks how things are done here: who may sign up, and what mail is sent."""

import logging
from contextlib import suppress
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
from projects.accounts.addresses import client_address
from projects.invitations import NotAdmitted
from projects.models import Standing

log = logging.getLogger(__name__)


class Accounts(DefaultAccountAdapter):
    """Sign-up takes an invitation, unless the server is open to everybody; who signs up by one is
    a member in the same transaction, so that it lets in as many as it says.
    """

    error_messages = DefaultAccountAdapter.error_messages | {
        "account_inactive": gettext_lazy("This account is switched off."),
        "cannot_remove_primary_email": gettext_lazy(
            "Make another address the main one before you remove this."
        ),
        "duplicate_email": gettext_lazy("This address is among yours already."),
        "email_taken": gettext_lazy("Somebody has an account with this address already."),
        "enter_current_password": gettext_lazy("This is not your present password."),
        "email_password_mismatch": gettext_lazy("The address or the password is wrong."),
        "username_password_mismatch": gettext_lazy("The name or the password is wrong."),
        "too_many_login_attempts": gettext_lazy(
            "Tried too often. Wait some minutes before you try again."
        ),
        "rate_limited": gettext_lazy("Tried too often. Wait some minutes before you try again."),
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return settings.SIGNUP_OPEN or is_invited(request)

    def save_user(self, request: HttpRequest, user, form, commit: bool = True):
        with transaction.atomic():
            saved = super().save_user(request, user, form, commit)
            admit_by_hand(request, saved)
        return saved

    def get_signup_redirect_url(self, request: HttpRequest) -> str:
        # The page of the invitation leads on to the project.
        invited = invitations.in_hand(request)
        return reverse("join") if invited else super().get_signup_redirect_url(request)

    def get_client_ip(self, request: HttpRequest) -> str:
        return client_address(request)

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        return reverse("account")

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Raises ImmediateHttpResponse, which leads back, when nobody takes the mail."""
        try:
            super().send_mail(template_prefix, email, context)
        except OSError as error:
            log.error("mail_not_sent what=%s reason=%s", template_prefix, error)
            messages.error(
                self.request,
                _("The mail could not be sent. Try again later, or tell who runs this server."),
            )
            raise ImmediateHttpResponse(redirect(self.request.path)) from error

    def send_confirmation_mail(self, request, emailconfirmation, signup: bool) -> None:
        if not settings.SENDS_MAIL:
            return
        try:
            super().send_confirmation_mail(request, emailconfirmation, signup)
        except ImmediateHttpResponse:
            # A new account is there all the same; its address can be confirmed later.
            if not signup:
                raise

    def send_notification_mail(self, *args: Any, **kwargs: Any) -> None:
        # What it tells of is done.
        with suppress(ImmediateHttpResponse):
            super().send_notification_mail(*args, **kwargs)

    def should_send_confirmation_mail(self, request, email_address, signup: bool) -> bool:
        return settings.SENDS_MAIL


def is_invited(request: HttpRequest) -> bool:
    """Whether this browser came by a link that lets somebody in now."""
    invitation = invitations.in_hand(request)
    return invitation is not None and invitation.state == Standing.OPEN


def admit_by_hand(request: HttpRequest, user) -> None:
    """Makes a new user a member by the link that their browser came by, if it came by one.

    Raises ImmediateHttpResponse, which says so, when it lets nobody in any more.
    """
    invitation = invitations.in_hand(request)
    if invitation is None:
        return
    try:
        invitations.admit(invitation, user)
    except NotAdmitted as late:
        raise ImmediateHttpResponse(redirect("join")) from late
