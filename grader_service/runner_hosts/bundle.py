"""What a runner host is given: its key, both certificates, and the passwords that its services use."""

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

import yaml

from grader_service.errors import UsageError

SERVICES = ("pods", "runner")
"""Services of compose.yaml that run on a runner host, as far as they are there."""


def bundle(key: bytes, certificate: bytes, control: bytes, passwords: Mapping[str, bytes]) -> bytes:
    """A tar archive to be unpacked in the runner host's folder of secrets."""
    files = {"hosts/host.key": key, "hosts/host.pem": certificate, "hosts/control.pem": control, **passwords}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        folder = tarfile.TarInfo("hosts")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o755
        archive.addfile(folder)
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o444  # as on the control host: what closes them is the folder
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def passwords_of_runners(compose: Path, secrets: Path) -> dict[str, bytes]:
    """Name to content of the secrets that compose.yaml gives to services of a runner host.

    Raises:
        UsageError: one of them, or compose.yaml, is not there.
    """
    try:
        declared = yaml.safe_load(compose.read_text())
    except OSError as error:
        raise UsageError(f"{compose} cannot be read: {error}; call this in the folder of the repository") from error
    used = {
        secret if isinstance(secret, str) else secret["source"]
        for name in SERVICES
        for secret in declared["services"].get(name, {}).get("secrets", ())
    }
    found = {}
    for file in sorted(declared["secrets"][name]["file"].rpartition("/")[2] for name in used):
        try:
            found[file] = (secrets / file).read_bytes()
        except OSError as error:
            raise UsageError(
                f"{secrets / file} cannot be read: {error}; start the control host first (GRADER_ROLE=control make up)"
            ) from error
    return found
