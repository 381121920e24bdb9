"""The account pages that Strata uses, with the URL names that django-allauth expects."""

from allauth.account import views as account
from allauth.mfa.base import views as factors
from allauth.mfa.recovery_codes import views as codes
from allauth.mfa.totp import views as app
from allauth.mfa.webauthn import views as passkeys
from allauth.socialaccount import views as provided
from allauth.usersessions import views as sessions
from django.contrib.auth.decorators import login_not_required
from django.urls import path, re_path

from projects.accounts import oidc, views

sign_in = views.SignInView.as_view()

urlpatterns = [
    path("login/", sign_in, name="login"),
    path("login/", sign_in, name="account_login"),
    path("logout/", account.logout, name="logout"),
    path("logout/", account.logout, name="account_logout"),
    path("signup/", account.signup, name="account_signup"),
    path("inactive/", account.account_inactive, name="account_inactive"),
    path("confirm/", account.reauthenticate, name="account_reauthenticate"),
    path("mail/", views.EmailAddressView.as_view(), name="account_email"),
    path("mail/<str:key>/", account.confirm_email, name="account_confirm_email"),
    path("password/", account.password_change, name="account_change_password"),
    path("password/set/", account.password_set, name="account_set_password"),
    path(
        "password/forgotten/", views.ForgottenPasswordView.as_view(), name="account_reset_password"
    ),
    path(
        "password/forgotten/sent/", account.password_reset_done, name="account_reset_password_done"
    ),
    re_path(
        r"^password/forgotten/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>[^/]+)/$",
        account.password_reset_from_key,
        name="account_reset_password_from_key",
    ),
    path(
        "password/changed/",
        account.password_reset_from_key_done,
        name="account_reset_password_from_key_done",
    ),
    path("factors/", factors.index, name="mfa_index"),
    path("factors/authenticate/", factors.authenticate, name="mfa_authenticate"),
    path("factors/confirm/", factors.reauthenticate, name="mfa_reauthenticate"),
    path("factors/app/", app.activate_totp, name="mfa_activate_totp"),
    path("factors/app/remove/", app.deactivate_totp, name="mfa_deactivate_totp"),
    path("factors/codes/", codes.view_recovery_codes, name="mfa_view_recovery_codes"),
    path("factors/codes/new/", codes.generate_recovery_codes, name="mfa_generate_recovery_codes"),
    path("factors/codes/file/", codes.download_recovery_codes, name="mfa_download_recovery_codes"),
    path("passkeys/", passkeys.list_webauthn, name="mfa_list_webauthn"),
    path("passkeys/add/", passkeys.add_webauthn, name="mfa_add_webauthn"),
    path("passkeys/login/", passkeys.login_webauthn, name="mfa_login_webauthn"),
    path("passkeys/confirm/", passkeys.reauthenticate_webauthn, name="mfa_reauthenticate_webauthn"),
    path("passkeys/<int:pk>/", passkeys.edit_webauthn, name="mfa_edit_webauthn"),
    path("passkeys/<int:pk>/remove/", passkeys.remove_webauthn, name="mfa_remove_webauthn"),
    path("sessions/", sessions.list_usersessions, name="usersessions_list"),
    path("sessions/<int:pk>/end/", views.end_session, name="session-end"),
    path("provider/", provided.connections, name="socialaccount_connections"),
    path("provider/signup/", provided.signup, name="socialaccount_signup"),
    path("provider/cancelled/", provided.login_cancelled, name="socialaccount_login_cancelled"),
    path(
        "provider/failed/",
        login_not_required(provided.login_error),
        name="socialaccount_login_error",
    ),
    # The only provider. django-allauth expects its id as a parameter.
    re_path(r"^(?P<provider_id>oidc)/login/$", oidc.login, name="openid_connect_login"),
    re_path(r"^(?P<provider_id>oidc)/callback/$", oidc.callback, name="openid_connect_callback"),
]
