"""The pages on which owners create, change and test the webhooks of a project."""

from collections.abc import Callable

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memory import webhook_events, webhooks
from memory.models import Webhook, WebhookOffReason
from memory.models.webhooks import SUBSCRIBABLE_EVENTS
from memory.views import project_page, render_page
from projects.core.errors import DomainError, InvalidInputError
from projects.core.outbound_http import MAX_URL_CHARS
from projects.models import MemberRole, Membership

MAX_DELIVERIES = 50
OWNER = (MemberRole.OWNER,)


class WebhookForm(forms.Form):
    url = forms.CharField(
        label=gettext_lazy("URL"),
        max_length=MAX_URL_CHARS,
        widget=forms.URLInput(attrs={"placeholder": "https://", "autocomplete": "off"}),
        help_text=gettext_lazy(
            "The URL of a program that accepts POST requests. It must be on the public internet."
        ),
    )
    events = forms.MultipleChoiceField(
        label=gettext_lazy("Events"),
        choices=SUBSCRIBABLE_EVENTS,
        widget=forms.CheckboxSelectMultiple,
    )

    def clean_url(self) -> str:
        try:
            return webhooks.check_url(self.cleaned_data["url"])
        except InvalidInputError as error:
            raise forms.ValidationError(str(error)) from error


@project_page(get=OWNER, post=OWNER)
def webhook_list(request: HttpRequest, member: Membership) -> HttpResponse:
    """List the webhooks. A POST request creates one and shows its secret."""
    form = WebhookForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            webhook = webhooks.register(member.project, **form.cleaned_data, by=request.user)
        except DomainError as error:
            form.add_error(None, str(error))
        else:
            return _detail_page(request, member, webhook, secret=webhooks.secret_of(webhook))
    context = {"webhooks": Webhook.objects.filter(project=member.project), "form": form}
    return render_page(request, member, "webhooks.html", context, 400 if form.is_bound else 200)


@project_page(get=OWNER, post=OWNER)
def webhook_detail(request: HttpRequest, member: Membership, pk) -> HttpResponse:
    """Show a webhook with its latest deliveries. A POST request applies `action`."""
    webhook = get_object_or_404(Webhook, project=member.project, pk=pk)
    if request.method != "POST":
        return _detail_page(request, member, webhook)
    action = ACTIONS.get(request.POST.get("action", ""))
    if action is None:
        raise Http404
    return action(request, member, webhook) or redirect("webhook", member.project.slug, pk)


def _change(request: HttpRequest, member: Membership, webhook: Webhook) -> HttpResponse | None:
    form = WebhookForm(request.POST)
    if not form.is_valid():
        return _detail_page(request, member, webhook, form=form)
    webhooks.change(webhook, **form.cleaned_data)
    messages.success(request, _("Saved."))
    return None


def _test(request: HttpRequest, member: Membership, webhook: Webhook) -> None:
    try:
        webhook_events.send_test(webhook)
    except DomainError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, _("A test was sent. The result appears below."))


def _change_secret(request: HttpRequest, member: Membership, webhook: Webhook) -> HttpResponse:
    webhooks.change_secret(webhook)
    return _detail_page(request, member, webhook, secret=webhooks.secret_of(webhook))


def _delete(request: HttpRequest, member: Membership, webhook: Webhook) -> HttpResponse:
    webhook.delete()
    messages.success(request, _("The webhook to %(name)s is off.") % {"name": webhook.host})
    return redirect("webhooks", member.project.slug)


# If an action returns no response, the view redirects to the page of the webhook.
ACTIONS: dict[str, Callable[[HttpRequest, Membership, Webhook], HttpResponse | None]] = {
    "change": _change,
    "on": lambda request, member, webhook: webhooks.switch_on(webhook, request.user),
    "off": lambda request, member, webhook: webhooks.switch_off(webhook, WebhookOffReason.OWNER),
    "test": _test,
    "secret": _change_secret,
    "delete": _delete,
}


def _detail_page(
    request: HttpRequest,
    member: Membership,
    webhook: Webhook,
    form: WebhookForm | None = None,
    secret: str = "",
) -> HttpResponse:
    """Render a webhook. `secret` is shown only in this response, which browsers must not cache."""
    initial = {"url": webhook.url, "events": webhook.events}
    context = {
        "webhook": webhook,
        "form": form or WebhookForm(initial=initial),
        "secret": secret,
        "overlap": int(webhooks.SECRET_OVERLAP.total_seconds() // 3600),
        "deliveries": webhook.deliveries.all()[:MAX_DELIVERIES],
    }
    response = render_page(request, member, "webhook.html", context, status=400 if form else 200)
    if secret:
        response["Cache-Control"] = "no-store"
    return response
