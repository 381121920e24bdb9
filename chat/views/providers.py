"""The pages on which server administrators add providers of models, and people choose models."""

from datetime import timedelta
from typing import Any

from allauth.account.decorators import reauthentication_required
from django.conf import settings
from django.contrib import messages
from django.db.models import Sum
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from chat import permissions
from chat.conversations.sessions import update_session
from chat.links import session_url
from chat.model_forms import ProjectModelsForm, ProviderForm, ServerModelsForm, SessionModelForm
from chat.models import Call, CallKind, ModelProvider, ProviderKind
from chat.models.calls import SUMMARY_KINDS
from chat.providers import catalogue, clear_provider_cache, discovery, environment_servers
from chat.views import presenters
from projects.models import Project
from projects.models.server import default_chat_model, default_system_model

# The number of days from which the costs of a month are estimated.
PACE_DAYS = 7


@never_cache
@require_http_methods(["GET", "POST"])
def model_page(request: HttpRequest) -> HttpResponse:
    """List the model providers. Depending on the field `action`, a POST request adds a provider,
    replaces its key, chooses the server's models, or reads the model lists again.

    The page needs the password or a second factor again before it opens, so that no key is lost
    that was entered already.
    """
    _check_administrator(request)
    return _confirmed_model_page(request)


@reauthentication_required
def _confirmed_model_page(request: HttpRequest) -> HttpResponse:
    action = request.POST.get("action", "provider")
    is_new = request.method == "POST" and action == "provider"
    form = ProviderForm(request.POST if is_new else None)
    if action == "refresh":
        discovery.refresh_lists()
        return redirect("models")
    if action == "defaults":
        defaults = ServerModelsForm(request.POST)
        if not defaults.is_valid():
            return _render_models(request, form, defaults)
        defaults.save()
        messages.success(request, _("Saved."))
        return redirect("models")
    if form.is_valid():
        provider = form.save()
        count = len(provider.catalogue)
        text = ngettext(
            "%(name)s works. It offers 1 model.",
            "%(name)s works. It offers %(count)s models.",
            count,
        )
        messages.success(request, text % {"name": provider, "count": count})
        return redirect("welcome" if "welcome" in request.GET else "models")
    if request.method == "GET":
        discovery.refresh_ollama()
    return _render_models(request, form, ServerModelsForm())


def _render_models(
    request: HttpRequest, form: ProviderForm, defaults: ServerModelsForm
) -> HttpResponse:
    rows = list(ModelProvider.objects.all())
    ollama = next((row for row in rows if row.kind == ProviderKind.OLLAMA), None)
    # The variable with the key of each provider, or else with the address of OpenAI's server.
    variables = {
        name: settings.MODEL_KEYS.get(name, "OPENAI_BASE_URL") for name in environment_servers()
    }
    context: dict[str, Any] = {
        "form": form,
        "defaults": defaults,
        "providers": [(row, _known(row)) for row in rows if row.encrypted_key],
        "environment": [
            (name, variable, next((_known(row) for row in rows if row.name == name), []))
            for name, variable in variables.items()
        ],
        "in_environment": variables,
        "ollama_name": discovery.OLLAMA,
        "ollama": _known(ollama) if ollama else [],
        "ollama_url": settings.OLLAMA_URL,
        "default": default_chat_model(),
        "default_system": default_system_model(),
        "has_chat_model": settings.HAS_CHAT_MODEL,
        "has_system_model": settings.HAS_SYSTEM_MODEL,
        "month_cost": _month_cost(),
        "projects": Project.objects.filter(archived_at=None).only("name", "slug", "allowed_models"),
    }
    is_wrong = form.is_bound or defaults.is_bound
    return render(request, "chat/models.html", context, status=400 if is_wrong else 200)


def _known(row: ModelProvider) -> list[catalogue.KnownModel]:
    return [catalogue.KnownModel.load(row.name, item) for item in row.chat_models]


def _month_cost() -> float | None:
    """Return the estimated cost of summaries and titles in 30 days, from the last PACE_DAYS days;
    None if no price is known.
    """
    calls = Call.objects.filter(
        kind__in=[*SUMMARY_KINDS, CallKind.TITLE],
        started_at__gte=timezone.now() - timedelta(days=PACE_DAYS),
    )
    cost = calls.aggregate(cost=Sum("cost"))["cost"]
    return None if cost is None else float(cost) * 30 / PACE_DAYS


@require_POST
def model_provider_remove(request: HttpRequest, pk) -> HttpResponse:
    _check_administrator(request)
    get_object_or_404(ModelProvider, pk=pk).delete()
    clear_provider_cache()
    messages.success(request, _("The provider and its key were removed."))
    return redirect("models")


@never_cache
@require_http_methods(["GET", "POST"])
def project_models(request: HttpRequest, slug: str) -> HttpResponse:
    """Choose the models that a project may use."""
    _check_administrator(request)
    project = get_object_or_404(Project, slug=slug)
    form = ProjectModelsForm(project, request.POST or None)
    if form.is_valid():
        form.save()
        messages.success(request, _("Saved."))
        return redirect("models")
    # Read the name again, because the form has changed the object.
    context = {"form": form, "name": Project.objects.values_list("name", flat=True).get(slug=slug)}
    status = 400 if form.is_bound else 200
    return render(request, "chat/project_models.html", context, status=status)


def _check_administrator(request: HttpRequest) -> None:
    """Raise `Http404` unless the user is a superuser, because a key can cost its owner money."""
    if not request.user.is_superuser:
        raise Http404


@require_http_methods(["GET", "POST"])
def session_model(request: HttpRequest, slug: str, pk) -> HttpResponse:
    """Choose the model of a chat; `?part` returns the drawer alone."""
    chat_session = permissions.session_for_managing(request.user, pk, slug=slug)
    permissions.require_chat(chat_session)
    form = SessionModelForm(request.POST or None, instance=chat_session)
    is_saved = form.is_valid()
    if is_saved:
        update_session(chat_session, **form.changes())
        if "part" not in request.GET:
            return redirect(session_url(chat_session))
        # The new model may have other settings.
        form = SessionModelForm(instance=chat_session)
    context = {"form": form, "is_saved": is_saved}
    status = 400 if form.is_bound else 200
    return presenters.drawer(
        request, chat_session, "chat/_model.html", _("Model of this chat"), context, status
    )
