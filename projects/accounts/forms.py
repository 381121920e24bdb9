"""django-allauth's forms in Strata's words; each field says what it is once, in its label."""

from typing import Any

from allauth.account import forms as account
from allauth.mfa.base import forms as factor
from allauth.mfa.totp.forms import ActivateTOTPForm
from allauth.mfa.webauthn.forms import AddWebAuthnForm, EditWebAuthnForm
from allauth.socialaccount.forms import SignupForm as SocialSignupForm
from django import forms
from django.contrib.auth.password_validation import password_validators_help_texts
from django.utils.functional import lazy
from django.utils.translation import gettext_lazy as _

RULES = lazy(lambda: " ".join(password_validators_help_texts()), str)()
NAME = {"autocapitalize": "none", "spellcheck": "false"}


class InOurWords(forms.Form):
    """`labels` and `helps` replace those of the fields that they name."""

    labels: dict[str, Any] = {}
    helps: dict[str, Any] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, field in self.fields.items():
            field.label = self.labels.get(name, field.label)
            field.help_text = self.helps.get(name, "")
            field.widget.attrs.pop("placeholder", None)

    def add_error(self, field: str | None, error: Any) -> None:
        # All that django-allauth itself has to say of the second password.
        is_said = field == "password2" and not isinstance(error, forms.ValidationError)
        super().add_error(field, _("These are two passwords.") if is_said else error)


class SignIn(InOurWords, account.LoginForm):
    labels = {"login": _("Username or mail address"), "password": _("Password")}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["login"].widget.attrs |= NAME | {"autocomplete": "username"}
        # What the field was called before there was a choice; scripts fill it in.
        if self.is_bound and "login" not in self.data and "username" in self.data:
            given = {name: self.data[name] for name in self.data}
            self.data = given | {"login": given["username"]}


class Joining(InOurWords):
    labels = {
        "username": _("Username"),
        "email": _("Mail address (can wait)"),
        "password1": _("Password"),
        "password2": _("Password, again"),
    }
    helps = {"password1": RULES}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["username"].widget.attrs |= NAME


class SignUp(Joining, account.SignupForm):
    """A new account."""


class ProvidedSignUp(Joining, SocialSignupForm):
    """The rest of a new account, of which a provider told something."""


class AddAddress(InOurWords, account.AddEmailForm):
    labels = {"email": _("Another mail address")}


class ChangePassword(InOurWords, account.ChangePasswordForm):
    labels = {
        "oldpassword": _("Present password"),
        "password1": _("New password"),
        "password2": _("New password, again"),
    }
    helps = {"password1": RULES}


class SetPassword(InOurWords, account.SetPasswordForm):
    labels = {"password1": _("New password"), "password2": _("New password, again")}
    helps = {"password1": RULES}


class ForgottenPassword(InOurWords, account.ResetPasswordForm):
    labels = {"email": _("Mail address")}


class NewPassword(InOurWords, account.ResetPasswordKeyForm):
    labels = {"password1": _("New password"), "password2": _("New password, again")}
    helps = {"password1": RULES}


class SamePassword(InOurWords, account.ReauthenticateForm):
    labels = {"password": _("Password")}


class Code(InOurWords, factor.AuthenticateForm):
    labels = {"code": _("Code from your app, or a recovery code")}


class CodeAgain(InOurWords, factor.ReauthenticateForm):
    labels = {"code": _("Code from your app, or a recovery code")}


class ActivateApp(InOurWords, ActivateTOTPForm):
    labels = {"code": _("The code that the app shows now")}


class AddPasskey(InOurWords, AddWebAuthnForm):
    labels = {"name": _("Name"), "passwordless": _("Sign in with it alone, without a password")}
    helps = {
        "name": _("Which one it is, such as “Phone”."),
        "passwordless": _(
            "The device asks for a finger, a face or a PIN. Otherwise it is asked for after the "
            "password."
        ),
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["passwordless"].initial = True


class RenamePasskey(InOurWords, EditWebAuthnForm):
    labels = {"name": _("Name")}
