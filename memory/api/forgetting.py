"""/api/v1/projects/{slug}/forget/: what is forgotten, and the receipt."""

from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.response import Response
from rest_framework.views import APIView

from memory import forgetting
from memory.forgetting import Scope
from memory.forgetting.naming import missing
from memory.forgetting.rights import may_forget
from memory.models import Reason
from projects import access
from projects.models import Membership


class ForgetSerializer(serializers.Serializer):
    """What to forget: one condition at least; several are AND-ed. `import` is the id of one: the
    chats that it made go with all that was said in them since, and so does what it added to others.
    """

    session = serializers.UUIDField(required=False)
    message = serializers.UUIDField(required=False)
    entry = serializers.UUIDField(
        required=False, help_text="With everything it was made of in memory."
    )
    fact = serializers.UUIDField(required=False)
    user = serializers.CharField(
        required=False, help_text="A username: what they said, with the replies to it."
    )
    before = serializers.DateTimeField(required=False, help_text="What was said before that.")
    sources = serializers.BooleanField(
        default=False, help_text="With an entry or a fact: the messages that it rests on, too."
    )
    replies = serializers.BooleanField(
        default=False,
        help_text="Replies that were told any of it, too, and what was made of them.",
    )
    preview = serializers.BooleanField(
        default=False, help_text="Tell what would go; change nothing."
    )
    reason = serializers.ChoiceField(Reason.choices, default=Reason.OTHER)

    def get_fields(self) -> dict[str, serializers.Field]:
        # No attribute can have the name.
        return super().get_fields() | {
            "import": serializers.UUIDField(required=False, source="upload")
        }

    def validate_user(self, name: str) -> int:
        pk = get_user_model().objects.filter(username=name).values_list("pk", flat=True).first()
        if pk is None:
            raise serializers.ValidationError("There is no user of this name.")
        return pk

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        reason, only_preview = attrs.pop("reason"), attrs.pop("preview")
        scope = Scope(**attrs)
        if scope.is_empty:
            raise serializers.ValidationError(
                "Name a session, message, entry, fact, import, user or moment: "
                "nothing else is forgotten."
            )
        return {"scope": scope, "reason": reason, "preview": only_preview}


class PlaceSerializer(serializers.Serializer):
    where = serializers.CharField()
    id = serializers.UUIDField()


class SearchSerializer(serializers.Serializer):
    phrases = serializers.IntegerField(help_text="Phrases of what went that were looked for.")
    found = PlaceSerializer(many=True, help_text="Where the same words still stand.")


class ForgettingSerializer(serializers.Serializer):
    """What went from where. `id` is that of the activity; null in a preview."""

    id = serializers.UUIDField(allow_null=True)
    at = serializers.DateTimeField(allow_null=True)
    removed = serializers.DictField(child=serializers.IntegerField())
    awaiting_rewrite = serializers.IntegerField()
    awaiting_files = serializers.IntegerField(
        help_text="Files that could not be removed yet: that is tried until they are gone."
    )
    withheld = serializers.ListField(child=serializers.UUIDField())
    saw_it = serializers.ListField(child=serializers.UUIDField())
    search = SearchSerializer()


class Forget(APIView):
    """Forgets for good, in every store at once, and says what went from where.

    Owners forget anything in their project, with a token of the scope `admin`; whoever writes in
    it their own words and chats.
    """

    scope = "admin"

    @extend_schema(request=ForgetSerializer, responses=ForgettingSerializer)
    def post(self, request, slug: str) -> Response:
        member = access.membership(request.user, slug, token=request.auth)
        wish = ForgetSerializer(data=request.data)
        wish.is_valid(raise_exception=True)
        return Response(receipt_of(member, by=request.user, **wish.validated_data))


def receipt_of(
    member: Membership, scope: Scope, by, reason: str = Reason.OTHER, preview: bool = False
) -> dict[str, Any]:
    """Forgets `scope`, or only previews that, and returns what ForgettingSerializer tells.

    Raises PermissionDenied for what `member` may not have forgotten, and NotFound for what is not
    of the project and never was.
    """
    if not may_forget(member, scope):
        raise PermissionDenied("Only owners of the project have this forgotten.")
    if reason_against := missing(member.project, scope):
        raise NotFound(reason_against)
    if preview:
        receipt = forgetting.preview(member.project, scope, by)
    else:
        receipt = forgetting.forget(member.project, scope, by, reason)
    return receipt.as_answer()
