"""/api/v1/projects/…/export/: a project, or what is one's own in it, as a file."""

from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.views import APIView

from memory.downloads import MEDIA_TYPE, download
from memory.portability import Extent
from projects import access


class ExportProject(APIView):
    """A zip of JSON Lines with their schema, which another Strata takes in.

    Owners export the project, without what others keep private; every member, with `user=me`, what
    is their own in it.
    """

    @extend_schema(
        parameters=[OpenApiParameter("user", str, enum=["me"], description="Only what is yours.")],
        responses={(200, MEDIA_TYPE): OpenApiTypes.BINARY},
    )
    def get(self, request, slug: str) -> HttpResponseBase:
        who = request.query_params.get("user", "")
        if who not in ("", "me"):
            raise ValidationError({"user": ["Either me, or nothing."]})
        find = access.project_for_reading if who else access.project_for_owning
        project = find(request.user, slug, request.auth)
        return download(Extent(project, request.user, only_own=bool(who)))
