"""`grader devices`: which GPUs and slots there are, and which of them may be used."""

import time
from typing import Annotated

import typer

from grader_service.cli.arguments import operator, service_store
from grader_service.cli.loading import group
from grader_service.cli.output import console, say, table_of, tell
from grader_service.errors import UsageError
from grader_service.store import devices as device_store
from grader_service.store.engine import Store

app = group("GPUs and slots: list, ready, drain.")

DeviceId = Annotated[str | None, typer.Argument(metavar="DEVICE", help="As listed.")]
Host = Annotated[str | None, typer.Option(help="All devices of this host instead of one device.")]
_LOOK_S = 2.0


@app.command("list")
def list_devices() -> None:
    """List every device that a worker has announced, with the run that holds it."""
    rows = (
        (one.device_id, one.host, one.model, one.state, f"{one.seen_s:.0f} s ago", one.run_id or "", one.reason or "")
        for one in device_store.devices(service_store())
    )
    console().print(table_of("device", "host", "model", "state", "seen", "run", "reason", rows=rows))


@app.command("ready")
def ready(device_id: DeviceId = None, *, host: Host = None) -> None:
    """Put a device back into service. With --host: all drained devices of the host, but no quarantined ones."""
    _move(service_store(), device_id, host, device_store.READY, None)


@app.command("drain")
def drain(
    device_id: DeviceId = None,
    *,
    host: Host = None,
    reason: Annotated[str, typer.Option("--reason", "-m", help="For other operators.")] = "drained by an operator",
    wait: Annotated[bool, typer.Option("--wait", help="Wait until nothing runs there.")] = False,
) -> None:
    """Take no more runs on a device; the current run is finished. With --host: all devices that are in service."""
    store = service_store()
    names = _move(store, device_id, host, device_store.DRAINING, reason)
    if wait:
        _wait(store, names)


def _move(store: Store, device_id: str | None, host: str | None, state: str, reason: str | None) -> list[str]:
    """Says what became of each device that was meant; returns them all."""
    if (device_id is None) == (host is None):
        raise UsageError("name a device, or a host with --host; `grader devices list` shows both")
    if device_id is not None:
        if not device_store.set_state(store, device_id, state, reason, operator()):
            raise UsageError(f"no worker has announced a device {device_id}; see `grader devices list`")
        say(f"{device_id}: {state}")
        return [device_id]
    assert host is not None  # noqa: S101 - one of the two is named
    moved = device_store.set_state_of_host(store, host, state, reason, operator())
    found = [device for device in device_store.devices(store) if device.host == host]
    if not found:
        raise UsageError(f"no worker has announced a device of host {host}; see `grader devices list`")
    for device in found:
        if device.device_id in moved:
            say(f"{device.device_id}: {state}")
        else:
            say(f"{device.device_id} stays {device.state}" + (f": {device.reason}" if device.reason else ""))
    return [device.device_id for device in found]


def _wait(store: Store, names: list[str]) -> None:
    """Until nothing runs there in two looks: a worker may have seen its device ready just before, and claim then."""
    shown, empty = None, 0
    while empty < 2:
        busy = [one for one in device_store.devices(store) if one.device_id in names and one.run_id]
        empty = 0 if busy else empty + 1
        runs = ", ".join(f"{one.run_id} on {one.device_id}" for one in busy)
        if runs and runs != shown:
            tell(f"still at work: {runs}")
        shown = runs
        if empty < 2:
            time.sleep(_LOOK_S)
    say("nothing runs there")
