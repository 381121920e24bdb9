"""The page of one's API tokens."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from projects.forms import TokenForm
from projects.models import Token


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def tokens(request: HttpRequest) -> HttpResponse:
    """One's tokens. A POST makes one, and its answer alone shows it: nothing else could."""
    form = TokenForm(request.user, request.POST or None)
    if not form.is_valid():
        return _page(request, form, status=400 if form.is_bound else 200)
    made, secret = Token.issue(request.user, **form.token())
    return _page(request, TokenForm(request.user), made=made, secret=secret)


@login_required
@require_POST
def revoke(request: HttpRequest, pk) -> HttpResponse:
    """Takes a token back; it opens nothing from then on."""
    get_object_or_404(Token, user=request.user.pk, public_id=pk).delete()
    messages.success(request, _("The token is revoked."))
    return redirect("tokens")


def _page(request: HttpRequest, form: TokenForm, status: int = 200, **made: object) -> HttpResponse:
    mine = Token.objects.filter(user=request.user.pk).select_related("project")
    context = {"tokens": mine.order_by("-created", "-public_id"), "form": form}
    return render(request, "projects/tokens.html", context | made, status=status)
