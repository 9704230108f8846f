"""Routes `fs/*`: what the workspace picker needs. The file system is read by `folders.py`."""

from pathlib import Path

from django.conf import settings
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from channels_app.api.folders import absolute_path, browse, look, open_folder


class PathFilter(serializers.Serializer):
    """One path, absolute or beginning with `~`."""

    path = serializers.CharField(trim_whitespace=False, max_length=4096)

    @classmethod
    def read(cls, data: object) -> Path:
        query = cls(data=data)
        query.is_valid(raise_exception=True)
        return absolute_path(query.validated_data["path"])


class Home(APIView):
    """GET fs/home: where a picker begins."""

    def get(self, request: Request) -> Response:
        return Response({"home": str(Path.home()), "workspace": str(settings.HALO.workspace)})


class Exists(APIView):
    """GET fs/exists?path: `isDirectory` is there only when the path is."""

    def get(self, request: Request) -> Response:
        exists, is_directory = look(PathFilter.read(request.query_params))
        return Response({"exists": True, "isDirectory": is_directory} if exists else {"exists": False})


class Browse(APIView):
    """GET fs/browse?path: one level of a folder, of the user's home when no path is given."""

    def get(self, request: Request) -> Response:
        wanted = "path" in request.query_params
        listing = browse(PathFilter.read(request.query_params) if wanted else Path.home())
        return Response(
            {
                "path": str(listing.path),
                "parent": listing.parent,
                "entries": [entry.to_dict() for entry in listing.entries],
                "truncated": listing.truncated,
            }
        )


class ResolveWorkspace(APIView):
    """POST fs/workspace/resolve {path}: make a folder a workspace. `id` equals `path`, the real path."""

    def post(self, request: Request) -> Response:
        root = open_folder(PathFilter.read(request.data))
        return Response({"id": str(root), "path": str(root), "name": root.name})
