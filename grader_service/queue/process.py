"""Runs a Celery worker in this process: children that work, threads of ours beside them, an orderly end."""

import os
import signal
import socket
from collections.abc import Callable, Sequence
from typing import Any, Protocol

# Read by Celery and its pool when they are imported: SIGTERM then starts the soft shutdown, after which work in hand is
# given back, in place of the warm one that waits for as long as a run takes.
os.environ.setdefault("REMAP_SIGTERM", "SIGQUIT")

from celery import Celery, signals
from celery.bootsteps import StartStopStep
from celery.utils.nodenames import default_nodename

from grader_service.queue.task_tracker import TaskTracker


class Companion(Protocol):
    """Something that runs in threads of the parent process while the worker is up."""

    def start(self) -> None:
        """Starts it; returns at once."""
        ...

    def stop(self) -> None:
        """Ends it; returns when it has ended."""
        ...


def serve(app: Celery, queues: Sequence[str], *, name: str, tasks: TaskTracker, companions: Sequence[Companion]) -> int:
    """Works until a signal ends it; returns the exit status.

    Args:
        queues: what the children work on, the first one first.
        name: distinguishes this worker from others of the host.
        tasks: of this worker's children; as many children as it counts work at the same time.
        companions: started once the children are there, so that no child inherits their threads; whether the broker
            lets the worker listen or not, since one that is full does not, and is emptied by a companion.
    """

    class Companions(StartStopStep):  # type: ignore[misc]
        """Starts them between the children and the connection to the broker."""

        requires = ("celery.worker.components:Pool",)

        def start(self, _: Any) -> None:
            for companion in companions:
                companion.start()

    tasks.open()
    app.steps["worker"].add(Companions)
    signals.worker_process_init.connect(_leave_on_sigterm, weak=False)
    worker = app.Worker(
        hostname=default_nodename(f"{name}@{socket.gethostname()}"),
        queues=list(queues),
        concurrency=tasks.children,
        pool="prefork",
        loglevel="WARNING",
        quiet=True,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        task_events=False,
        optimization="fair",
    )
    # Celery's own waits its whole time whenever there was work in hand at its start.
    worker.wait_for_soft_shutdown = lambda: tasks.wait_until_idle(app.conf.worker_soft_shutdown_timeout)
    try:
        worker.start()
    finally:
        app.steps["worker"].discard(Companions)
        signals.worker_process_init.disconnect(_leave_on_sigterm)
        tasks.close()
        for companion in companions:
            companion.stop()
    return int(worker.exitcode or 0)


def use_queues(consumer: Any, queues: Sequence[str], *, wanted: bool) -> None:
    """Starts or stops taking wake-ups, from any thread; a device in quarantine should leave them to others."""
    change: Callable[[str], None] = consumer.add_task_queue if wanted else consumer.cancel_task_queue
    for queue in queues:
        consumer.call_soon(change, queue)


def _leave_on_sigterm(**_: Any) -> None:
    """In a child: SIGTERM unwinds the stack, so that pods are removed and the run is given back."""
    for number in (signal.SIGTERM, signal.SIGQUIT):  # the second one is what the remapped pool sends
        signal.signal(number, _unwind)


def _unwind(number: int, _: Any) -> None:
    del number
    for ignored in (signal.SIGTERM, signal.SIGQUIT):  # tidying up must not be cut short by a second one
        signal.signal(ignored, signal.SIG_IGN)
    raise SystemExit(0)
