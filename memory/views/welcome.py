"""The first run: a model, a project, or the demo to look around in."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from chat.providers import finding
from memory import demo
from projects.creation import create_project
from projects.models import Project, validate_model_name

# The choice of a model that is not listed.
OTHER = "other"


class WelcomeForm(forms.ModelForm):
    """A first project, and which of the models at hand answers in it; empty is the server's own."""

    model = forms.ChoiceField(required=False, widget=forms.RadioSelect)
    other = forms.CharField(
        label=_("Another model"),
        required=False,
        max_length=200,
        help_text=_("Its name, such as openai-chat:gpt-5-mini; its key stands in the environment."),
    )

    class Meta:
        model = Project
        fields = ("name",)
        labels = {"name": _("Name")}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choice = self.fields["model"]
        assert isinstance(choice, forms.ChoiceField)
        found = dict.fromkeys([*finding.ollama(), *finding.with_keys()])
        own = _("The server’s: %(name)s") % {"name": settings.CHAT_MODEL}
        listed = [(name, name) for name in found if name != settings.CHAT_MODEL]
        choice.choices = [("", own), *listed, (OTHER, _("Another one"))]

    def clean(self) -> dict[str, Any]:
        given = super().clean() or self.cleaned_data
        if given.get("model") == OTHER:
            try:
                validate_model_name(given.get("other", ""))
            except forms.ValidationError as error:
                self.add_error("other", error)
            if not given.get("other"):
                self.add_error("other", _("Which one?"))
        return given

    @property
    def chosen(self) -> str:
        """The name of the chosen model; empty for the server's own."""
        given = self.cleaned_data
        return str(given.get("other", "") if given["model"] == OTHER else given["model"])


@login_required
@require_http_methods(["GET", "POST"])
def welcome(request: HttpRequest) -> HttpResponse:
    """Asks which model answers, tries it if wished, and makes a project or takes the demo."""
    action = request.POST.get("action", "")
    form = WelcomeForm(request.POST or None, initial={"model": ""})
    if action == "demo":
        return redirect("memory", demo.make(request.user).slug)
    if action == "try":
        return _tried(request, form)
    if request.method == "POST" and form.is_valid():
        fields = {"name": form.cleaned_data["name"], "chat_model": form.chosen}
        return redirect("project", create_project(request.user, **fields).slug)
    return _page(request, form, status=400 if form.is_bound else 200)


def _tried(request: HttpRequest, form: WelcomeForm) -> HttpResponse:
    # Trying needs no name yet.
    form.fields["name"].required = False
    if not form.is_valid():
        return _page(request, form, status=400)
    name = form.chosen or settings.CHAT_MODEL
    return _page(request, form, tried=finding.ask(name), tried_name=name)


def _page(request: HttpRequest, form: WelcomeForm, status: int = 200, **told: Any) -> HttpResponse:
    return render(request, "memory/welcome.html", {"form": form} | told, status=status)
