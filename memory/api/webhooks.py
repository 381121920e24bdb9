"""/api/v1/projects/{slug}/webhooks/: webhooks and their deliveries, for owners."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import generics, serializers, status
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from memory import webhook_events, webhooks
from memory.models import Delivery, DeliveryState, Webhook, WebhookEvent, WebhookOffReason
from memory.models.webhooks import SUBSCRIBABLE_EVENTS
from projects.api.idempotency import IdempotentResult, idempotent
from projects.core.api.etags import ETagMixin, check_if_match, is_conditional
from projects.core.api.json import validated
from projects.core.errors import InvalidInputError
from projects.models import Project
from projects.permissions import project_for_managing, project_for_owning


class WebhookSerializer(serializers.ModelSerializer):
    """A receiver of events. Deliveries hold ids and numbers, are signed as in
    https://www.standardwebhooks.com, and arrive at least once; see docs/webhooks.md.
    """

    url = serializers.CharField(
        max_length=2000, help_text="http:// or https://, on the public internet."
    )
    events = serializers.MultipleChoiceField(choices=SUBSCRIBABLE_EVENTS, allow_empty=False)
    is_on = serializers.BooleanField(
        required=False, help_text="If false, nothing is sent, and pending deliveries are dropped."
    )
    off_because = serializers.ChoiceField(
        WebhookOffReason.choices,
        allow_blank=True,
        read_only=True,
        help_text="The reason why the webhook is off; empty if it is on.",
    )
    next_try_at = serializers.DateTimeField(
        read_only=True,
        allow_null=True,
        help_text="After a failure, nothing is sent before this time.",
    )

    class Meta:
        model = Webhook
        fields = """
            id url events is_on off_because off_since failing_since last_error next_try_at
            previous_until created_at
        """.split()
        read_only_fields = ("off_since", "failing_since", "last_error", "previous_until")

    def validate_url(self, url: str) -> str:
        try:
            return webhooks.check_url(url)
        except InvalidInputError as error:
            raise serializers.ValidationError(str(error)) from error

    def to_representation(self, instance: Webhook) -> dict[str, Any]:
        # Sorted, because a set has no order, and equal states must have equal responses.
        return super().to_representation(instance) | {"events": sorted(instance.events)}

    def update(self, instance: Webhook, validated_data: dict[str, Any]) -> Webhook:
        is_on, by = validated_data.pop("is_on", instance.is_on), validated_data.pop("by")
        if validated_data:
            webhooks.change(instance, **validated_data)
        if is_on:
            webhooks.switch_on(instance, by)
        else:
            webhooks.switch_off(instance, WebhookOffReason.OWNER)
        return instance


class NewWebhookSerializer(WebhookSerializer):
    """A webhook with its secret, which is shown only once."""

    secret = serializers.SerializerMethodField(
        help_text="The key for checking signatures. It is not shown again."
    )

    class Meta(WebhookSerializer.Meta):
        fields = [*WebhookSerializer.Meta.fields, "secret"]
        read_only_fields = (*WebhookSerializer.Meta.read_only_fields, "secret")  # type: ignore[assignment]

    def get_secret(self, webhook: Webhook) -> str:
        return webhooks.secret_of(webhook)


class WebhookSecretSerializer(serializers.Serializer):
    """The new secret, which is shown only once. Until `previous_until`, deliveries are also signed
    with the previous secret.
    """

    secret = serializers.CharField()
    previous_until = serializers.DateTimeField()


class DeliverySerializer(serializers.ModelSerializer):
    """One delivery. `id` is the value of its `webhook-id` header. `status_code`, `latency_ms` and
    `error` are the results of the last attempt.
    """

    event = serializers.ChoiceField(WebhookEvent.choices)
    state = serializers.ChoiceField(DeliveryState.choices)
    data = serializers.SerializerMethodField()
    next_try_at = serializers.SerializerMethodField()

    class Meta:
        model = Delivery
        fields = """
            id event data state attempts status_code latency_ms error created_at tried_at
            next_try_at
        """.split()
        read_only_fields = fields

    @extend_schema_field({"type": "object", "additionalProperties": True})
    def get_data(self, delivery: Delivery) -> dict[str, Any]:
        return delivery.data

    def get_next_try_at(self, delivery: Delivery) -> datetime | None:
        """Return the time of the next attempt. A test is due before it was created, so that it
        precedes all other deliveries.
        """
        at = delivery.next_try_at
        return None if at is None else max(at, delivery.created_at)


class WebhookBaseView(APIView):
    """Base of the views of webhooks. Only owners may see them: a URL may contain a secret."""

    scope = reading_scope = "admin"
    project: Project

    def initial(self, request, *args, **kwargs) -> None:
        super().initial(request, *args, **kwargs)
        find = project_for_owning if request.method in SAFE_METHODS else project_for_managing
        self.project = find(request.user, kwargs["slug"], request.auth)

    def webhooks(self) -> QuerySet[Webhook]:
        return Webhook.objects.filter(project=self.project)

    def webhook(self, pk: str = "") -> Webhook:
        return get_object_or_404(self.webhooks(), pk=pk or self.kwargs["pk"])


def _created_response(webhook: Webhook) -> Response:
    data = NewWebhookSerializer(webhook).data
    return Response(data, status.HTTP_201_CREATED, headers={"Cache-Control": "no-store"})


class WebhookListView(WebhookBaseView, generics.ListAPIView):
    """The webhooks of a project. Only for its owners."""

    queryset = Webhook.objects.none()
    serializer_class = WebhookSerializer

    def get_queryset(self) -> QuerySet[Webhook]:
        return self.webhooks()

    @extend_schema(request=WebhookSerializer, responses={201: NewWebhookSerializer})
    @idempotent(lambda view, request, ids: _created_response(view.webhook(ids["id"])))
    def post(self, request, *args, **kwargs) -> Response:
        """Register a webhook. The response contains its secret, which is not shown again."""
        data = validated(WebhookSerializer, request.data)
        webhook = webhooks.register(self.project, data["url"], data["events"], request.user)
        if not data.get("is_on", True):
            webhooks.switch_off(webhook, WebhookOffReason.OWNER)
        return _created_response(webhook)


class WebhookDetailView(ETagMixin, WebhookBaseView, generics.RetrieveUpdateDestroyAPIView):
    """One webhook. Only for the project's owners."""

    queryset = Webhook.objects.none()
    serializer_class = WebhookSerializer
    http_method_names = ("get", "patch", "delete", "head", "options")

    def get_object(self) -> Webhook:
        return self.webhook()

    @transaction.atomic
    def perform_update(self, serializer) -> None:
        self.check_version(serializer.instance)
        serializer.save(by=self.request.user)

    @transaction.atomic
    def perform_destroy(self, instance: Webhook) -> None:
        self.check_version(instance)
        instance.delete()

    def check_version(self, webhook: Webhook) -> None:
        if is_conditional(self.request):
            current = self.webhooks().select_for_update().get(pk=webhook.pk)
            check_if_match(self.request, self.get_serializer(current).data)


def _secret_response(webhook: Webhook) -> Response:
    data = {"secret": webhooks.secret_of(webhook), "previous_until": webhook.previous_until}
    return Response(WebhookSecretSerializer(data).data, headers={"Cache-Control": "no-store"})


class WebhookSecretView(WebhookBaseView):
    @extend_schema(request=None, responses=WebhookSecretSerializer)
    @idempotent(lambda view, request, ids: _secret_response(view.webhook()))
    def post(self, request, slug: str, pk) -> IdempotentResult:
        """Create a new secret. For 24 hours, deliveries are also signed with the previous one."""
        webhook = self.webhook()
        webhooks.change_secret(webhook)
        response = _secret_response(webhook)
        return IdempotentResult(status.HTTP_200_OK, {"id": str(webhook.pk)}, lambda: response)


def _replay_test(view: WebhookBaseView, request: Request, ids: Mapping[str, Any]) -> Response:
    delivery = get_object_or_404(Delivery, webhook=view.webhook(), pk=ids["id"])
    return Response(DeliverySerializer(delivery).data, status.HTTP_202_ACCEPTED)


class WebhookTestView(WebhookBaseView):
    @extend_schema(request=None, responses={202: DeliverySerializer})
    @idempotent(_replay_test)
    def post(self, request, slug: str, pk) -> Response:
        """Queue a `webhook.test` event, which is sent once. Its delivery shows the result."""
        delivery = webhook_events.send_test(self.webhook())
        delivery.refresh_from_db()
        return Response(DeliverySerializer(delivery).data, status.HTTP_202_ACCEPTED)


class DeliveryListView(WebhookBaseView, generics.ListAPIView):
    """The deliveries of the last 30 days, newest first."""

    queryset = Delivery.objects.none()
    serializer_class = DeliverySerializer
    filterset_fields = ("state", "event")

    def get_queryset(self) -> QuerySet[Delivery]:
        return Delivery.objects.filter(webhook=self.webhook())
