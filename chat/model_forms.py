"""Forms for model providers, and for the choice of models."""

from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from chat import providers
from chat.models import ModelProvider, ProviderKind, ReasoningEffort, Session
from chat.models.providers import validate_provider_name
from chat.providers import catalogue, discovery
from chat.providers.catalogue import DEMO, KnownModel
from projects.forms import SearchableSelect
from projects.models import Project
from projects.models.server import EXTRACTIVE, ServerModels, save_defaults

# Without Ollama, which is detected automatically.
PROVIDER_CHOICES = [kind for kind in ProviderKind.choices if kind[0] != ProviderKind.OLLAMA]


class ProviderForm(forms.Form):
    """A model provider and its key. The key is tested before it is saved."""

    kind = forms.ChoiceField(label=_("Provider"), choices=PROVIDER_CHOICES)
    key = forms.CharField(
        label=_("API key"),
        required=False,
        max_length=2_000,
        widget=forms.PasswordInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
        help_text=_("Stored encrypted. It is never shown again."),
    )
    name = forms.CharField(
        label=_("Name"),
        required=False,
        max_length=40,
        help_text=_(
            "Only for an OpenAI-compatible server. The names of its models begin with this."
        ),
    )
    address = forms.CharField(
        label=_("Address"),
        required=False,
        max_length=2_000,
        help_text=_("Only for an OpenAI-compatible server, such as https://llm.example.org/v1."),
        widget=forms.URLInput,
    )

    def clean(self) -> dict[str, Any]:
        data = super().clean() or self.cleaned_data
        if data.get("kind") == ProviderKind.COMPATIBLE:
            self._clean_compatible(data)
        elif not data.get("key", True):
            self.add_error("key", _("Enter a key."))
        if self.errors:
            return data
        is_own = data["kind"] == ProviderKind.COMPATIBLE
        if not is_own:
            data |= {"name": data["kind"], "address": ""}
        address = data["address"] or providers.ADDRESSES[data["kind"]]
        server = providers.ModelServer(
            data["kind"], address, data["key"] or providers.NO_KEY, is_own
        )
        try:
            data["catalogue"] = discovery.check_server(server)
        except discovery.ProviderCheckError as error:
            self.add_error("address" if is_own else "key", str(error))
        return data

    def clean_key(self) -> str:
        """Reject keys that cannot be sent in a header, such as keys with typographic characters."""
        key = str(self.cleaned_data["key"])
        if not key.isascii() or not key.isprintable():
            raise forms.ValidationError(_("This is not a key. Copy it again."))
        return key

    def _clean_compatible(self, data: dict[str, Any]) -> None:
        if not data.get("address"):
            self.add_error("address", _("Enter the address of the server."))
        if not data.get("name", True):
            self.add_error("name", _("Enter a name."))
            return
        try:
            validate_provider_name(data.get("name", ""))
        except forms.ValidationError as error:
            self.add_error("name", error)

    def save(self) -> ModelProvider:
        """Create the provider, or replace the one with the same name."""
        data = self.cleaned_data
        provider = ModelProvider.objects.filter(name=data["name"]).first()
        provider = provider or ModelProvider(name=data["name"])
        provider.kind, provider.address = data["kind"], data["address"]
        provider.set_key(data["key"] or providers.NO_KEY)
        provider.catalogue, provider.checked_at = data["catalogue"], timezone.now()
        provider.save()
        providers.clear_provider_cache()
        return provider


class ServerModelsForm(forms.Form):
    """The models of projects that do not choose a model."""

    chat_model = forms.ChoiceField(label=_("Chat model"), required=False, widget=SearchableSelect)
    system_model = forms.ChoiceField(
        label=_("Model for summaries"), required=False, widget=SearchableSelect
    )

    def __init__(self, data: Any = None) -> None:
        row = ServerModels.objects.first() or ServerModels()
        stored = {"chat_model": row.chat_model, "system_model": row.system_model}
        super().__init__(data, initial=stored)
        known = catalogue.known_models()
        for name, default in (
            ("chat_model", _("Demo model")),
            ("system_model", _("Same as the chat model (with the demo model: extractive)")),
        ):
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)
            field.choices = catalogue.select_choices(
                {key: it for key, it in known.items() if key != DEMO or name == "system_model"},
                stored[name],
                is_for_summaries=name == "system_model",
                default=str(default),
            )

    def save(self) -> None:
        save_defaults(self.cleaned_data["chat_model"], self.cleaned_data["system_model"])


class ProjectModelsForm(forms.Form):
    """The models that a project may use. An empty choice allows all, including later ones."""

    allowed_models = forms.MultipleChoiceField(
        label=_("Allowed models"), required=False, widget=forms.CheckboxSelectMultiple
    )
    chat_model = forms.ChoiceField(label=_("Chat model"), required=False, widget=SearchableSelect)

    def __init__(self, project: Project, data: Any = None) -> None:
        stored = {"allowed_models": project.allowed_models, "chat_model": project.chat_model}
        super().__init__(data, initial=stored)
        self.project = project
        models = catalogue.known_models()
        for name in [*project.allowed_models, project.chat_model_name, project.system_model_name]:
            if name != EXTRACTIVE:
                models.setdefault(name, catalogue.KnownModel(name))
        allowed, chat = self.fields["allowed_models"], self.fields["chat_model"]
        assert isinstance(allowed, forms.ChoiceField) and isinstance(chat, forms.ChoiceField)
        allowed.choices = [
            (name, " · ".join(filter(None, [name, model.details])))
            for name, model in models.items()
        ]
        chat.choices = catalogue.select_choices(models, project.chat_model)

    def clean(self) -> dict[str, Any]:
        """Reject a chat model that is not allowed, because nobody could use it."""
        data = super().clean() or self.cleaned_data
        project = self.project
        project.allowed_models = data.get("allowed_models", [])
        project.chat_model = data.get("chat_model", "")
        if not self.errors and not project.allows_model(project.chat_model_name):
            self.add_error("chat_model", _("Choose one of the allowed models."))
        return data

    def save(self) -> None:
        self.project.save(update_fields=["allowed_models", "chat_model"])


def _has_effort(model: KnownModel) -> bool:
    return model.reasoning is not False and model.name != DEMO


class SessionModelForm(forms.ModelForm):
    """The model of a chat, with its temperature and effort if the model has them. A new chat has
    each of them that any model has.
    """

    chat_model = forms.ChoiceField(label=_("Model"), required=False, widget=SearchableSelect)
    temperature = forms.FloatField(
        label=_("Temperature"),
        required=False,
        min_value=0,
        max_value=2,
        widget=forms.NumberInput(attrs={"step": "0.1"}),
        help_text=_("0: similar answers. 1 or more: varied answers. Empty: the default."),
    )

    class Meta:
        model = Session
        fields = ("chat_model", "temperature", "reasoning_effort")
        labels = {"reasoning_effort": _("Reasoning effort")}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        session = self.instance
        models = catalogue.models_for(session.project)
        field = self.fields["chat_model"]
        assert isinstance(field, forms.ChoiceField)
        default = _("Project: %(name)s") % {"name": session.project.chat_model_name}
        field.choices = catalogue.select_choices(models, session.chat_model, default=default)
        self.models = models
        offered = models.values() if session._state.adding else [self._model(session.chat_model)]
        effort = self.fields["reasoning_effort"]
        assert isinstance(effort, forms.ChoiceField)
        effort.choices = [("", _("Default")), *ReasoningEffort.choices]
        if not any(model.temperature for model in offered):
            del self.fields["temperature"]
        if not any(_has_effort(model) for model in offered):
            del self.fields["reasoning_effort"]

    def _model(self, name: str) -> KnownModel:
        name = name or self.instance.project.chat_model_name
        return self.models.get(name, KnownModel(name))

    def clean(self) -> dict[str, Any]:
        """Drop the settings that the chosen model does not have."""
        data = super().clean() or self.cleaned_data
        model = self._model(data.get("chat_model", ""))
        if not model.temperature and "temperature" in data:
            data["temperature"] = None
        if not _has_effort(model) and "reasoning_effort" in data:
            data["reasoning_effort"] = ""
        return data

    def changes(self) -> dict[str, Any]:
        """Return the changed settings, for `conversations.sessions.update_session`. They include
        those that the chosen model does not have.
        """
        return {
            name: value for name, value in self.cleaned_data.items() if value != self.initial[name]
        }


class RegenerateForm(forms.Form):
    """The model of another reply; empty for that of the chat."""

    model = forms.CharField(label=_("Model"), required=False, max_length=200)

    def __init__(self, session: Session, data: Any = None) -> None:
        super().__init__(data)
        self.session = session

    def add_choices(self) -> None:
        """Offer the models, which takes a query."""
        default = _("Chat: %(name)s") % {"name": self.session.chat_model_name}
        models = catalogue.models_for(self.session.project)
        choices = catalogue.select_choices(models, "", default=default)
        self.fields["model"].widget = SearchableSelect(choices=choices)

    def clean_model(self) -> str:
        name = str(self.cleaned_data["model"])
        catalogue.check_model(self.session.project, name)
        return name
