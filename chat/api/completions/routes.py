"""Where OpenAI's clients look."""

from django.urls import path

from chat.api.completions import views

urlpatterns = [
    path("chat/completions", views.Completions.as_view(), name="v1-completions"),
    path("models", views.Models.as_view(), name="v1-models"),
    path("models/<path:name>", views.OneModel.as_view(), name="v1-model"),
]
