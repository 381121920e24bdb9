"""API tokens in the account pages: creation with a notification by mail, and revocation."""

from typing import Any

from allauth.account.adapter import get_adapter
from django import forms
from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from projects.models import Token


def issue_token(request: HttpRequest, **fields: Any) -> tuple[Token, str]:
    """Create a token for the requesting user. Return it and its secret, and notify by mail."""
    token, secret = Token.issue(request.user, **fields)
    notify_of_token(request, token)
    return token, secret


def notify_of_token(request: HttpRequest, token: Token) -> None:
    """Notify the user of a new token by mail. This may wait for the mail server."""
    get_adapter().send_notification_mail(
        "account/email/token_created", request.user, {"token": token}
    )


class TokenRevocationForm(forms.Form):
    """Base class of password forms. It revokes the user's API tokens that are not selected.

    If the request has no such field, nothing is selected and all tokens are revoked.
    """

    user: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        tokens = Token.objects.filter(user=self.user).order_by("-created")
        if choices := [(str(token.public_id), str(token)) for token in tokens]:
            self.fields["kept_tokens"] = forms.MultipleChoiceField(
                label=_("Keep these API tokens"),
                choices=choices,
                required=False,
                widget=forms.CheckboxSelectMultiple,
            )

    @transaction.atomic
    def save(self) -> None:
        super().save()  # type: ignore[misc]
        kept = self.cleaned_data.get("kept_tokens", [])
        Token.objects.filter(user=self.user.pk).exclude(public_id__in=kept).delete()
