"""Sign-in with the OpenID Connect provider in the server's settings."""

import logging
from typing import Any

from allauth.account.models import EmailAddress
from allauth.account.signals import user_logged_in
from allauth.decorators import rate_limit
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.helpers import render_authentication_error
from allauth.socialaccount.models import SocialApp, SocialLogin
from allauth.socialaccount.providers.oauth2.views import (
    OAuth2CallbackView,
    OAuth2LoginView,
    OAuth2View,
)
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.dispatch import receiver
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from requests import RequestException

from projects.accounts.adapter import admit_pending
from projects.models import SpendingLimit

log = logging.getLogger(__name__)

# Names of groups in a claim; further names are not read.
MAX_GROUPS = 500


class SocialAccountAdapter(DefaultSocialAccountAdapter):
    """Requires an invitation from new users, unless the settings admit all users of the provider.

    Existing users are recognised by their id at the provider, or by an email address that both the
    provider and this server have verified.
    """

    error_messages = DefaultSocialAccountAdapter.error_messages | {
        "no_password": _("Set a password first, so that you can still sign in."),
        "email_taken": _(
            "An account with this email address already exists. If it is yours, sign in and "
            "connect %s on your account page."
        ),
    }

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        return settings.OIDC_SIGNUP or super().is_open_for_signup(request, sociallogin)

    def populate_user(self, request: HttpRequest, sociallogin: SocialLogin, data):
        claims = sociallogin.account.extra_data.values()
        # https://openid.net/specs/openid-connect-core-1_0.html#UserInfoResponse
        if len({claim["sub"] for claim in claims}) > 1:
            raise PermissionDenied("The provider's claims are about different users.")
        # Some providers send `email_verified` as a string.
        for address in sociallogin.email_addresses:
            address.verified = str(address.verified).lower() == "true"
        return super().populate_user(request, sociallogin, data)

    def can_authenticate_by_email(self, login: SocialLogin, email: str) -> bool:
        return EmailAddress.objects.filter(email=email.lower(), verified=True).exists()

    def save_user(self, request: HttpRequest, sociallogin: SocialLogin, form=None):
        with transaction.atomic():
            user = super().save_user(request, sociallogin, form)
            if form is None:
                # If there was a sign-up form, saving it has already admitted the user.
                admit_pending(request, user, settings.SIGNUP_OPEN or settings.OIDC_SIGNUP)
        return user


@receiver(user_logged_in)
def update_groups(user: Any, sociallogin: SocialLogin | None = None, **kwargs: object) -> None:
    """Let a user who signed in through the provider join and leave groups, as its claim says.

    Only groups with a spending limit and without permissions follow the claim, so that a provider
    cannot make anybody an administrator.
    """
    claim = settings.OIDC_GROUPS_CLAIM
    if sociallogin is None or not claim:
        return
    names: set[str] = set()
    for claims in sociallogin.account.extra_data.values():
        value = claims.get(claim) if isinstance(claims, dict) else None
        if isinstance(value, list):
            names |= {name for name in value[:MAX_GROUPS] if isinstance(name, str)}
    limits = SpendingLimit.objects.exclude(group=None).values("group")
    groups = Group.objects.filter(pk__in=limits, permissions=None)
    user.groups.remove(*groups.exclude(name__in=names))
    user.groups.add(*groups.filter(name__in=names))


class OIDCAdapter(OpenIDConnectOAuth2Adapter):
    """Checks the signature of every ID token, even if it came directly from the provider."""

    def _decode_id_token(self, app: SocialApp, id_token: str) -> dict:
        self.did_fetch_access_token = False
        return super()._decode_id_token(app, id_token)


@login_not_required
@rate_limit(action="oidc")
def login(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Show a page with a link to the provider. The content security policy does not permit a form
    that leads to another host.
    """
    response = _run_view(request, provider_id, OAuth2LoginView)
    if isinstance(response, HttpResponseRedirect):
        context = {"there": response.url, "provider": settings.OIDC_NAME}
        return render(request, "socialaccount/leaving.html", context)
    return response


@login_not_required
@rate_limit(action="oidc", limit_get=True)
def callback(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Complete the sign-in after the provider has redirected the browser back."""
    return _run_view(request, provider_id, OAuth2CallbackView)


def _run_view(request: HttpRequest, provider_id: str, view: type[OAuth2View]) -> HttpResponse:
    if not settings.OIDC_ISSUER:
        raise Http404
    try:
        return view.adapter_view(OIDCAdapter(request, provider_id))(request)
    except (RequestException, KeyError) as error:
        # The provider is not reachable, or its metadata is incomplete.
        log.error("oidc_failed issuer=%s reason=%r", settings.OIDC_ISSUER, error)
        return render_authentication_error(request, None, exception=error)
