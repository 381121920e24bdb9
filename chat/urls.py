"""The pages of a project's chats."""

from django.urls import path

from chat import views

urlpatterns = [
    path("projects/<slug:slug>/", views.project, name="project"),
    path("projects/<slug:slug>/chats/", views.create, name="session-new"),
    path("projects/<slug:slug>/chats/<uuid:pk>/", views.session, name="session"),
    path("projects/<slug:slug>/chats/<uuid:pk>/messages/", views.post, name="session-post"),
    path("projects/<slug:slug>/chats/<uuid:pk>/prompt/", views.prompt, name="session-prompt"),
    path("projects/<slug:slug>/chats/<uuid:pk>/edit/", views.edit, name="session-edit"),
    path("messages/<uuid:pk>/regenerate/", views.regenerate, name="message-regenerate"),
    path("messages/<uuid:pk>/stream/", views.stream, name="reply-stream"),
]
