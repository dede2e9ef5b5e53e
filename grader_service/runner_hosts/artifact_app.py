"""Artifacts for runner hosts, over HTTP: they are read by their digests, and nothing is listed."""

import re
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

_DIGEST = re.compile(r"[0-9a-f]{64}")


def artifact_app(folder: Path) -> Starlette:
    """The application over an artifact store's folder, which it only reads."""

    async def artifact(request: Request) -> Response:
        digest = request.path_params["digest"]
        path = folder / digest[:2] / digest
        if not _DIGEST.fullmatch(digest) or request.path_params["prefix"] != digest[:2] or not path.is_file():
            return Response(status_code=404)
        return FileResponse(path, media_type="application/octet-stream")

    return Starlette(routes=[Route("/{prefix}/{digest}", artifact)])
