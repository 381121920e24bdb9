"""/api/v1/projects/{slug}/webhooks/: who is told of what happens, for the project's owners."""

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import generics, serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from memory.models import Delivery, DeliveryState, Event, OffBecause, Webhook
from memory.models.webhooks import ANNOUNCED
from memory.webhooks import registering, telling
from memory.webhooks.registering import Refused
from memory.webhooks.signing import secret_of
from projects.access import project_for_owning
from projects.api.idempotency import Made, idempotent
from projects.models import Project


class WebhookSerializer(serializers.ModelSerializer):
    """A receiver. It is told ids and numbers, signed as https://www.standardwebhooks.com says, at
    least once each; docs/webhooks.md lists what.
    """

    url = serializers.CharField(
        max_length=2000, help_text="http:// or https://, on the public internet."
    )
    events = serializers.MultipleChoiceField(choices=ANNOUNCED, allow_empty=False)
    is_on = serializers.BooleanField(
        required=False, help_text="Off, it is told nothing, and what waited is given up."
    )
    off_because = serializers.ChoiceField(
        OffBecause.choices, allow_blank=True, read_only=True, help_text="Empty: it is on."
    )
    next_try_at = serializers.DateTimeField(
        read_only=True,
        allow_null=True,
        help_text="After a failure the receiver is left alone until then.",
    )

    class Meta:
        model = Webhook
        fields = (
            "id",
            "url",
            "events",
            "is_on",
            "off_because",
            "off_since",
            "failing_since",
            "last_error",
            "next_try_at",
            "previous_until",
            "created_at",
        )
        read_only_fields = ("off_since", "failing_since", "last_error", "previous_until")

    def validate_url(self, url: str) -> str:
        try:
            return registering.check_url(url)
        except Refused as refused:
            raise serializers.ValidationError(str(refused)) from refused

    def to_representation(self, instance: Webhook) -> dict[str, Any]:
        # A set has no order, and an answer should not differ from the one before.
        return super().to_representation(instance) | {"events": sorted(instance.events)}

    def update(self, instance: Webhook, validated_data: dict[str, Any]) -> Webhook:
        is_on = validated_data.pop("is_on", instance.is_on)
        if validated_data:
            registering.change(instance, **validated_data)
        if is_on:
            registering.switch_on(instance)
        else:
            registering.switch_off(instance, OffBecause.OWNER)
        return instance


class NewWebhookSerializer(WebhookSerializer):
    """With the secret, which is shown this once."""

    secret = serializers.SerializerMethodField(
        help_text="To check signatures with. It is not shown again."
    )

    class Meta(WebhookSerializer.Meta):
        fields = (*WebhookSerializer.Meta.fields, "secret")  # type: ignore[assignment]
        read_only_fields = (*WebhookSerializer.Meta.read_only_fields, "secret")  # type: ignore[assignment]

    def get_secret(self, webhook: Webhook) -> str:
        return secret_of(webhook)


class SecretSerializer(serializers.Serializer):
    """It is shown this once. The one before signs too until `previous_until`."""

    secret = serializers.CharField()
    previous_until = serializers.DateTimeField()


class DeliverySerializer(serializers.ModelSerializer):
    """What was told, or is to be: `id` is its `webhook-id`. `status_code`, `latency_ms` and
    `error` are those of the last attempt.
    """

    event = serializers.ChoiceField(Event.choices)
    state = serializers.ChoiceField(DeliveryState.choices)
    data = serializers.SerializerMethodField()

    class Meta:
        model = Delivery
        fields = (
            "id",
            "event",
            "data",
            "state",
            "attempts",
            "status_code",
            "latency_ms",
            "error",
            "created_at",
            "tried_at",
            "next_try_at",
        )
        read_only_fields = fields

    @extend_schema_field({"type": "object", "additionalProperties": True})
    def get_data(self, delivery: Delivery) -> dict[str, Any]:
        return delivery.data


class OwnersOnly(APIView):
    """Owners see and change webhooks, since an address may hold a secret of its own."""

    scope = reading_scope = "admin"
    project: Project

    def initial(self, request, *args, **kwargs) -> None:
        super().initial(request, *args, **kwargs)
        self.project = project_for_owning(request.user, kwargs["slug"], request.auth)

    def webhooks(self) -> QuerySet[Webhook]:
        return Webhook.objects.filter(project=self.project)

    def webhook(self) -> Webhook:
        return get_object_or_404(self.webhooks(), pk=self.kwargs["pk"])


def _told(webhook: Webhook) -> Response:
    data = NewWebhookSerializer(webhook).data
    return Response(data, status.HTTP_201_CREATED, headers={"Cache-Control": "no-store"})


def _webhook_again(view: OwnersOnly, request: Request, made: Mapping[str, Any]) -> Response:
    return _told(get_object_or_404(view.webhooks(), pk=made["id"]))


def _test_again(view: OwnersOnly, request: Request, made: Mapping[str, Any]) -> Response:
    delivery = get_object_or_404(Delivery, webhook=view.webhook(), pk=made["id"])
    return Response(DeliverySerializer(delivery).data, status.HTTP_202_ACCEPTED)


class Webhooks(OwnersOnly, generics.ListAPIView):
    """The receivers that are told of what happens in a project. For its owners."""

    queryset = Webhook.objects.none()
    serializer_class = WebhookSerializer

    def get_queryset(self) -> QuerySet[Webhook]:
        return self.webhooks()

    @extend_schema(request=WebhookSerializer, responses={201: NewWebhookSerializer})
    @idempotent(_webhook_again)
    def post(self, request, *args, **kwargs) -> Response:
        """Registers a receiver. The answer has its secret, which is not shown again."""
        given = WebhookSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        wish = given.validated_data
        try:
            made = registering.register(self.project, wish["url"], wish["events"], request.user)
        except Refused as refused:
            raise ValidationError({"detail": str(refused)}) from refused
        if not wish.get("is_on", True):
            registering.switch_off(made, OffBecause.OWNER)
        return _told(made)


class OneWebhook(OwnersOnly, generics.RetrieveUpdateDestroyAPIView):
    """One receiver. For the project's owners."""

    queryset = Webhook.objects.none()
    serializer_class = WebhookSerializer
    http_method_names = ("get", "patch", "delete", "head", "options")

    def get_object(self) -> Webhook:
        return self.webhook()


def _secret(webhook: Webhook) -> Response:
    told = {"secret": secret_of(webhook), "previous_until": webhook.previous_until}
    return Response(SecretSerializer(told).data, headers={"Cache-Control": "no-store"})


def _secret_again(view: OwnersOnly, request: Request, made: Mapping[str, Any]) -> Response:
    return _secret(view.webhook())


class NewSecret(OwnersOnly):
    @extend_schema(request=None, responses=SecretSerializer)
    @idempotent(_secret_again)
    def post(self, request, slug: str, pk) -> Made:
        """Gives the webhook another secret. For 24 hours the one before signs too."""
        webhook = self.webhook()
        registering.change_secret(webhook)
        told = _secret(webhook)
        return Made(status.HTTP_200_OK, {"id": str(webhook.pk)}, lambda: told)


class TestWebhook(OwnersOnly):
    @extend_schema(request=None, responses={202: DeliverySerializer})
    @idempotent(_test_again)
    def post(self, request, slug: str, pk) -> Response:
        """Sends a `webhook.test`, once, within a moment; its delivery says what came of it."""
        try:
            delivery = telling.test(self.webhook())
        except Refused as refused:
            raise ValidationError({"detail": str(refused)}) from refused
        delivery.refresh_from_db()
        return Response(DeliverySerializer(delivery).data, status.HTTP_202_ACCEPTED)


class Deliveries(OwnersOnly, generics.ListAPIView):
    """What a receiver was told in the last 30 days, and what it is still to be told; the newest
    first.
    """

    queryset = Delivery.objects.none()
    serializer_class = DeliverySerializer
    filterset_fields = ("state", "event")

    def get_queryset(self) -> QuerySet[Delivery]:
        return Delivery.objects.filter(webhook=self.webhook())
