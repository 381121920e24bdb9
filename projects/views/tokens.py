"""The page of the user's API tokens."""

from allauth.account.decorators import reauthentication_required
from django.contrib import messages
from django.db.models import Exists, OuterRef
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from projects.accounts.tokens import issue_token
from projects.forms import TokenForm
from projects.models import Membership, Token


@never_cache
@reauthentication_required(allow_get=True)
@require_http_methods(["GET", "POST"])
def token_list(request: HttpRequest) -> HttpResponse:
    """Show the user's tokens. A POST request creates a token and shows its secret once.

    To create a token, the user must confirm the password or second factor.
    """
    form = TokenForm(request.user, request.POST or None)
    if not form.is_valid():
        return _page(request, form, status=400 if form.is_bound else 200)
    token, secret = issue_token(request, **form.token())
    return _page(request, TokenForm(request.user), made=token, secret=secret)


@require_POST
def token_revoke(request: HttpRequest, pk) -> HttpResponse:
    get_object_or_404(Token, user=request.user.pk, public_id=pk).delete()
    messages.success(request, _("The token was revoked."))
    return redirect("tokens")


def _page(
    request: HttpRequest, form: TokenForm, status: int = 200, **extra: object
) -> HttpResponse:
    tokens = Token.objects.filter(user=request.user.pk).select_related("project", "user")
    member = Membership.objects.filter(project=OuterRef("project"), user=OuterRef("user"))
    tokens = tokens.annotate(is_of_member=Exists(member))
    context = {"tokens": tokens.order_by("-created", "-public_id"), "form": form}
    return render(request, "projects/tokens.html", context | extra, status=status)
