"""What an image holds, as a CycloneDX 1.6 document: its Debian packages and its Python distributions.

It is made with the image and lies in it at `SBOM`; `grader images sbom` reads it there. The same content gives the
same bytes: no time, and a serial number that is made of the components. Licences of Python distributions are what their
metadata says; Debian packages are named without theirs.
"""

import io
import re
import tarfile
import uuid
from collections.abc import Iterable, Iterator
from email.parser import HeaderParser
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

from docker.errors import NotFound

from grader_service.errors import ConfigurationError
from images.licences import licence_of

SBOM = "usr/share/grader/sbom.cdx.json"
"""Path in the image, from its root."""
DPKG_STATUS = "var/lib/dpkg/status"
_NAMES = uuid.UUID("5d8f7a0e-4f0c-5b57-9e1e-2f6d1c7e9a43")
"""Name space of the serial numbers."""


def write_sbom(root: Path, name: str, status: str, sites: Iterable[Path] = (), lock: str = "") -> None:
    """Writes the document of an image below `root`.

    Args:
        root: folder that becomes the image's root, or is copied onto it.
        status: text of its dpkg status file; empty where it has none.
        sites: folders of its Python distributions.
        lock: text of the lock file; every hash that it allows for a distribution is named.

    Raises:
        ConfigurationError: the library that writes the document is not installed.
    """
    try:
        from cyclonedx.model.bom import Bom, BomMetaData  # noqa: PLC0415 - of `make setup`; the service has none
        from cyclonedx.model.component import Component, ComponentType  # noqa: PLC0415
        from cyclonedx.output.json import JsonV1Dot6  # noqa: PLC0415
    except ImportError as error:
        raise ConfigurationError(f"images are built with what `make setup` installs: {error}") from None
    hashes = locked_hashes(lock)
    found = [*_debian(status)]
    found += [_python(one, hashes) for one in distributions(path=[str(site) for site in sites])]
    found.sort(key=lambda component: str(component.bom_ref.value))
    serial = uuid.uuid5(_NAMES, "\n".join([name, *(str(component.bom_ref.value) for component in found)]))
    image = Component(name=name, type=ComponentType.CONTAINER, bom_ref=name)
    about = BomMetaData(component=image)
    about.timestamp = None  # type: ignore[assignment] # optional in the format; the library means to fill it in
    bom = Bom(components=found, serial_number=serial, metadata=about)
    bom.register_dependency(image, found)
    target = root / SBOM
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(JsonV1Dot6(bom).output_as_string(indent=1))


def read_sbom(client: Any, image: str) -> str:
    """The document in an image.

    Raises:
        ConfigurationError: the image is not there, or has none.
    """
    text = read_file(client, image, SBOM)
    if text is None:
        raise ConfigurationError(f"{image} has no /{SBOM}: build it anew with `grader images build --rebuild`")
    return text


def read_file(client: Any, image: str, path: str) -> str | None:
    """A file of an image, without running it; None where there is none.

    Raises:
        ConfigurationError: there is no such image on this engine.
    """
    try:
        container = client.containers.create(image, command=["-"])
    except NotFound:
        raise ConfigurationError(f"there is no image {image} on this engine: `grader images list` shows them") from None
    try:
        chunks, _ = container.get_archive(f"/{path}")
        with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as archive:
            file = archive.extractfile(archive.getmembers()[0])
            return None if file is None else file.read().decode()
    except NotFound:
        return None
    finally:
        container.remove(v=True)


def _debian(status: str) -> Iterator[Any]:
    from cyclonedx.model.component import Component  # noqa: PLC0415
    from packageurl import PackageURL  # noqa: PLC0415

    name = "ubuntu" if "Maintainer: Ubuntu Developers" in status else "debian"
    for stanza in filter(str.strip, status.split("\n\n")):
        fields = HeaderParser().parsestr(stanza)
        if fields["Status"] == "install ok installed":
            url = PackageURL("deb", name, fields["Package"], fields["Version"], {"arch": fields["Architecture"]})
            yield Component(name=fields["Package"], version=fields["Version"], purl=url, bom_ref=url.to_string())


def _python(distribution: Distribution, hashes: dict[str, list[str]]) -> Any:
    from cyclonedx.contrib.license.factories import LicenseFactory  # noqa: PLC0415
    from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri  # noqa: PLC0415
    from cyclonedx.model.component import Component  # noqa: PLC0415
    from packageurl import PackageURL  # noqa: PLC0415

    name = re.sub(r"[-_.]+", "-", distribution.name).lower()
    url = PackageURL("pypi", None, name, distribution.version)
    said = licence_of(distribution.metadata)
    # Of files, one for each platform: hashes of the component itself would claim to be of one file.
    allowed = [
        HashType(alg=HashAlgorithm.SHA_256, content=one) for one in hashes.get(f"{name}=={distribution.version}", [])
    ]
    page = XsUri(f"https://pypi.org/project/{name}/{distribution.version}/")
    return Component(
        name=name,
        version=distribution.version,
        purl=url,
        bom_ref=url.to_string(),
        licenses=[LicenseFactory().make_from_string(said)] if said else [],
        external_references=[ExternalReference(type=ExternalReferenceType.DISTRIBUTION, url=page, hashes=allowed)]
        if allowed
        else [],
    )


def locked_hashes(lock: str) -> dict[str, list[str]]:
    """By `name==version`, the SHA-256 of each file that a lock allows, hexadecimal."""
    found: dict[str, list[str]] = {}
    for entry in re.split(r"(?m)^(?=[A-Za-z0-9])", lock):
        named = re.match(r"([\w.-]+==[^\s;\\]+)", entry)
        if named:
            found[named[1]] = re.findall(r"--hash=sha256:([0-9a-f]{64})", entry)
    return found
