"""Builds the lab and service images from lock files: hash-checked packages in, a labelled image out."""

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import IO, Any

from docker.errors import DockerException, ImageNotFound

from grader_service.errors import ConfigurationError, InfrastructureError
from images.base import Base, Say, choose_base
from images.bootstrap import PYPI, index_url
from images.sbom import DPKG_STATUS, locked_hashes, read_file, write_sbom
from images.standins.build import build_stand_ins

HERE = Path(__file__).parent
LOCK_LABEL = "org.grader.lock"
BASE_LABEL = "org.grader.base"
_FIRST_PARTY = ("grader_service", "sandbox", "checks", "images")
_DISTRIBUTION = "grader-service"
_OWN_METADATA = ("METADATA", "entry_points.txt", "licenses/LICENSE")
"""Of our distribution in the service image: who gets the image gets the licence."""
_LINKED = ": file changed as we read it"


@dataclass(frozen=True)
class Recipe:
    """One image to build."""

    name: str
    dockerfile: Path
    lock: Path
    with_service: bool
    """Whether our own packages go in beside the locked ones."""
    latest: bool = True
    """Whether it becomes `NAME:latest`, which labs and compose.yaml name."""


RECIPES = {
    "lab": Recipe("grader-lab", HERE / "lab" / "Dockerfile", HERE / "lock" / "lab.txt", with_service=False),
    "service": Recipe(
        "grader-service", HERE / "service" / "Dockerfile", HERE / "lock" / "service.txt", with_service=True
    ),
}
_OF_A_LAB = ("torch", "torchvision", "nvidia-dali")
"""What the grader's own code in pods imports; DALI's package has its CUDA version behind its name."""


def lab_with(lock: Path) -> Recipe:
    """The lab image with the packages of another lock, under a tag of its own, which GRADER_LAB_IMAGE takes.

    Raises:
        ConfigurationError: the lock does not pin, with hashes, what a lab image needs.
    """
    hashed = (entry.partition("==")[0] for entry, hashes in locked_hashes(lock.read_text()).items() if hashes)
    pinned = {re.sub(r"-cuda\d+$", "", name) for name in hashed}
    if lacking := [name for name in _OF_A_LAB if name not in pinned]:
        raise ConfigurationError(
            f"{lock} is no lock of a lab image: it should pin {', '.join(_OF_A_LAB)} with hashes, and lacks "
            f"{', '.join(lacking)}. docs/supply-chain.md says how one is made of images/lab/requirements.in."
        )
    return replace(RECIPES["lab"], lock=lock, latest=False)


def build(
    client: Any, recipes: Sequence[Recipe], *, base_kind: str, rebuild: bool, say: Say, stand_ins: bool = False
) -> dict[str, str]:
    """Builds images beside each other, unless one of the same lock file and recipe is there; returns name to id.

    The name of one that does not become `NAME:latest` is its tag.

    Args:
        recipes: of `RECIPES`, or `lab_with` another lock.
        base_kind: see `choose_base`.
        rebuild: whether to build those that are there as well, on a base made anew: with the security updates of today.
        stand_ins: whether to build those of Redis and PostgreSQL that are not there, too.

    Raises:
        ConfigurationError: this host lacks something; the message says what to install.
        InfrastructureError: a step failed.
    """
    built: dict[str, str] = {}
    missing: list[tuple[Recipe, str]] = []
    for recipe in recipes:
        state = recipe_digest(recipe)
        existing = None if rebuild else _find(client, recipe, state)
        if existing is None:
            missing.append((recipe, state))
        else:
            say(f"{recipe.name} is up to date")
            built[_name_of(recipe, state)] = existing
    try:
        with ThreadPoolExecutor() as pool:
            beside = pool.submit(build_stand_ins, client, say, rebuild=rebuild) if stand_ins else None
            if missing:
                base = choose_base(client, base_kind, say, rebuild=rebuild)
                ids = pool.map(lambda one: _build_one(client, one[0], base, one[1], say), missing)
                built |= {_name_of(*one): image_id for one, image_id in zip(missing, ids, strict=True)}
            return built if beside is None else built | beside.result()
    except (DockerException, OSError) as error:  # the connection's own errors are OSErrors
        raise InfrastructureError(f"an image could not be built: {error}") from error


def recipe_digest(recipe: Recipe) -> str:
    """SHA-256 over everything that decides what the image holds, hexadecimal."""
    digest = hashlib.sha256()
    dockerfile = str(recipe.dockerfile.relative_to(HERE.parent))
    contents = {"lock": recipe.lock.read_bytes(), dockerfile: recipe.dockerfile.read_bytes()}  # a lock may lie anywhere
    if recipe.with_service:
        contents |= _own_files()
    for name, content in contents.items():
        digest.update(name.encode() + b"\0" + content + b"\0")
    return digest.hexdigest()


def _build_one(client: Any, recipe: Recipe, base: Base, state: str, say: Say) -> str:
    with tempfile.TemporaryDirectory(prefix="grader-image-", dir="/var/tmp") as folder:
        context = Path(folder)
        site = context / "site"
        say(f"{recipe.name}: installing the locked packages for Python {base.python[0]}.{base.python[1]}")
        install_locked(recipe.lock, site, base.python)
        if recipe.with_service:
            for name, content in _own_files().items():
                target = context / "own" / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
        pods = context / "pods"
        for name in ("workspace", "data/lab", "grader"):
            (pods / name).mkdir(parents=True)
        sites = [site, context / "own"]
        status = read_file(client, base.reference, DPKG_STATUS) or ""
        write_sbom(context / "sbom", recipe.name, status, sites, recipe.lock.read_text())
        shutil.copy(recipe.dockerfile, context / "Dockerfile")
        say(f"{recipe.name}: building on {base.origin}")
        labels = {LOCK_LABEL: state, BASE_LABEL: base.origin}
        with _tar_stream(context) as stream:
            log = client.api.build(
                fileobj=stream,
                custom_context=True,
                dockerfile="Dockerfile",
                tag=_tag_of(recipe, state),
                buildargs={"BASE": base.reference, "SITE": base.site},
                labels=labels,
                network_mode="none",
                rm=True,
                forcerm=True,
                decode=True,
            )
            for line in log:
                if "error" in line:
                    raise InfrastructureError(f"{recipe.name} could not be built: {line['error']}")
    return _take(client, recipe, state)


def install_locked(lock: Path, target: Path, python: tuple[int, int]) -> None:
    """Installs a lock file's wheels for the image's interpreter into `target`; every file is checked by hash.

    Raises:
        ConfigurationError: uv is missing.
        InfrastructureError: the index did not deliver.
    """
    beside = Path(sys.executable).with_name("uv")
    uv = str(beside) if beside.exists() else shutil.which("uv")
    if uv is None:
        raise ConfigurationError("uv is missing: run `make setup`, or put uv on the PATH")
    command = [
        uv, "pip", "install", "--quiet", "--target", str(target), "--require-hashes", "--only-binary", ":all:",
        "--python-version", f"{python[0]}.{python[1]}", "--python-platform", f"{platform.machine()}-manylinux_2_28",
        "-r", str(lock),
    ]  # fmt: skip
    environment = {**os.environ, "UV_SYSTEM_CERTS": "1", "UV_PYTHON_DOWNLOADS": "never"}
    if (index := index_url()) != PYPI:  # uv does not read pip's configuration
        environment["UV_DEFAULT_INDEX"] = index
    run = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
    if run.returncode != 0:
        raise InfrastructureError(f"the locked packages could not be installed: {run.stderr[-2000:]}")


def _own_files() -> dict[str, bytes]:
    """Our packages, by path, and what their installation says of itself: without its entry points no check is found.

    Raises:
        ConfigurationError: the service runs from a folder and is not installed.
    """
    try:
        installed = distribution(_DISTRIBUTION)
    except PackageNotFoundError:
        raise ConfigurationError(f"{_DISTRIBUTION} is not installed in this environment: run `make setup`") from None
    folder = f"{_DISTRIBUTION.replace('-', '_')}-{installed.version}.dist-info"
    places = [path for package in _FIRST_PARTY for path in sorted((HERE.parent / package).rglob("*"))]
    paths = [path for path in places if path.is_file() and "__pycache__" not in path.parts]
    found = {str(path.relative_to(HERE.parent)): path.read_bytes() for path in paths}
    return found | {f"{folder}/{name}": (installed.read_text(name) or "").encode() for name in _OWN_METADATA}


@contextmanager
def _tar_stream(context: Path) -> Iterator[IO[bytes]]:
    """The build context as a tar stream, so that gigabytes of packages are not copied once more.

    Whatever the umask was when the files were made, everybody may read them: pods have another uid.
    """
    command = [
        "tar",
        "-C",
        str(context),
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--mode=u+rwX,go+rX,go-w",
        "-c",
        ".",
    ]
    with tempfile.TemporaryFile() as said:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, env={**os.environ, "LC_ALL": "C"}) as tar:
            assert tar.stdout is not None  # noqa: S101 - opened as a pipe
            try:
                yield tar.stdout
            except BaseException:
                tar.kill()
                raise
        said.seek(0)
        problems = said.read().decode(errors="replace").splitlines()
    # uv links packages from its cache. Another installation that links the same file meanwhile changes its number of
    # links, which tar takes for a change of the file; what a file holds never changes there.
    if tar.returncode == 1 and all(line.endswith(_LINKED) for line in problems):
        return
    if tar.returncode != 0:
        told = "; ".join(problems)[-1000:]
        raise InfrastructureError(f"the build context could not be packed: tar ended with {tar.returncode}: {told}")


def _find(client: Any, recipe: Recipe, state: str) -> str | None:
    try:
        return _take(client, recipe, state)
    except ImageNotFound:
        return None


def _take(client: Any, recipe: Recipe, state: str) -> str:
    """The id of an image that is there, which is the latest from now on if its recipe says so."""
    image = client.images.get(_tag_of(recipe, state))
    if recipe.latest:
        image.tag(recipe.name, "latest")
    return str(image.id)


def _tag_of(recipe: Recipe, state: str) -> str:
    return f"{recipe.name}:{state[:12]}"


def _name_of(recipe: Recipe, state: str) -> str:
    return recipe.name if recipe.latest else _tag_of(recipe, state)
