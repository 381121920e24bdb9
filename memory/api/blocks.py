"""/api/v1/projects/…/blocks/: pinned blocks, by name."""

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
from memory.models.blocks import BLOCK_NAME, MAX_BLOCK_CHARS
from projects.api.members import MembershipMixin
from projects.core.api.etags import ETagMixin, if_match_version, is_any
from projects.core.api.json import validated
from projects.core.errors import StaleVersionError

SCOPE = OpenApiParameter(
    "scope",
    str,
    enum=["project", "mine"],
    default="project",
    description="`project`: the blocks in every prompt. `mine`: your own blocks, in your prompts.",
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
        allow_blank=True, trim_whitespace=False, max_length=MAX_BLOCK_CHARS
    )


class BlockChangeSerializer(serializers.Serializer):
    """A change of a block. At least one of the fields is required."""

    append = serializers.CharField(
        required=False, max_length=MAX_BLOCK_CHARS, help_text="Lines to add at the end."
    )
    position = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=10_000,
        help_text="The new position among the blocks, from 0; larger numbers mean the end.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not attrs:
            raise serializers.ValidationError("Give append or position.")
        return attrs


class StaleBlockSerializer(serializers.Serializer):
    """The reason why a change was rejected, and the current block if it was not deleted."""

    detail = serializers.CharField()
    block = BlockSerializer(required=False)


class BlockListView(MembershipMixin, generics.ListAPIView):
    """The project's blocks, followed by your own, in the order in which prompts contain them."""

    queryset = Block.objects.none()
    serializer_class = BlockSerializer
    pagination_class = None

    def get_queryset(self) -> QuerySet[Block]:
        return Block.objects.visible_to(self.membership).in_order()


@extend_schema(parameters=[SCOPE])
class BlockDetailView(ETagMixin, MembershipMixin, APIView):
    """One block of the project, or one of your own."""

    def initial(self, request, *args, **kwargs) -> None:
        super().initial(request, *args, **kwargs)
        scope = request.query_params.get("scope", "project")
        if scope not in ("project", "mine"):
            raise ValidationError({"scope": ["Either project or mine."]})
        self.owner = request.user if scope == "mine" else None

    @extend_schema(responses=BlockSerializer)
    def get(self, request, slug: str, name: str) -> Response:
        return Response(BlockSerializer(self._block(name)).data)

    def represent_current(self, error: StaleVersionError) -> dict[str, Any]:
        if isinstance(error, blocks.StaleBlockError):
            return {"block": BlockSerializer(error.block).data}
        return {}

    @extend_schema(
        request=BlockContentSerializer,
        responses={200: BlockSerializer, 201: BlockSerializer, 412: StaleBlockSerializer},
    )
    def put(self, request, slug: str, name: str) -> Response:
        """Set the content, or create the block."""
        if not BLOCK_NAME.fullmatch(name):
            raise ValidationError({"name": ["Letters, digits, hyphens and underscores, up to 60."]})
        content = validated(BlockContentSerializer, request.data)["content"]
        project, version = self.membership.project, self._version(name)
        is_new = self._find(name) is None
        block = blocks.put(project, self.owner, name, content, request.user, version)
        code = status.HTTP_201_CREATED if is_new else status.HTTP_200_OK
        return Response(BlockSerializer(block).data, code)

    @extend_schema(
        request=BlockChangeSerializer, responses={200: BlockSerializer, 412: StaleBlockSerializer}
    )
    def patch(self, request, slug: str, name: str) -> Response:
        """Append lines to a block, or move it. `append` creates a missing block."""
        changes = validated(BlockChangeSerializer, request.data)
        version = self._version(name)
        project = self.membership.project
        if "append" in changes:
            if not BLOCK_NAME.fullmatch(name):
                raise Http404
            blocks.append(project, self.owner, name, changes["append"], request.user, version)
            # `append` has increased the version.
            version = None
        block = self._block(name)
        if "position" in changes:
            blocks.move(block, changes["position"], request.user, version)
        return Response(BlockSerializer(block).data)

    @extend_schema(responses={204: None, 412: StaleBlockSerializer})
    def delete(self, request, slug: str, name: str) -> Response:
        blocks.remove(self._block(name), request.user, version=if_match_version(request))
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _version(self, name: str) -> int | None:
        """Return the version that the client read, as `blocks.put` takes it. Raises ParseError, and
        BlockDeletedError if only an existing block may be changed and there is none.
        """
        if is_any(self.request, "If-None-Match"):
            return 0
        if is_any(self.request, "If-Match") and self._find(name) is None:
            raise blocks.BlockDeletedError
        return if_match_version(self.request)

    def _block(self, name: str) -> Block:
        block = self._find(name)
        if block is None:
            raise Http404
        return block

    def _find(self, name: str) -> Block | None:
        shelf = self.membership.project.blocks.of(self.owner)
        return None if "\0" in name else shelf.filter(name=name).first()
