"""Redis and PostgreSQL for compose.yaml where no container registry answers: images of the host's own packages.

They answer to the same commands, environment and user ids as the public images that compose.yaml names.
"""

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docker.errors import DockerException

from grader_service.errors import InfrastructureError
from images.base import Say, bootstrap, host_release
from images.sbom import DPKG_STATUS, write_sbom

HERE = Path(__file__).parent
_USER = 999
"""The uid of the server in the public images of both."""


@dataclass(frozen=True)
class StandIn:
    """One image to bootstrap."""

    name: str
    package: str
    data: str
    """Folder of its data, owned by its user."""
    changes: tuple[str, ...]
    entrypoint: str | None = None
    """Script beside this module."""


STAND_INS = {
    "redis": StandIn("grader-redis", "redis-server", "data", (f"USER {_USER}:{_USER}", "WORKDIR /data")),
    "postgres": StandIn(
        "grader-postgres",
        "postgresql",
        "var/lib/postgresql/data",
        (
            f"USER {_USER}:{_USER}",
            "ENV PGDATA=/var/lib/postgresql/data",
            'ENTRYPOINT ["/usr/local/bin/docker-entrypoint.sh"]',
        ),
        "postgres-entrypoint.sh",
    ),
}


def build_stand_ins(client: Any, say: Say, *, rebuild: bool = False) -> dict[str, str]:
    """Builds what is not there yet, or all with `rebuild`, beside each other; returns name to image id.

    Raises:
        ConfigurationError: this host cannot bootstrap; the message says what to install.
        InfrastructureError: a step failed.
    """
    release, mirror = host_release()

    def build(stand_in: StandIn) -> str:
        tag = f"{stand_in.name}:{release}"
        if rebuild or not [image for image in client.images.list(name=stand_in.name) if tag in image.tags]:
            say(f"bootstrapping {tag}")
            finish = _finisher(stand_in)
            bootstrap(client, release, mirror, tag, stand_in.package, say, finish=finish, changes=stand_in.changes)
        image = client.images.get(tag)
        image.tag(stand_in.name, "latest")
        return str(image.id)

    try:
        with ThreadPoolExecutor() as pool:
            ids = pool.map(build, STAND_INS.values())
            return {one.name: image_id for one, image_id in zip(STAND_INS.values(), ids, strict=True)}
    except (DockerException, OSError) as error:
        raise InfrastructureError(f"a stand-in could not be built: {error}") from error


def _finisher(stand_in: StandIn) -> Callable[[Path], None]:
    def finish(root: Path) -> None:
        # The cluster that the package makes, and its configuration: the entry point makes its own.
        for path in ("var/lib/postgresql", "var/lib/redis", "etc/postgresql"):
            shutil.rmtree(root / path, ignore_errors=True)
        data = root / stand_in.data
        data.mkdir(parents=True)
        data.chmod(0o700)
        shutil.chown(data, _USER, _USER)
        with (root / "etc" / "passwd").open("a") as file:
            file.write(f"server:x:{_USER}:{_USER}::/{stand_in.data}:/usr/sbin/nologin\n")
        if stand_in.entrypoint is not None:
            target = root / "usr" / "local" / "bin" / "docker-entrypoint.sh"
            shutil.copyfile(HERE / stand_in.entrypoint, target)
            target.chmod(0o755)
        write_sbom(root, stand_in.name, (root / DPKG_STATUS).read_text())

    return finish
