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

app = group(
    "Runners on hosts of their own: which hosts are known, and the connections between them and the control host."
)
_Secrets = Annotated[
    Path, typer.Option(envvar="GRADER_SECRETS_DIR", help="Folder of the control host's passwords; its hosts/ is used.")
]
_Certificates = Annotated[Path, typer.Option(help="Folder with the certificates of this end.")]
_SECRETS = Path("secrets")


@app.command("prepare")
def prepare(secrets: _Secrets = _SECRETS) -> None:
    """Make the control host's own key and certificate where there are none, as `images/up.sh` does."""
    Register(secrets / "hosts").prepare()


@app.command("add")
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the new host.")],
    secrets: _Secrets = _SECRETS,
) -> None:
    """Make a runner host known, and write what it must be given to standard output, as a tar archive.

    It holds the host's private key, which is not kept here, and passwords: who reads it can work as a runner.
    """
    if sys.stdout.isatty():
        raise UsageError(f"an archive would go to the terminal; expected a file: grader hosts add {name} > {name}.tar")
    register = Register(secrets / "hosts")
    passwords = passwords_of_runners(Path("compose.yaml"), secrets)
    with contextlib.suppress(OSError):  # a pipe's other end is its reader's
        if stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode):
            os.fchmod(sys.stdout.fileno(), 0o600)  # whatever the shell's umask says
    with register.added(name) as (key, certificate):
        sys.stdout.buffer.write(bundle(key, certificate, register.certificate.read_bytes(), passwords))
        sys.stdout.buffer.flush()
    typer.echo(
        f"{name} is known. Bring the archive there, and in the folder of the repository:\n"
        f"  install -d -m 700 secrets && tar -xp -C secrets -f {name}.tar\n"
        f"  GRADER_ROLE=runner GRADER_RUNNER_NAME={name} GRADER_CONTROL_ADDRESS=ADDRESS make up\n"
        "Then remove the archive on both hosts.",
        err=True,
    )


@app.command("list")
def list_hosts(secrets: _Secrets = _SECRETS) -> None:
    """Print the names of the runner hosts that are known."""
    for name in Register(secrets / "hosts").known():
        typer.echo(name)


@app.command("remove")
def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the host.")],
    secrets: _Secrets = _SECRETS,
) -> None:
    """Forget a runner host: its connections end within seconds, and it makes no others."""
    Register(secrets / "hosts").remove(name)
    typer.echo(f"{name} is known no longer; the passwords that it was given are, until they are changed", err=True)


@app.command("accept")
def accept(
    certificates: _Certificates,
    to: Annotated[list[str], typer.Option(help="A service for runner hosts, SERVICE=HOST:PORT; repeatable.")],
    listen: Annotated[str, typer.Option(help="HOST:PORT to listen on.")] = "0.0.0.0:7443",
) -> None:
    """Take connections of known runner hosts to these services, until told to stop: the control host's end."""
    configure_logs("link")
    anyio.run(partial(tunnel.accept, Register(certificates), _routes(to), _address(listen)))


@app.command("connect")
def connect(
    control: Annotated[str, typer.Option(help="HOST:PORT at which the control host accepts connections.")],
    certificates: _Certificates,
    at: Annotated[list[str], typer.Option(help="Where to listen in a service's place, SERVICE=HOST:PORT; repeatable.")],
) -> None:
    """Carry connections to services of the control host, until told to stop: a runner host's end."""
    configure_logs("link")
    anyio.run(partial(tunnel.connect, certificates, _address(control), _routes(at)))


@app.command("artifacts")
def artifacts(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The artifact store's folder.")],
    listen: Annotated[str, typer.Option(help="HOST:PORT to listen on.")] = "0.0.0.0:8080",
) -> None:
    """Let runner hosts read artifacts by their digest, over HTTP, until told to stop. `accept` says who is one."""
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
        raise UsageError(f"{text!r} is no address: expected HOST:PORT, such as 192.0.2.7:7443 or [2001:db8::7]:7443")
    return host.removeprefix("[").removesuffix("]"), int(port)
