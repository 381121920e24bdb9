"""Accounts: passwords, second factors, single sign-on and mail."""

from typing import Annotated, Any, Literal
from urllib.parse import unquote, urlsplit

from pydantic import BeforeValidator
from pydantic_settings import NoDecode

from config.settings.env import Http, Variables, load, lower, var

SMTP = "django.core.mail.backends.smtp.EmailBackend"
CONSOLE = "django.core.mail.backends.console.EmailBackend"
PORTS = {"smtp": 25, "smtp+tls": 587, "smtps": 465}


def mail_settings(address: str) -> dict[str, Any]:
    """Return Django's settings for smtp+tls://USER:PASSWORD@HOST:PORT, smtps://… or smtp://….

    smtp+tls upgrades a plain connection, smtps encrypts from the start, and console:// prints mail.
    Special characters in the password, such as @, must be percent-encoded. Raises `ValueError`.
    """
    parts = urlsplit(address)
    if parts.scheme == "console":
        return {"EMAIL_BACKEND": CONSOLE}
    if parts.scheme not in PORTS or not parts.hostname:
        raise ValueError(address)
    return {
        "EMAIL_BACKEND": SMTP,
        "EMAIL_HOST": parts.hostname,
        "EMAIL_PORT": parts.port or PORTS[parts.scheme],
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        "EMAIL_USE_TLS": parts.scheme == "smtp+tls",
        "EMAIL_USE_SSL": parts.scheme == "smtps",
    }


class AccountVariables(Variables):
    title = "Accounts and mail"

    signup: Annotated[Literal["open", "closed"], lower] = var(
        "STRATA_SIGNUP",
        "closed",
        "open or closed",
        "Who may create an account: everybody (`open`), or people with an invitation (`closed`).",
    )
    email: Annotated[dict[str, Any] | None, NoDecode, BeforeValidator(mail_settings)] = var(
        "STRATA_EMAIL_URL",
        None,
        "smtp+tls://USER:PASSWORD@HOST:587, smtps://…:465, smtp://HOST:25 or console://",
        "The mail server for forgotten passwords and new addresses. `console://` prints mail.",
        example="smtp+tls://strata%40example.org:PASSWORD@mail.example.org:587",
        shown_default="none",
        secret=True,
    )
    email_from: str = var(
        "STRATA_EMAIL_FROM",
        "Strata <strata@localhost>",
        "the address that mail comes from",
        "The sender of mail.",
        example="Strata <strata@example.org>",
    )
    oidc_issuer: Http = var(
        "STRATA_OIDC_ISSUER",
        "",
        "the https:// address of an issuer",
        "An OpenID Connect provider to sign in through. Its callback is "
        "`https://HOST/accounts/oidc/callback/`.",
        example="https://id.example.org/realms/team",
        shown_default="none",
    )
    oidc_client_id: str = var(
        "STRATA_OIDC_CLIENT_ID",
        "",
        "the client's id",
        "The client's id at the provider.",
        example="strata",
    )
    oidc_client_secret: str = var(
        "STRATA_OIDC_CLIENT_SECRET",
        "",
        "the client's secret",
        "The client's secret at the provider.",
        secret=True,
    )
    oidc_name: str = var(
        "STRATA_OIDC_NAME",
        "single sign-on",
        "a name",
        "The provider's name on the sign-in page.",
        example="Example",
    )
    oidc_signup: bool = var(
        "STRATA_OIDC_SIGNUP",
        False,
        "on or off",
        "Whether the provider admits people without an account or an invitation.",
    )
    oidc_groups_claim: str = var(
        "STRATA_OIDC_GROUPS_CLAIM",
        "",
        "the name of a claim",
        "The claim that lists a user's groups. At sign-in, the user joins and leaves the groups of "
        "the server that have a spending limit and give no permissions.",
        shown_default="none",
        example="groups",
    )


_env = load(AccountVariables)
if _env.oidc_issuer and not _env.oidc_client_id:
    raise SystemExit("strata: STRATA_OIDC_CLIENT_ID takes the client's id at STRATA_OIDC_ISSUER")
SIGNUP_OPEN = _env.signup == "open"
# Without a mail server, pages do not offer functions that need mail.
SENDS_MAIL = _env.email is not None
globals().update(_env.email or {})
EMAIL_TIMEOUT = 20  # seconds
DEFAULT_FROM_EMAIL = _env.email_from
OIDC_ISSUER = _env.oidc_issuer.rstrip("/")
OIDC_NAME = _env.oidc_name
OIDC_SIGNUP = _env.oidc_signup
OIDC_GROUPS_CLAIM = _env.oidc_groups_claim
_oidc_client = {"client_id": _env.oidc_client_id, "secret": _env.oidc_client_secret}

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "projects"
LOGOUT_REDIRECT_URL = "login"
ACCOUNT_ADAPTER = "projects.accounts.adapter.AccountAdapter"
ACCOUNT_FORMS = {
    "login": "projects.accounts.forms.SignInForm",
    "signup": "projects.accounts.forms.SignUpForm",
    "add_email": "projects.accounts.forms.AddEmailForm",
    "change_password": "projects.accounts.forms.ChangePasswordForm",
    "set_password": "projects.accounts.forms.SetPasswordForm",
    "reset_password": "projects.accounts.forms.ForgottenPasswordForm",
    "reset_password_from_key": "projects.accounts.forms.NewPasswordForm",
    "reauthenticate": "projects.accounts.forms.ConfirmPasswordForm",
}
ACCOUNT_LOGIN_METHODS = {"username", "email"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "email", "password1*", "password2*"]
# Entries store who wrote them: a username, the name of a model, or the program whose memory was
# imported. These names have no colon, unlike other names of models.
ACCOUNT_USERNAME_BLACKLIST = ["claude", "demo", "extractive"]
ACCOUNT_EMAIL_SUBJECT_PREFIX = "[Strata] "
ACCOUNT_EMAIL_NOTIFICATIONS = SENDS_MAIL
# Do not send mail to addresses without an account.
ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS = False
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_REAUTHENTICATION_REQUIRED = True
# Limits in addition to those of allauth.
ACCOUNT_RATE_LIMITS = {"invitation": "60/m/ip", "oidc": "30/m/ip"}
MFA_ADAPTER = "projects.accounts.mfa.StrataMFAAdapter"
MFA_FORMS = {
    "authenticate": "projects.accounts.forms.CodeForm",
    "reauthenticate": "projects.accounts.forms.ConfirmCodeForm",
    "activate_totp": "projects.accounts.forms.ActivateAppForm",
    "add_webauthn": "projects.accounts.forms.AddPasskeyForm",
    "edit_webauthn": "projects.accounts.forms.RenamePasskeyForm",
}
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
# True, because some users have no email address and some servers send no mail.
MFA_ALLOW_UNVERIFIED_EMAIL = True
MFA_TOTP_ISSUER = "Strata"
# The number of 30-second steps by which a user's clock may differ.
MFA_TOTP_TOLERANCE = 1
SOCIALACCOUNT_ADAPTER = "projects.accounts.oidc.SocialAccountAdapter"
SOCIALACCOUNT_FORMS = {"signup": "projects.accounts.forms.SocialSignUpForm"}
# Applies only to addresses that both the provider and this server have verified.
SOCIALACCOUNT_EMAIL_AUTHENTICATION = True
SOCIALACCOUNT_EMAIL_AUTHENTICATION_AUTO_CONNECT = True
SOCIALACCOUNT_REQUESTS_TIMEOUT = 10  # seconds
SOCIALACCOUNT_PROVIDERS: dict[str, dict[str, object]] = {}
if OIDC_ISSUER:
    SOCIALACCOUNT_PROVIDERS["openid_connect"] = {
        "OAUTH_PKCE_ENABLED": True,
        "APPS": [
            {
                "provider_id": "oidc",
                "name": OIDC_NAME,
                **_oidc_client,
                "settings": {"server_url": OIDC_ISSUER},
            }
        ],
    }
