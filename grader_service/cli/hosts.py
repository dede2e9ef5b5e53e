"""`grader hosts`: runners on hosts of their own, and the way between them and the control host."""

import contextlib
import os
import stat
import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import anyio
import typer
import uvicorn

from grader_service.cli.loading import group
from grader_service.errors import UsageError
from grader_service.logs import configure_logs
from grader_service.runner_hosts import tunnel
from grader_service.runner_hosts.artifact_app import artifact_app
from grader_service.runner_hosts.bundle import bundle, passwords_of_runners
from grader_service.runner_hosts.register import Register

app = group("Runner hosts: add, list, remove, and the tunnel between them and the control host.")
_Secrets = Annotated[
    Path, typer.Option(envvar="GRADER_SECRETS_DIR", help="Folder of the control host's passwords; its hosts/ is used.")
]
_Certificates = Annotated[Path, typer.Option(help="Folder with the certificates of this end.")]
_SECRETS = Path("secrets")


@app.command("prepare")
def prepare(secrets: _Secrets = _SECRETS) -> None:
    """Create the control host's key and certificate if there are none, as `images/up.sh` does."""
    Register(secrets / "hosts").prepare()


@app.command("add")
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the new host.")],
    secrets: _Secrets = _SECRETS,
) -> None:
    """Register a runner host, and write its credentials to standard output as a tar archive.

    They are the host's private key, which is not kept here, and passwords: whoever reads them can act as a runner.
    """
    if sys.stdout.isatty():
        raise UsageError(f"the archive would go to the terminal; use a file: grader hosts add {name} > {name}.tar")
    register = Register(secrets / "hosts")
    passwords = passwords_of_runners(Path("compose.yaml"), secrets)
    with contextlib.suppress(OSError):  # a pipe's other end is its reader's
        if stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode):
            os.fchmod(sys.stdout.fileno(), 0o600)  # whatever the shell's umask says
    with register.added(name) as (key, certificate):
        sys.stdout.buffer.write(bundle(key, certificate, register.certificate.read_bytes(), passwords))
        sys.stdout.buffer.flush()
    typer.echo(
        f"{name} is registered. Copy the archive to it, and run there, in the folder of the repository:\n"
        f"  install -d -m 700 secrets && tar -xp -C secrets -f {name}.tar\n"
        f"  GRADER_ROLE=runner GRADER_RUNNER_NAME={name} GRADER_CONTROL_ADDRESS=ADDRESS make up\n"
        "Then delete the archive on both hosts.",
        err=True,
    )


@app.command("list")
def list_hosts(secrets: _Secrets = _SECRETS) -> None:
    """Print the names of the registered runner hosts."""
    for name in Register(secrets / "hosts").known():
        typer.echo(name)


@app.command("remove")
def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the host.")],
    secrets: _Secrets = _SECRETS,
) -> None:
    """Remove a runner host: its connections end within seconds, and new ones are refused."""
    Register(secrets / "hosts").remove(name)
    typer.echo(f"{name} is removed; the passwords that it was given stay valid until they are changed", err=True)


@app.command("accept")
def accept(
    certificates: _Certificates,
    to: Annotated[list[str], typer.Option(help="A service for runner hosts, SERVICE=HOST:PORT; repeatable.")],
    listen: Annotated[str, typer.Option(help="HOST:PORT to listen on.")] = "0.0.0.0:7443",
) -> None:
    """Run the control host's end of the tunnel: registered runner hosts may connect to these services."""
    configure_logs("link")
    anyio.run(partial(tunnel.accept, Register(certificates), _routes(to), _address(listen)))


@app.command("connect")
def connect(
    control: Annotated[str, typer.Option(help="HOST:PORT at which the control host accepts connections.")],
    certificates: _Certificates,
    at: Annotated[list[str], typer.Option(help="Local address of a service, SERVICE=HOST:PORT; repeatable.")],
) -> None:
    """Run a runner host's end of the tunnel: forward connections to services of the control host."""
    configure_logs("link")
    anyio.run(partial(tunnel.connect, certificates, _address(control), _routes(at)))


@app.command("artifacts")
def artifacts(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The artifact store's folder.")],
    listen: Annotated[str, typer.Option(help="HOST:PORT to listen on.")] = "0.0.0.0:8080",
) -> None:
    """Serve artifacts by their digest over HTTP. It asks nobody who they are: put `accept` in front of it."""
    configure_logs("artifacts")
    host, port = _address(listen)
    uvicorn.run(
        artifact_app(folder), host=host, port=port, http="h11", log_config=None, access_log=False, lifespan="off"
    )


def _routes(given: list[str]) -> dict[str, tuple[str, int]]:
    return {service: _address(address) for service, _, address in (text.partition("=") for text in given)}


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or not int(port) < 65536:
        raise UsageError(f"{text!r}: expected HOST:PORT, such as 192.0.2.7:7443 or [2001:db8::7]:7443")
    return host.removeprefix("[").removesuffix("]"), int(port)
