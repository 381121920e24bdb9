"""django-allauth's forms with Strata's labels and without placeholders."""

from typing import Any

from allauth.account import forms as account
from allauth.mfa.base import forms as factor
from allauth.mfa.totp.forms import ActivateTOTPForm
from allauth.mfa.webauthn.forms import AddWebAuthnForm, EditWebAuthnForm
from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.forms import SignupForm as SocialSignupForm
from django import forms
from django.contrib.auth import get_user_model
from django.contrib.auth.forms import UserChangeForm
from django.contrib.auth.password_validation import password_validators_help_texts
from django.core.validators import MaxLengthValidator
from django.utils.functional import lazy
from django.utils.translation import gettext_lazy as _

from projects.accounts.tokens import TokenRevocationForm

KEPT_TOKENS = {"kept_tokens": _("All others will be revoked.")}
RULES = lazy(lambda: " ".join(password_validators_help_texts()), str)()
# A longer password or name is refused before it is hashed, normalised or compared.
MAX_FIELD_CHARS = 4_096
NAME = {"autocapitalize": "none", "spellcheck": "false"}


class RelabelledForm(forms.Form):
    """A form whose `labels` and `helps` replace those of the fields with these names."""

    labels: dict[str, Any] = {}
    helps: dict[str, Any] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, field in self.fields.items():
            field.label = self.labels.get(name, field.label)
            field.help_text = self.helps.get(name, "")
            field.widget.attrs.pop("placeholder", None)
            if isinstance(field, forms.CharField) and field.max_length is None:
                # Not as an attribute of the widget: browsers would cut without a message.
                field.validators.append(MaxLengthValidator(MAX_FIELD_CHARS))

    def add_error(self, field: str | None, error: Any) -> None:
        # The only error of `password2` that django-allauth adds as a string: the passwords differ.
        is_mismatch = field == "password2" and not isinstance(error, forms.ValidationError)
        super().add_error(field, _("The passwords don’t match.") if is_mismatch else error)


class SignInForm(RelabelledForm, account.LoginForm):
    labels = {"login": _("Username or email"), "password": _("Password")}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["login"].widget.attrs |= NAME | {"autocomplete": "username"}
        # Scripts may still use the field's former name.
        if self.is_bound and "login" not in self.data and "username" in self.data:
            data = {name: self.data[name] for name in self.data}
            self.data = data | {"login": data["username"]}


class AccountFieldsForm(RelabelledForm):
    labels = {
        "username": _("Username"),
        "email": _("Email (optional)"),
        "password1": _("Password"),
        "password2": _("Confirm password"),
    }
    helps = {"password1": RULES}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["username"].widget.attrs |= NAME


class SignUpForm(AccountFieldsForm, account.SignupForm):
    """A new account."""


class SocialSignUpForm(AccountFieldsForm, SocialSignupForm):
    """A new account of a user of the provider whose email address an account already has."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.is_bound:
            # The error of the sent form. It explains how to connect the existing account.
            taken = get_adapter().error_messages["email_taken"]
            self.fields["email"].help_text = taken % self.sociallogin.provider.name


class AddEmailForm(RelabelledForm, account.AddEmailForm):
    labels = {"email": _("New email address")}


class ChangePasswordForm(RelabelledForm, TokenRevocationForm, account.ChangePasswordForm):
    labels = {
        "oldpassword": _("Current password"),
        "password1": _("New password"),
        "password2": _("Confirm new password"),
    }
    helps = KEPT_TOKENS | {"password1": RULES}


class SetPasswordForm(RelabelledForm, TokenRevocationForm, account.SetPasswordForm):
    labels = {"password1": _("New password"), "password2": _("Confirm new password")}
    helps = KEPT_TOKENS | {"password1": RULES}


class ForgottenPasswordForm(RelabelledForm, account.ResetPasswordForm):
    labels = {"email": _("Email")}


class NewPasswordForm(RelabelledForm, TokenRevocationForm, account.ResetPasswordKeyForm):
    labels = {"password1": _("New password"), "password2": _("Confirm new password")}
    helps = KEPT_TOKENS | {"password1": RULES}


class ConfirmPasswordForm(RelabelledForm, account.ReauthenticateForm):
    labels = {"password": _("Password")}


class CodeForm(RelabelledForm, factor.AuthenticateForm):
    labels = {"code": _("Code from your app, or a recovery code")}


class ConfirmCodeForm(RelabelledForm, factor.ReauthenticateForm):
    labels = {"code": _("Code from your app, or a recovery code")}


class ActivateAppForm(RelabelledForm, ActivateTOTPForm):
    labels = {"code": _("Current code from the app")}


class AddPasskeyForm(RelabelledForm, AddWebAuthnForm):
    labels = {"name": _("Name"), "passwordless": _("Sign in without a password")}
    helps = {
        "name": _("A name for this passkey, such as “Phone”."),
        "passwordless": _(
            "If selected, the passkey replaces your password. Otherwise, you use it after your "
            "password."
        ),
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["passwordless"].initial = True


class RenamePasskeyForm(RelabelledForm, EditWebAuthnForm):
    labels = {"name": _("Name")}


class AccountForm(UserChangeForm):
    """The form of an account in the admin."""

    def clean_username(self) -> str:
        """Refuse a new username that differs from another only in its case.

        At sign-in, the case does not matter. Neither of the two users could sign in.
        """
        username: str = self.cleaned_data["username"]
        others = get_user_model().objects.exclude(pk=self.instance.pk)
        if "username" in self.changed_data and others.filter(username__iexact=username).exists():
            message = self.instance.unique_error_message(type(self.instance), ["username"])
            raise forms.ValidationError(message)
        return username
