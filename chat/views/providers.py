"""The page on which server administrators add providers of models and their keys."""

from allauth.account.decorators import reauthentication_required
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from chat.forms import ProviderForm
from chat.models import ModelProvider
from chat.providers import discovery, forget_saved


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def model_page(request: HttpRequest) -> HttpResponse:
    """List the providers of models. A POST adds one, or replaces its key.

    The page needs the password or a second factor again before it opens, so that no key is lost
    that was entered already.
    """
    _check_administrator(request)
    return _confirmed_model_page(request)


@reauthentication_required
def _confirmed_model_page(request: HttpRequest) -> HttpResponse:
    form = ProviderForm(request.POST or None)
    if form.is_valid():
        provider = form.save()
        messages.success(
            request,
            _("%(name)s works. It offers %(count)s models.")
            % {"name": provider, "count": len(provider.catalogue)},
        )
        return redirect("models")
    context = {
        "form": form,
        "providers": ModelProvider.objects.all(),
        "environment": settings.MODEL_KEYS.items(),
        "in_environment": {*settings.MODEL_KEYS},
        "ollama_name": "ollama",
        "ollama": discovery.list_ollama_models(),
        "ollama_url": settings.OLLAMA_URL,
        "default": settings.CHAT_MODEL,
    }
    return render(request, "chat/models.html", context, status=400 if form.is_bound else 200)


@login_required
@require_POST
def model_provider_remove(request: HttpRequest, pk) -> HttpResponse:
    _check_administrator(request)
    get_object_or_404(ModelProvider, pk=pk).delete()
    forget_saved()
    messages.success(request, _("The provider and its key were removed."))
    return redirect("models")


def _check_administrator(request: HttpRequest) -> None:
    """Raise `Http404` for all but superusers: whoever sets a key spends its money."""
    if not request.user.is_superuser:
        raise Http404
