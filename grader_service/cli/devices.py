"""`grader devices`: which GPUs and slots there are, and which of them may be used."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from grader_service.cli.arguments import operator
from grader_service.cli.database import service_store
from grader_service.cli.output import console, error_console, table_of
from grader_service.errors import UsageError

if TYPE_CHECKING:
    from grader_service.store.engine import Store

app = typer.Typer(help="GPUs and slots: list, ready, drain.", no_args_is_help=True, rich_markup_mode=None)

DeviceId = Annotated[str | None, typer.Argument(metavar="DEVICE", help="As listed.")]
Host = Annotated[str | None, typer.Option(help="Every device of this host, in place of one device.")]
_LOOK_S = 2.0


@app.command("list")
def list_devices() -> None:
    """List every device that a worker has announced, with the run that holds it."""
    from grader_service.store import devices as device_store

    table = table_of("device", "host", "model", "state", "seen", "run", "reason")
    for device in device_store.devices(service_store()):
        table.add_row(
            device.device_id,
            device.host,
            device.model,
            device.state,
            f"{device.seen_s:.0f} s ago",
            device.run_id or "",
            device.reason or "",
        )
    console().print(table)


@app.command("ready")
def ready(device_id: DeviceId = None, *, host: Host = None) -> None:
    """Put a device back into service after a look at it; of a host, those that were drained, not the quarantined."""
    from grader_service.store import devices as device_store

    _move(service_store(), device_id, host, device_store.READY, None)


@app.command("drain")
def drain(
    device_id: DeviceId = None,
    *,
    host: Host = None,
    reason: Annotated[str, typer.Option("--reason", "-m", help="Why, for the next person.")] = "drained by an operator",
    wait: Annotated[bool, typer.Option("--wait", help="Return once nothing runs on them any more.")] = False,
) -> None:
    """Take no further runs on a device; what runs on it is finished. Of a host, those that are in service."""
    from grader_service.store import devices as device_store

    store = service_store()
    names = _move(store, device_id, host, device_store.DRAINING, reason)
    if wait:
        _wait(store, names)


def _move(store: "Store", device_id: str | None, host: str | None, state: str, reason: str | None) -> list[str]:
    """Says what became of each device that was meant; returns them all."""
    from grader_service.store import devices as device_store

    if (device_id is None) == (host is None):
        raise UsageError("name one device, or all of a host with --host; `grader devices list` has both")
    if device_id is not None:
        if not device_store.set_state(store, device_id, state, reason, operator()):
            raise UsageError(f"no worker has announced a device {device_id}; see `grader devices list`")
        _say(f"{device_id}: {state}")
        return [device_id]
    assert host is not None  # noqa: S101 - one of the two is named
    moved = device_store.set_state_of_host(store, host, state, reason, operator())
    found = [device for device in device_store.devices(store) if device.host == host]
    if not found:
        raise UsageError(f"no worker has announced a device of host {host}; see `grader devices list`")
    for device in found:
        if device.device_id in moved:
            _say(f"{device.device_id}: {state}")
        else:
            _say(f"{device.device_id} stays {device.state}" + (f": {device.reason}" if device.reason else ""))
    return [device.device_id for device in found]


def _wait(store: "Store", names: list[str]) -> None:
    """Until nothing runs there in two looks: a worker may have seen its device ready just before, and claim then."""
    from grader_service.store import devices as device_store

    shown, empty = None, 0
    while empty < 2:
        busy = [one for one in device_store.devices(store) if one.device_id in names and one.run_id]
        empty = 0 if busy else empty + 1
        runs = ", ".join(f"{one.run_id} on {one.device_id}" for one in busy)
        if runs and runs != shown:
            error_console().print(f"still at work: {runs}", markup=False, soft_wrap=True)
        shown = runs
        if empty < 2:
            time.sleep(_LOOK_S)
    _say("nothing runs there")


def _say(text: str) -> None:
    console().print(text, markup=False, soft_wrap=True)
