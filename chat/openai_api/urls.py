"""Routes of the OpenAI-compatible API."""

from django.urls import path

from chat.openai_api import views

urlpatterns = [
    path("chat/completions", views.ChatCompletionView.as_view(), name="v1-completions"),
    path("models", views.ModelListView.as_view(), name="v1-models"),
    path("models/<path:name>", views.ModelDetailView.as_view(), name="v1-model"),
]
