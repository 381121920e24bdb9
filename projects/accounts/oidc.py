"""Sign-in with the OpenID Connect provider in the server's settings."""

import logging
import re
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
from projects.accounts.claims import group_names, read_claims, verify_id_token
from projects.models import SpendingLimit

log = logging.getLogger(__name__)

# A code in the provider's response to a failed request for a token, such as `invalid_client`.
# https://www.rfc-editor.org/rfc/rfc6749#section-5.2
ERROR_CODE = re.compile(r'"error": {0,9}"([a-z_]{1,40})"')


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
        return super().populate_user(request, sociallogin, data)

    def on_authentication_error(
        self, request: HttpRequest, provider, error=None, exception=None, extra_context=None
    ) -> None:
        if exception is not None:
            # Only classes and codes are logged, because a response may contain secrets.
            code = ERROR_CODE.search(str(exception))
            log.error(
                "oidc_failed issuer=%s reason=%r code=%s",
                *(settings.OIDC_ISSUER, exception.__cause__ or exception, code and code[1]),
            )

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
    if sociallogin is None or not settings.OIDC_GROUPS_CLAIM:
        return
    names = group_names(sociallogin.account.extra_data.values())
    if names is None:
        log.warning("oidc_groups_incomplete claim=%s", settings.OIDC_GROUPS_CLAIM)
        return
    limits = SpendingLimit.objects.exclude(group=None).values("group")
    groups = Group.objects.filter(pk__in=limits, permissions=None)
    user.groups.remove(*groups.exclude(name__in=names))
    user.groups.add(*groups.filter(name__in=names))


class OIDCAdapter(OpenIDConnectOAuth2Adapter):
    """Checks the signature of every ID token, even if it came directly from the provider."""

    def _fetch_user_info(self, access_token: str) -> dict[str, Any]:
        return read_claims(super()._fetch_user_info(access_token))

    def _decode_id_token(self, app: SocialApp, id_token: str) -> dict[str, Any]:
        return read_claims(verify_id_token(id_token, self.openid_config, app.client_id))


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
    except (RequestException, AttributeError, KeyError) as error:
        # The provider is not reachable, or its metadata is incomplete or no object.
        return render_authentication_error(request, None, exception=error)
