"""Account pages that extend those of django-allauth."""

from typing import Any

from allauth.account.models import EmailAddress
from allauth.account.views import EmailView, LoginView, PasswordResetView
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from allauth.usersessions.internal.flows.sessions import end_sessions
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from projects.models import Token


@never_cache
@require_safe
def account(request: HttpRequest) -> HttpResponse:
    """Show an overview of the account, with links to the pages that change it."""
    user = request.user
    factors = [*Authenticator.objects.filter(user=user).values_list("type", flat=True)]
    context = {
        "addresses": EmailAddress.objects.filter(user=user).order_by("-primary", "email"),
        "app": Authenticator.Type.TOTP in factors,
        "codes": Authenticator.Type.RECOVERY_CODES in factors,
        "passkeys": factors.count(Authenticator.Type.WEBAUTHN),
        "browsers": UserSession.objects.filter(user=user).count(),
        "tokens": Token.objects.filter(user=user.pk).count(),
        "connected": SocialAccount.objects.filter(user=user).exists(),
        "oidc": settings.OIDC_ISSUER and settings.OIDC_NAME,
    }
    return render(request, "account/account.html", context)


@require_POST
def end_session(request: HttpRequest, pk: int) -> HttpResponse:
    """Sign out another browser of the user."""
    session = get_object_or_404(UserSession, user=request.user, pk=pk)
    end_sessions(request, [session])
    messages.success(request, _("The browser was signed out."))
    return redirect("usersessions_list")


class SignInView(LoginView):
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        oidc = settings.OIDC_ISSUER and settings.OIDC_NAME
        extra = {"oidc": oidc, "is_open": settings.SIGNUP_OPEN}
        return super().get_context_data(**kwargs) | extra


class EmailAddressView(EmailView):
    """The user's email addresses. If the server sends no mail, addresses cannot be added."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not settings.SENDS_MAIL and {"action_add", "action_send"} & {*request.POST}:
            return redirect("account_email")
        return super().post(request, *args, **kwargs)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(**kwargs) | {"sends_mail": settings.SENDS_MAIL}


class ForgottenPasswordView(PasswordResetView):
    """The form for a forgotten password. On a server without mail, it names the administrators."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not settings.SENDS_MAIL:
            return redirect("account_reset_password")
        return super().post(request, *args, **kwargs)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(**kwargs) | {"sends_mail": settings.SENDS_MAIL}
