"""/api/v1/…/attachments/: upload and download images of messages."""

import base64
import binascii
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.parsers import MultiPartParser
from rest_framework.response import Response
from rest_framework.views import APIView

from chat import attachments, permissions
from chat.attachments import images
from chat.attachments.responses import EXTENSIONS, image_response
from chat.models import Attachment, Session
from projects.api.idempotency import idempotent
from projects.api.serializers import SingleFileField
from projects.core.api.json import validated


class AttachmentSerializer(serializers.ModelSerializer):
    """A stored image and its URL."""

    url = serializers.SerializerMethodField()

    class Meta:
        model = Attachment
        fields = ("id", "name", "media_type", "width", "height", "size", "description", "url")
        read_only_fields = fields

    def get_url(self, attachment: Attachment) -> str:
        return reverse("api-attachment", args=[attachment.pk])


class UploadSerializer(serializers.Serializer):
    """An image file: PNG, JPEG, WebP or GIF. Of a GIF, only the first frame is stored."""

    file = SingleFileField()
    description = serializers.CharField(required=False, allow_blank=True, max_length=1_000)


class InlineSerializer(serializers.Serializer):
    """An image in the body of the request, encoded in base64."""

    data = serializers.CharField(trim_whitespace=False)
    name = serializers.CharField(required=False, allow_blank=True, max_length=200)
    description = serializers.CharField(required=False, allow_blank=True, max_length=1_000)

    def validate_data(self, data: str) -> images.EncodedImage:
        if len(data) > images.MAX_IMAGE_BYTES * 4 // 3 + 4:
            raise serializers.ValidationError(images.TOO_MANY_BYTES)
        try:
            return images.reencode(base64.b64decode(data, validate=True))
        except (binascii.Error, ValueError) as error:
            raise serializers.ValidationError("This is not base64.") from error
        except images.ImageRejectedError as error:
            raise serializers.ValidationError(str(error)) from error


@dataclass(frozen=True)
class InlineImage:
    """An image from the body of a request, which is re-encoded but not stored yet."""

    data: images.EncodedImage
    name: str = ""
    description: str = ""


_ITEMS = {
    "type": "array",
    "maxItems": attachments.MAX_IMAGES_PER_MESSAGE,
    "items": {
        "oneOf": [
            {"type": "string", "format": "uuid", "description": "An uploaded image."},
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
    """The images of a message: ids of uploads, or images in base64.

    The value is a list of `UUID` and `InlineImage`.
    """

    def to_internal_value(self, data: object) -> list[UUID | InlineImage]:
        if not isinstance(data, list):
            raise serializers.ValidationError("This must be a list of images.")
        if len(data) > attachments.MAX_IMAGES_PER_MESSAGE:
            raise serializers.ValidationError(attachments.TOO_MANY_IMAGES)
        return [self._item(number, item) for number, item in enumerate(data, start=1)]

    def _item(self, number: int, item: object) -> UUID | InlineImage:
        try:
            if isinstance(item, dict):
                return InlineImage(**validated(InlineSerializer, item))
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
    return [str(item) for item in detail] if isinstance(detail, list) else [str(detail)]


def store_images(session: Session, user, items: Sequence[UUID | InlineImage]) -> list[UUID]:
    """Store the inline images for the next message. Return the ids of all `items`, in order.

    Raises `ImageRejectedError` if one of the ids cannot be used; nothing is stored then.
    """
    uploads = [item for item in items if isinstance(item, UUID)]
    attachments.check_uploads(session, uploads, user, len(items) - len(uploads))
    return [
        item
        if isinstance(item, UUID)
        else attachments.store_image(session, user, item.name, item.data, item.description).pk
        for item in items
    ]


def _repeat_response(view, request, created) -> Response:
    attachment = attachments.attachment_for_reading(request.user, created["id"], request.auth)
    return Response(AttachmentSerializer(attachment).data)


class AttachmentListView(APIView):
    """Upload images for messages."""

    parser_classes = (MultiPartParser,)

    @extend_schema(
        request={"multipart/form-data": UploadSerializer}, responses={201: AttachmentSerializer}
    )
    @idempotent(_repeat_response)
    def post(self, request, pk) -> Response:
        """Upload an image. If no message uses it within a day, it is deleted."""
        session = permissions.session_for_writing(request.user, pk, request.auth)
        data = validated(UploadSerializer, request.data)
        file, description = data["file"], data.get("description", "")
        try:
            attachment = attachments.upload_image(
                session, request.user, file.name, file, description
            )
        except attachments.ImageRejectedError as error:
            raise serializers.ValidationError({"file": [str(error)]}) from error
        return Response(AttachmentSerializer(attachment).data, status.HTTP_201_CREATED)


class AttachmentDetailView(APIView):
    """Download an image. Requires read access to its session."""

    @extend_schema(responses={(200, kind): OpenApiTypes.BINARY for kind in EXTENSIONS})
    def get(self, request, pk):
        attachment = attachments.attachment_for_reading(request.user, pk, request.auth)
        return image_response(request, attachment, download=True)
