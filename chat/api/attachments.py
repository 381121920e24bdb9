"""/api/v1/…/attachments/: images on their way into a conversation and out of it."""

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.parsers import MultiPartParser
from rest_framework.response import Response
from rest_framework.views import APIView

from chat import access, attachments, images
from chat.models import Attachment, Session
from chat.serving import EXTENSIONS, image_response
from projects.api.idempotency import idempotent


class AttachmentSerializer(serializers.ModelSerializer):
    """An image as it is kept here, and where it is."""

    url = serializers.SerializerMethodField()

    class Meta:
        model = Attachment
        fields = ("id", "name", "media_type", "width", "height", "size", "description", "url")
        read_only_fields = fields

    def get_url(self, attachment: Attachment) -> str:
        return reverse("api-attachment", args=[attachment.pk])


class UploadSerializer(serializers.Serializer):
    """An image file: PNG, JPEG, WebP or the first frame of a GIF."""

    file = serializers.FileField()
    description = serializers.CharField(required=False, allow_blank=True, max_length=1_000)


class InlineSerializer(serializers.Serializer):
    """An image in the request itself, in base64."""

    data = serializers.CharField(trim_whitespace=False)
    name = serializers.CharField(required=False, allow_blank=True, max_length=200)
    description = serializers.CharField(required=False, allow_blank=True, max_length=1_000)

    def validate_data(self, data: str) -> images.Encoded:
        if len(data) > images.MOST_BYTES * 4 // 3 + 4:
            raise serializers.ValidationError(images.TOO_BIG)
        try:
            return images.reencode(base64.b64decode(data, validate=True))
        except (binascii.Error, ValueError) as error:
            raise serializers.ValidationError("This is not base64.") from error
        except images.Refused as refused:
            raise serializers.ValidationError(str(refused)) from refused


@dataclass(frozen=True)
class Inline:
    """An image that came in a request: made anew, but not stored yet."""

    data: images.Encoded
    name: str = ""
    description: str = ""


_ITEMS = {
    "type": "array",
    "maxItems": attachments.MOST_A_MESSAGE,
    "items": {
        "oneOf": [
            {"type": "string", "format": "uuid", "description": "An image uploaded before."},
            {
                "type": "object",
                "required": ["data"],
                "properties": {
                    "data": {"type": "string", "format": "byte"},
                    "name": {"type": "string", "maxLength": 200},
                    "description": {"type": "string", "maxLength": 1_000},
                },
            },
        ]
    },
}


@extend_schema_field(_ITEMS)
class AttachmentsField(serializers.Field):
    """The images of a message: ids of uploads, or images in base64. To UUIDs and Inlines."""

    def to_internal_value(self, data: object) -> list[UUID | Inline]:
        if not isinstance(data, list):
            raise serializers.ValidationError("This takes a list of images.")
        if len(data) > attachments.MOST_A_MESSAGE:
            raise serializers.ValidationError(attachments.TOO_MANY)
        return [self._item(number, item) for number, item in enumerate(data, start=1)]

    def _item(self, number: int, item: object) -> UUID | Inline:
        try:
            if isinstance(item, dict):
                inline = InlineSerializer(data=item)
                inline.is_valid(raise_exception=True)
                return Inline(**inline.validated_data)
            return serializers.UUIDField().run_validation(item)
        except serializers.ValidationError as error:
            raise serializers.ValidationError(
                [f"Image {number}: {reason}" for reason in _reasons(error.detail)]
            ) from error

    def to_representation(self, value: object) -> object:
        return value


def _reasons(detail: object) -> Iterable[str]:
    if isinstance(detail, dict):
        return [reason for reasons in detail.values() for reason in _reasons(reasons)]
    return [str(one) for one in detail] if isinstance(detail, list) else [str(detail)]


def stored(session: Session, user, items: Iterable[UUID | Inline]) -> list[UUID]:
    """The ids of `items`, those that came in the request itself stored for a message to come."""
    return [
        item
        if isinstance(item, UUID)
        else attachments.keep(session, user, item.name, item.data, item.description).pk
        for item in items
    ]


def _tell_again(view, request, made) -> Response:
    kept = attachments.for_reading(request.user, made["id"], request.auth)
    return Response(AttachmentSerializer(kept).data)


class Attachments(APIView):
    """Images for messages to come."""

    parser_classes = (MultiPartParser,)

    @extend_schema(
        request={"multipart/form-data": UploadSerializer}, responses={201: AttachmentSerializer}
    )
    @idempotent(_tell_again)
    def post(self, request, pk) -> Response:
        """Uploads one. Unless a message claims it within a day, it is removed."""
        session = access.session_for_writing(request.user, pk, request.auth)
        given = UploadSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        file, description = given.validated_data["file"], given.validated_data.get("description")
        try:
            kept = attachments.attach(session, request.user, file.name, file, description or "")
        except attachments.Refused as refused:
            raise serializers.ValidationError({"file": [str(refused)]}) from refused
        return Response(AttachmentSerializer(kept).data, status.HTTP_201_CREATED)


class OneAttachment(APIView):
    """An image, for who may see its session."""

    @extend_schema(responses={(200, kind): OpenApiTypes.BINARY for kind in EXTENSIONS})
    def get(self, request, pk):
        found = attachments.for_reading(request.user, pk, request.auth)
        return image_response(request, found, download=True)
