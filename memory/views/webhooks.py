"""The webhooks of a project, for its owners: registered, changed, tested, looked after."""

from collections.abc import Callable

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from memory.models import OffBecause, Webhook
from memory.webhooks import registering, telling
from memory.webhooks.forms import WebhookForm
from memory.webhooks.registering import OVERLAP, Refused
from memory.webhooks.signing import secret_of
from projects.access import membership
from projects.models import Membership, Role

DELIVERIES_ON_THE_PAGE = 50


@login_required
@require_http_methods(["GET", "POST"])
def listed(request: HttpRequest, slug: str) -> HttpResponse:
    """All of them, and the form for a new one, whose secret is shown in the answer."""
    member = membership(request.user, slug, (Role.OWNER,))
    form = WebhookForm(request.POST or None)
    if request.method != "POST" or not form.is_valid():
        return _list_page(request, member, form)
    try:
        made = registering.register(member.project, **form.cleaned_data, by=request.user)
    except Refused as refused:
        form.add_error(None, str(refused))
        return _list_page(request, member, form)
    return _page(request, member, made, secret=secret_of(made))


def _list_page(request: HttpRequest, member: Membership, form: WebhookForm) -> HttpResponse:
    webhooks = Webhook.objects.filter(project=member.project)
    context = {"project": member.project, "membership": member, "webhooks": webhooks, "form": form}
    status = 400 if form.is_bound else 200
    return render(request, "memory/webhooks.html", context, status=status)


@login_required
@require_http_methods(["GET", "POST"])
def one(request: HttpRequest, slug: str, pk) -> HttpResponse:
    """One of them with what it was told lately; a POST acts on it: `action` says how."""
    member = membership(request.user, slug, (Role.OWNER,))
    webhook = Webhook.objects.filter(project=member.project, pk=pk).first()
    if webhook is None:
        raise Http404
    if request.method != "POST":
        return _page(request, member, webhook)
    act = ACTIONS.get(request.POST.get("action", ""))
    if act is None:
        raise Http404
    return act(request, member, webhook)


def _change(request: HttpRequest, member: Membership, webhook: Webhook) -> HttpResponse:
    form = WebhookForm(request.POST)
    if not form.is_valid():
        return _page(request, member, webhook, form=form)
    registering.change(webhook, **form.cleaned_data)
    messages.success(request, _("Saved."))
    return _back(webhook, member)


def _switch_on(request: HttpRequest, member: Membership, webhook: Webhook) -> HttpResponse:
    registering.switch_on(webhook)
    return _back(webhook, member)


def _switch_off(request: HttpRequest, member: Membership, webhook: Webhook) -> HttpResponse:
    registering.switch_off(webhook, OffBecause.OWNER)
    return _back(webhook, member)


def _test(request: HttpRequest, member: Membership, webhook: Webhook) -> HttpResponse:
    try:
        telling.test(webhook)
    except Refused as refused:
        messages.error(request, str(refused))
    else:
        messages.success(request, _("A test is on its way; below stands what comes of it."))
    return _back(webhook, member)


def _change_secret(request: HttpRequest, member: Membership, webhook: Webhook) -> HttpResponse:
    registering.change_secret(webhook)
    return _page(request, member, webhook, secret=secret_of(webhook))


def _delete(request: HttpRequest, member: Membership, webhook: Webhook) -> HttpResponse:
    webhook.delete()
    messages.success(request, _("%(name)s is told nothing more.") % {"name": webhook.host})
    return redirect("webhooks", member.project.slug)


ACTIONS: dict[str, Callable[[HttpRequest, Membership, Webhook], HttpResponse]] = {
    "change": _change,
    "on": _switch_on,
    "off": _switch_off,
    "test": _test,
    "secret": _change_secret,
    "delete": _delete,
}


def _back(webhook: Webhook, member: Membership) -> HttpResponse:
    return redirect("webhook", member.project.slug, webhook.pk)


def _page(
    request: HttpRequest,
    member: Membership,
    webhook: Webhook,
    form: WebhookForm | None = None,
    secret: str = "",
) -> HttpResponse:
    """`secret` is shown in this answer and in no other, and no cache keeps it."""
    known = {"url": webhook.url, "events": webhook.events}
    context = {
        "project": member.project,
        "membership": member,
        "webhook": webhook,
        "form": form or WebhookForm(initial=known),
        "secret": secret,
        "overlap": int(OVERLAP.total_seconds() // 3600),
        "deliveries": webhook.deliveries.all()[:DELIVERIES_ON_THE_PAGE],
    }
    response = render(request, "memory/webhook.html", context, status=400 if form else 200)
    if secret:
        response["Cache-Control"] = "no-store"
    return response
