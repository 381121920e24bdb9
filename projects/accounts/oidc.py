"""Signing in through a provider of OpenID Connect that the server's settings name."""

import logging

from allauth.account.models import EmailAddress
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
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from requests import RequestException

from projects.accounts.adapter import admit_by_hand

log = logging.getLogger(__name__)


class Provided(DefaultSocialAccountAdapter):
    """Who is new comes in by an invitation, unless the settings let everybody in whom the provider
    knows. Who is known is known by the provider's own id of them; besides, by a mail address that
    both the provider and this server have verified.
    """

    error_messages = DefaultSocialAccountAdapter.error_messages | {
        "no_password": _("Set a password first, so that you can still sign in."),
        "email_taken": _(
            "Somebody has an account with this address already. If it is you, sign in to it, and "
            "connect %s on your account’s page."
        ),
    }

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        return settings.OIDC_SIGNUP or super().is_open_for_signup(request, sociallogin)

    def populate_user(self, request: HttpRequest, sociallogin: SocialLogin, data):
        told = sociallogin.account.extra_data.values()
        # https://openid.net/specs/openid-connect-core-1_0.html#UserInfoResponse
        if len({one["sub"] for one in told}) > 1:
            raise PermissionDenied("The provider tells of somebody else.")
        # Some providers tell it as a text.
        for address in sociallogin.email_addresses:
            address.verified = str(address.verified).lower() == "true"
        return super().populate_user(request, sociallogin, data)

    def can_authenticate_by_email(self, login: SocialLogin, email: str) -> bool:
        return EmailAddress.objects.filter(email=email.lower(), verified=True).exists()

    def save_user(self, request: HttpRequest, sociallogin: SocialLogin, form=None):
        with transaction.atomic():
            user = super().save_user(request, sociallogin, form)
            if form is None:
                # Else the form's own saving has.
                admit_by_hand(request, user)
        return user


class Provider(OpenIDConnectOAuth2Adapter):
    """Believes no ID token that the provider has not signed, however it came."""

    def _decode_id_token(self, app: SocialApp, id_token: str) -> dict:
        self.did_fetch_access_token = False
        return super()._decode_id_token(app, id_token)


@rate_limit(action="oidc")
def login(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Leads to the provider by a page of ours: the content security policy lets no form do so."""
    answer = _at_the_provider(request, provider_id, OAuth2LoginView)
    if isinstance(answer, HttpResponseRedirect):
        context = {"there": answer.url, "provider": settings.OIDC_NAME}
        return render(request, "socialaccount/leaving.html", context)
    return answer


@rate_limit(action="oidc", limit_get=True)
def callback(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Where the provider leads back to."""
    return _at_the_provider(request, provider_id, OAuth2CallbackView)


def _at_the_provider(
    request: HttpRequest, provider_id: str, view: type[OAuth2View]
) -> HttpResponse:
    if not settings.OIDC_ISSUER:
        raise Http404
    try:
        return view.adapter_view(Provider(request, provider_id))(request)
    except (RequestException, KeyError) as error:
        # It cannot be reached, or what it says of itself lacks something.
        log.error("oidc_failed issuer=%s reason=%r", settings.OIDC_ISSUER, error)
        return render_authentication_error(request, None, exception=error)
