"""`grader pods`: the pod broker."""

import os
import signal
import threading

import structlog

from grader_service.logs import configure_logs
from grader_service.settings import Settings


def pods() -> None:
    """Start pods for a runner that has no access to a Docker engine, until stopped.

    Listens on the socket that GRADER_POD_BROKER names; only this process needs the engine's socket. Exit code 2 when a
    setting is wrong or another broker uses the socket, 3 when the engine, the lab image or the GPU is missing.
    """
    from grader_service import wiring  # noqa: PLC0415 - other commands should not wait for Docker's client
    from grader_service.errors import ConfigurationError  # noqa: PLC0415

    settings = Settings()
    if settings.pod_broker is None:
        raise ConfigurationError("GRADER_POD_BROKER is not set; expected the path of the socket to serve on")
    configure_logs("pods")
    os.umask(0o027)  # nobody else may write to what is made here, but where it says so
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    broker = wiring.open_pod_broker(settings)
    structlog.get_logger(__name__).info("pod_broker_starts", socket=str(settings.pod_broker))
    broker.serve(settings.pod_broker, stopped)
