"""`{% search_line form %}`: a search field in one line. A button opens the filters of the form."""

from typing import Any, NamedTuple

from django import forms, template
from django.utils.choices import flatten_choices
from django.utils.formats import date_format

register = template.Library()

# The field that is shown in the line.
QUERY_FIELD = "q"


class ActiveFilter(NamedTuple):
    """A filter that is set, and the query string of the page without this filter."""

    label: str
    value: str
    without: str


@register.inclusion_tag("memory/_search_line.html", takes_context=True)
def search_line(context: template.Context, form: forms.Form) -> dict[str, Any]:
    """Return the parts of the line. Active filters follow, each with a link to remove it."""
    filters = [field for field in form.visible_fields() if field.name != QUERY_FIELD]
    return {
        "form": form,
        "query": form[QUERY_FIELD],
        "filters": filters,
        "active": [
            ActiveFilter(str(field.label), text, _without(context, field.name))
            for field in filters
            if (text := _chosen(form, field.name))
        ],
        "is_open": any(field.errors for field in filters),
    }


def _chosen(form: forms.Form, name: str) -> str:
    """Return the chosen value of a field as readable text; empty without a valid value."""
    value = getattr(form, "cleaned_data", {}).get(name)
    if not value:
        return ""
    field = form.fields[name]
    if isinstance(field, forms.ChoiceField):
        choices: Any = field.choices
        return str(dict(flatten_choices(choices)).get(value, value))
    return date_format(value) if isinstance(field, forms.DateField) else str(value)


def _without(context: template.Context, name: str) -> str:
    parameters = context["request"].GET.copy()
    for dropped in (name, "page"):
        parameters.pop(dropped, None)
    return parameters.urlencode()
