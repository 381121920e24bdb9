"""/api/v1/projects/{slug}/forget/: forget requests and their receipts."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from memory.forgetting import service
from memory.forgetting.service import ForgetScope
from memory.forgetting.users import find_user
from memory.models import ModerationReason
from projects.core.api.json import StrictSerializer, validated
from projects.core.errors import NotAllowedError, NotFoundError
from projects.models import Membership
from projects.permissions import membership, require_active


class ForgetSerializer(StrictSerializer):
    """The selection of a forget request. At least one condition is required; several conditions are
    combined with AND, but `entry`, `fact` and `file` are used alone. `import` is the id of an
    import: all chats that it created are forgotten, including later messages in these chats. The
    messages that it added to other chats are forgotten too.
    """

    session = serializers.UUIDField(required=False)
    message = serializers.UUIDField(required=False)
    entry = serializers.UUIDField(
        required=False, help_text="Forget this entry and all entries that it was made from."
    )
    fact = serializers.UUIDField(required=False)
    file = serializers.UUIDField(required=False, help_text="With all its versions.")
    user = serializers.CharField(
        required=False, help_text="A username. Forget this user's messages and the replies to them."
    )
    before = serializers.DateTimeField(required=False, help_text="Messages before this time.")
    sources = serializers.BooleanField(
        default=False, help_text="For an entry or a fact: also forget its source messages."
    )
    replies = serializers.BooleanField(
        default=False,
        help_text="Also replies whose prompt contained deleted text, and text made from them.",
    )
    preview = serializers.BooleanField(
        default=False, help_text="Report what would be removed, and change nothing."
    )
    reason = serializers.ChoiceField(ModerationReason.choices, default=ModerationReason.OTHER)

    def get_fields(self) -> dict[str, serializers.Field]:
        # `import` is a keyword, so it cannot be an attribute.
        return super().get_fields() | {
            "import": serializers.UUIDField(required=False, source="upload")
        }

    def validate_user(self, name: str) -> int:
        user = find_user(self.context["project"], name)
        if user is None:
            raise serializers.ValidationError("No member or author has this username.")
        return user.pk

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        reason, preview = attrs.pop("reason"), attrs.pop("preview")
        scope = ForgetScope(**attrs)
        if scope.is_empty:
            raise serializers.ValidationError(
                "Name a session, message, entry, fact, file, import, user or time: "
                "a request without a condition forgets nothing."
            )
        return {"scope": scope, "reason": reason, "preview": preview}


class MatchSerializer(serializers.Serializer):
    where = serializers.CharField()
    id = serializers.UUIDField()


class VerificationSerializer(serializers.Serializer):
    phrases = serializers.IntegerField(
        help_text="Number of deleted phrases that were searched for."
    )
    found = MatchSerializer(many=True, help_text="Places where deleted phrases still occur.")


class ForgetReceiptSerializer(serializers.Serializer):
    """The receipt of a forget request. `removed` is the number of deleted rows by store. `id` is
    the id in the activity log; null in a preview.
    """

    id = serializers.UUIDField(allow_null=True)
    at = serializers.DateTimeField(allow_null=True)
    removed = serializers.DictField(child=serializers.IntegerField())
    awaiting_rewrite = serializers.IntegerField()
    awaiting_files = serializers.IntegerField(
        help_text="Files that could not be removed yet. Strata retries until they are gone."
    )
    rewrites = serializers.ListField(
        child=serializers.UUIDField(), help_text="Entries that await their rewrite, at most 100."
    )
    withheld = serializers.ListField(
        child=serializers.UUIDField(), help_text="Entries that lost their whole text, at most 100."
    )
    saw_it = serializers.ListField(child=serializers.UUIDField())
    kept_sources = serializers.ListField(
        child=serializers.UUIDField(),
        help_text="Source messages of the forgotten entry or fact that were not deleted.",
    )
    search = VerificationSerializer()


class ForgetView(APIView):
    """Delete text permanently from every store, and return what was deleted.

    A token needs the scope `admin`. Owners may forget anything in their project. Editors may forget
    their own messages, chats, facts, files and imports.
    """

    scope = "admin"

    @extend_schema(request=ForgetSerializer, responses=ForgetReceiptSerializer)
    def post(self, request, slug: str) -> Response:
        member = membership(request.user, slug, token=request.auth)
        require_active(member.project)
        data = validated(ForgetSerializer, request.data, project=member.project)
        return Response(forget_data(member, by=request.user, **data))


def forget_data(
    member: Membership,
    scope: ForgetScope,
    by,
    reason: str = ModerationReason.OTHER,
    preview: bool = False,
) -> dict[str, Any]:
    """Forget `scope`, or only preview the effects, and return the data of ForgetReceiptSerializer.

    Raises NotAllowedError if the member is not permitted to forget it, and NotFoundError for an id
    that the project never had.
    """
    if not scope.is_permitted_to(member):
        raise NotAllowedError("Only owners of the project may forget this.")
    if error := scope.missing_object(member.project):
        raise NotFoundError(error)
    if preview:
        receipt = service.preview(member.project, scope, by)
    else:
        receipt = service.forget(member.project, scope, by, reason)
    return receipt.as_response()
