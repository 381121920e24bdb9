"""The first-run page: explore the demo, or create a project."""

import logging
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from chat.providers import catalogue, discovery
from memory import demo
from memory.tasks import make_demo
from projects.forms import SearchableSelect
from projects.models import Project, validate_model_name
from projects.models.server import default_chat_model
from projects.services import create_project

log = logging.getLogger(__name__)

# The value for a model that is not in the list.
OTHER = "other"


class WelcomeForm(forms.ModelForm):
    """The first project and its chat model. An empty choice means the server's default model."""

    model = forms.ChoiceField(label=_("Model"), required=False, widget=SearchableSelect)
    other = forms.CharField(
        label=_("Model name"),
        required=False,
        max_length=200,
        help_text=_("For example openai-chat:gpt-5-mini."),
    )

    class Meta:
        model = Project
        fields = ("name",)
        labels = {"name": _("Name")}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["model"]
        assert isinstance(field, forms.ChoiceField)
        models = catalogue.known_models()
        field.choices = [*catalogue.select_choices(models, ""), (OTHER, _("Another model…"))]

    def clean(self) -> dict[str, Any]:
        data = super().clean() or self.cleaned_data
        if data.get("model") == OTHER:
            try:
                validate_model_name(data.get("other", ""))
            except forms.ValidationError as error:
                self.add_error("other", error)
            if not data.get("other"):
                self.add_error("other", _("Enter a model name."))
            if not self.errors:
                try:
                    catalogue.check_model(Project(), data["other"])
                except catalogue.ModelNameError as error:
                    self.add_error("other", str(error))
        return data

    @property
    def model_name(self) -> str:
        """The chosen model; empty for the server's default model."""
        data = self.cleaned_data
        return str(data.get("other", "") if data["model"] == OTHER else data["model"])


def _begin_demo(user: Any) -> Project:
    """Return the demo project of `user`. If it is new, a worker fills it."""
    project = demo.begin_demo(user)
    if project.is_being_made:
        try:
            make_demo.delay(str(project.pk))
        except Exception as error:
            # Brokers have no common exception class.
            log.warning("demo_enqueue_failed project=%s cause=%r", project.pk, error)
            demo.fill(project.pk)
    return project


@require_http_methods(["GET", "POST"])
def welcome(request: HttpRequest) -> HttpResponse:
    """Show the page. A POST request begins the demo, tests a model, or creates a project."""
    action = request.POST.get("action", "")
    if request.method == "GET":
        discovery.refresh_ollama()
    form = WelcomeForm(request.POST or None, initial={"model": ""})
    context: dict[str, Any] = {"form": form}
    if action == "demo":
        return redirect("project", _begin_demo(request.user).slug)
    if action == "try":
        # The name is not needed to test a model.
        form.fields["name"].required = False
        if form.is_valid():
            name = form.model_name or default_chat_model()
            context |= {"tried": discovery.try_model(name), "tried_name": name}
            return render(request, "memory/welcome.html", context)
    elif request.method == "POST" and form.is_valid():
        fields = {"name": form.cleaned_data["name"], "chat_model": form.model_name}
        return redirect("project", create_project(request.user, **fields).slug)
    status = 400 if form.is_bound else 200
    return render(request, "memory/welcome.html", context, status=status)
