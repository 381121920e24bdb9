"""/api/v1/projects/…/blocks/: working memory, read and written by name."""

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics, serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.response import Response
from rest_framework.views import APIView

from memory import blocks
from memory.models import Block
from memory.models.blocks import LONGEST_BLOCK, NAME
from projects import access
from projects.api.versions import Tagged, asked_version, tag

MINE = OpenApiParameter(
    "scope",
    str,
    enum=["project", "mine"],
    default="project",
    description="The project's blocks, which everybody is told, or your own, which only you are.",
)


class BlockSerializer(serializers.ModelSerializer):
    scope = serializers.SerializerMethodField()

    class Meta:
        model = Block
        fields = ("name", "scope", "content", "position", "tokens", "version", "updated_at")
        read_only_fields = ("name", "tokens", "version", "updated_at")

    def get_scope(self, block: Block) -> str:
        return "project" if block.user_id is None else "mine"


class BlockContentSerializer(serializers.Serializer):
    content = serializers.CharField(
        allow_blank=True, trim_whitespace=False, max_length=LONGEST_BLOCK
    )


class BlockChangeSerializer(serializers.Serializer):
    """One of the two, or both."""

    append = serializers.CharField(
        required=False, max_length=LONGEST_BLOCK, help_text="Lines to add at the end."
    )
    position = serializers.IntegerField(
        required=False, min_value=0, help_text="Its new place in its scope, from 0."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not attrs:
            raise serializers.ValidationError("Give append or position.")
        return attrs


class StaleBlockSerializer(serializers.Serializer):
    detail = serializers.CharField()
    block = BlockSerializer()


class Blocks(generics.ListAPIView):
    """The project's blocks, and then your own, as they stand in the prompt."""

    queryset = Block.objects.none()
    serializer_class = BlockSerializer
    pagination_class = None

    def get_queryset(self) -> QuerySet[Block]:
        member = access.membership(self.request.user, self.kwargs["slug"], token=self.request.auth)
        return Block.objects.visible_to(member).in_order()


@extend_schema(parameters=[MINE])
class OneBlock(Tagged, APIView):
    """One block. It always stands in the prompt, within the project's budget of blocks."""

    @extend_schema(responses=BlockSerializer)
    def get(self, request, slug: str, name: str) -> Response:
        return _tell(self._block(name))

    @extend_schema(
        request=BlockContentSerializer,
        responses={200: BlockSerializer, 201: BlockSerializer, 412: StaleBlockSerializer},
    )
    def put(self, request, slug: str, name: str) -> Response:
        """Sets its content; made if it is not there."""
        if not NAME.fullmatch(name):
            raise ValidationError({"name": ["Letters, digits, hyphens and underscores, up to 60."]})
        given = BlockContentSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        content = given.validated_data["content"]
        try:
            block = blocks.put(
                self.project, self.user, name, content, request.user, asked_version(request)
            )
        except blocks.Stale as stale:
            return _stale(stale)
        except blocks.Refused as refused:
            raise ValidationError({"content": [str(refused)]}) from refused
        is_new = block.version == 1
        return _tell(block, status.HTTP_201_CREATED if is_new else status.HTTP_200_OK)

    @extend_schema(request=BlockChangeSerializer, responses={200: BlockSerializer})
    def patch(self, request, slug: str, name: str) -> Response:
        """Adds lines at its end, made if it is not there; or moves it."""
        given = BlockChangeSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        wish = given.validated_data
        if "append" in wish:
            if not NAME.fullmatch(name):
                raise Http404
            try:
                blocks.append(self.project, self.user, name, wish["append"], request.user)
            except blocks.Refused as refused:
                raise ValidationError({"append": [str(refused)]}) from refused
        block = self._block(name)
        if "position" in wish:
            blocks.move(block, wish["position"], request.user)
        return _tell(block)

    @extend_schema(responses={204: None, 412: StaleBlockSerializer})
    def delete(self, request, slug: str, name: str) -> Response:
        try:
            blocks.remove(self._block(name), request.user, version=asked_version(request))
        except blocks.Stale as stale:
            return _stale(stale)
        return Response(status=status.HTTP_204_NO_CONTENT)

    def initial(self, request, *args, **kwargs) -> None:
        super().initial(request, *args, **kwargs)
        scope = request.query_params.get("scope", "project")
        if scope not in ("project", "mine"):
            raise ValidationError({"scope": ["Either project or mine."]})
        find = access.project_for_reading if request.method == "GET" else access.project_for_writing
        self.project = find(request.user, kwargs["slug"], request.auth)
        self.user = request.user if scope == "mine" else None

    def _block(self, name: str) -> Block:
        found = self.project.blocks.of(self.user).filter(name=name).first()
        if found is None:
            raise Http404
        return found


def _tell(block: Block, code: int = status.HTTP_200_OK) -> Response:
    return Response(BlockSerializer(block).data, code)


def _stale(stale: blocks.Stale) -> Response:
    told: dict[str, Any] = {"detail": str(stale), "block": BlockSerializer(stale.block).data}
    headers = {"ETag": tag(told["block"])}
    return Response(told, status.HTTP_412_PRECONDITION_FAILED, headers=headers)
