"""The base of every image: a public one where a registry answers, else packages of the host's own release."""

import os
import re
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader_service.errors import ConfigurationError, InfrastructureError
from images.pins import read_pins

_REGISTRY = "https://registry-1.docker.io/v2/"
_REGISTRY_S = 8
_PACKAGES = "python3,libstdc++6,zlib1g,ca-certificates"
_KEEP_OUT = (
    "usr/share/doc",
    "usr/share/man",
    "usr/share/info",
    "var/cache/apt",
    "var/lib/apt/lists",
    "var/log",
)
_SUITES = {"debian": ("bookworm", "trixie"), "ubuntu": ("noble",)}

OS_RELEASE = Path("/etc/os-release")
APT_FOLDER = Path("/etc/apt")

Say = Callable[[str], None]


@dataclass(frozen=True)
class Base:
    """A base image on this engine."""

    reference: str
    """Image id, `sha256:…`."""
    origin: str
    """Where it came from, such as `debootstrap bookworm`."""
    python: tuple[int, int]
    site: str
    """Folder of its interpreter's own packages."""


def choose_base(client: Any, kind: str, say: Say, *, rebuild: bool = False) -> Base:
    """The base image, pulled or bootstrapped, and what its interpreter is.

    Args:
        kind: `registry`, `debootstrap`, or `auto`: the first if a registry answers.
        rebuild: whether to bootstrap one that is there anew.

    Raises:
        ConfigurationError: neither way works on this host; the message says what to install.
        InfrastructureError: a step failed.
    """
    if kind == "registry" or (kind == "auto" and registry_answers()):
        public = read_pins()["python"].reference
        say(f"pulling {public}")
        image = client.images.pull(public)
        return _inspect(client, image.id, f"{public} {(image.attrs.get('RepoDigests') or [''])[0]}".strip())
    release, mirror = host_release()
    tag = f"grader-base:{release}"
    existing = [image for image in client.images.list(name="grader-base") if tag in image.tags]
    if existing and not rebuild:
        return _inspect(client, existing[0].id, f"debootstrap {release}")
    say(f"bootstrapping {release} from {mirror} (no registry answers)")
    bootstrap(client, release, mirror, tag, _PACKAGES, say)
    return _inspect(client, str(client.images.get(tag).id), f"debootstrap {release}")


def registry_answers() -> bool:
    """Whether the public registry can be reached from here."""
    try:
        with urllib.request.urlopen(_REGISTRY, timeout=_REGISTRY_S):
            return True
    except urllib.error.HTTPError as error:
        return error.code == 401
    except OSError:
        return False


def host_release() -> tuple[str, str]:
    """(code name, mirror) of this host's own release.

    Raises:
        ConfigurationError: it is none that a base image can be made of.
    """
    lines = OS_RELEASE.read_text().splitlines() if OS_RELEASE.exists() else []
    fields = dict(line.split("=", 1) for line in lines if "=" in line)
    name, release = (fields.get(field, "").strip("\"'") for field in ("ID", "VERSION_CODENAME"))
    if release not in _SUITES.get(name, ()):
        known = ", ".join(f"{distribution} {suite}" for distribution, suites in _SUITES.items() for suite in suites)
        raise ConfigurationError(
            f"no container registry answers; a base image can be bootstrapped on {known} only, and this host is "
            f"{name or 'unknown'} {release}. Give the engine access to a registry and build with --base registry."
        )
    return release, _mirror(name)


def _require_debootstrap() -> None:
    if os.geteuid() != 0:
        raise ConfigurationError(
            "no container registry answers, and bootstrapping a base image needs root (debootstrap)"
        )
    if shutil.which("debootstrap") is None:
        raise ConfigurationError(
            "no container registry answers and debootstrap is missing: apt-get install debootstrap"
        )


def _mirror(name: str) -> str:
    """Where this host's own packages of an archive come from: `debian`, `debian-security` or `ubuntu`."""
    folder = APT_FOLDER / "sources.list.d"
    for path in (APT_FOLDER / "sources.list", *sorted(folder.glob("*.list")), *sorted(folder.glob("*.sources"))):
        for url in _source_urls(path):
            if re.search(rf"/{name}/?$", url):
                return url.rstrip("/")
    if name == "ubuntu":
        return "http://archive.ubuntu.com/ubuntu"
    return f"http://deb.debian.org/{name}"


def _source_urls(path: Path) -> list[str]:
    """URLs of the package sources in one of apt's files that are switched on, in either of its two formats."""
    if not path.is_file():
        return []
    lines = [line for line in path.read_text(errors="replace").splitlines() if not line.lstrip().startswith("#")]
    if path.suffix == ".sources":
        stanzas = re.split(r"\n\s*\n", "\n".join(lines))
        used = [
            stanza
            for stanza in stanzas
            if re.search(r"(?im)^types:(.*\s)?deb(\s|$)", stanza)
            and not re.search(r"(?im)^enabled:\s*(no|false)", stanza)
        ]
    else:
        used = [line for line in lines if line.split()[:1] == ["deb"]]
    return re.findall(r"https?://[^\s\"']+", "\n".join(used))


def bootstrap(
    client: Any,
    release: str,
    mirror: str,
    tag: str,
    packages: str,
    say: Say,
    *,
    finish: Callable[[Path], None] = lambda _: None,
    changes: Sequence[str] = (),
) -> None:
    """Makes an image of a minimal system with these packages.

    Args:
        packages: names, separated by commas.
        finish: called with the root folder before it is packed.
        changes: Dockerfile instructions of the image, such as `USER 999`.

    Raises:
        ConfigurationError: this host cannot; the message says what to install.
        InfrastructureError: a step failed.
    """
    _require_debootstrap()
    with tempfile.TemporaryDirectory(prefix="grader-base-", dir="/var/tmp") as folder:
        root = Path(folder) / "root"
        options = ["--variant=minbase", f"--include={packages}"]
        if "ubuntu" in mirror:
            options.append("--components=main,universe")
        run = subprocess.run(
            ["debootstrap", *options, release, str(root), mirror], check=False, capture_output=True, text=True
        )
        if run.returncode != 0:
            raise InfrastructureError(f"debootstrap failed: {(run.stdout + run.stderr)[-1500:]}")
        _update(root, release, mirror)
        for path in _KEEP_OUT:
            shutil.rmtree(root / path, ignore_errors=True)
            (root / path).mkdir(parents=True, exist_ok=True)
        for name in ("etc/resolv.conf", "etc/hostname"):
            (root / name).unlink(missing_ok=True)
        finish(root)
        say(f"importing {tag}")
        with subprocess.Popen(["tar", "-C", str(root), "--numeric-owner", "-c", "."], stdout=subprocess.PIPE) as tar:
            repository, _, version = tag.partition(":")
            assert tar.stdout is not None  # noqa: S101 - opened as a pipe
            client.api.import_image_from_stream(tar.stdout, repository=repository, tag=version, changes=list(changes))
        if tar.returncode != 0:
            raise InfrastructureError(f"{tag} could not be packed: tar ended with {tar.returncode}")


def _update(root: Path, release: str, mirror: str) -> None:
    """Installs the release's security and stable updates, which debootstrap leaves out.

    Raises:
        InfrastructureError: they could not be had; an image without them is not made.
    """
    debian = "ubuntu" not in mirror
    parts = "main" if debian else "main universe"
    security = _mirror("debian-security") if debian else mirror
    suites = [(mirror, release), (mirror, f"{release}-updates"), (security, f"{release}-security")]
    sources = root / "etc" / "apt" / "sources.list"
    sources.write_text("".join(f"deb {url} {suite} {parts}\n" for url, suite in suites))
    # No server is started while it is installed here.
    stopper = root / "usr" / "sbin" / "policy-rc.d"
    stopper.write_text("#!/bin/sh\nexit 101\n")
    stopper.chmod(0o755)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    for arguments in (["update", "--error-on=any"], ["-y", "dist-upgrade"]):
        command = ["chroot", str(root), "apt-get", "-q", *arguments]
        run = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
        if run.returncode != 0:
            told = (run.stdout + run.stderr)[-1500:]
            raise InfrastructureError(f"security updates could not be installed from {security}: {told}")
    stopper.unlink()


def _inspect(client: Any, reference: str, origin: str) -> Base:
    script = "import sys, sysconfig; print(*sys.version_info[:2], sysconfig.get_path('purelib'))"
    output = client.containers.run(
        reference, ["python3", "-c", script], remove=True, network_mode="none", entrypoint=[]
    ).decode()
    major, minor, site = output.split()
    return Base(reference, origin, (int(major), int(minor)), site)
