"""The runner hosts that a control host knows: a folder with its own certificate and theirs."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from grader_service.errors import UsageError
from grader_service.runner_hosts.certificates import make_pair, same

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


@dataclass(frozen=True)
class Register:
    """The folder `hosts` in that of secrets, which is mounted into the control host's end.

    Only `control.key` in it is secret: the keys of runner hosts are handed out and not kept.
    """

    folder: Path

    @property
    def certificate(self) -> Path:
        """Of the control host itself."""
        return self.folder / "control.pem"

    @property
    def key(self) -> Path:
        """Of the control host itself."""
        return self.folder / "control.key"

    def prepare(self) -> None:
        """Makes the control host's own certificate where there is none.

        Raises:
            UsageError: there is no folder of secrets to put it into.
        """
        if not self.folder.parent.is_dir():
            raise UsageError(
                f"{self.folder.parent} is not there; expected the folder of secrets of a control host: start it first "
                "(GRADER_ROLE=control make up), or name the folder by GRADER_SECRETS_DIR"
            )
        for folder in (self.folder, self.folder / "known"):
            folder.mkdir(exist_ok=True)
            folder.chmod(0o755)  # for the uids of containers; the folder above is closed
        if not self.certificate.is_file():
            key, certificate = make_pair("control", server=True)
            _write(self.key, key)
            _write(self.certificate, certificate)  # last: it says that both are here

    def known(self) -> dict[str, Path]:
        """Names of the runner hosts, in order, with their certificates."""
        return {path.stem: path for path in sorted((self.folder / "known").glob("*.pem"))}

    def name_of(self, certificate: bytes) -> str | None:
        """Which host has this certificate (DER); None where none has, or has it no longer."""
        return next((name for name, path in self.known().items() if same(path, certificate)), None)

    @contextmanager
    def added(self, name: str) -> Iterator[tuple[bytes, bytes]]:
        """The key and the certificate of a new runner host, which is known once the block ends without an error.

        Raises:
            UsageError: the name is none, or has been given to another host.
        """
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"{name!r} is no name of a host: expected up to 63 of a-z, 0-9 and dashes, with no dash at either end"
            )
        if name in self.known():
            raise UsageError(f"a host {name} is known already: another name, or `grader hosts remove {name}` first")
        self.prepare()
        pair = make_pair(name, server=False)
        yield pair
        _write(self.folder / "known" / f"{name}.pem", pair[1])

    def remove(self, name: str) -> None:
        """Forgets a runner host.

        Raises:
            UsageError: none has this name.
        """
        known = self.known()
        if name not in known:
            raise UsageError(f"no host {name} is known; known are: {', '.join(known) or 'none'}")
        known[name].unlink()


def _write(path: Path, data: bytes) -> None:
    arriving = path.with_suffix(".arriving")
    arriving.write_bytes(data)
    arriving.chmod(0o444)
    arriving.replace(path)
