"""Pod brokers for tests: in a thread of this process, or as the process that an operator starts."""

import contextlib
import os
import subprocess
import threading
from dataclasses import replace

from grader_service.errors import SandboxUnavailable
from grader_service.host.facts import usable_cpus
from sandbox.broker import wire
from sandbox.broker.client import Line
from sandbox.broker.rules import Bounds
from sandbox.broker.server import PodBroker
from sandbox.docker.runner import DockerRunner
from tests.levels.parts import BIN
from tests.waiting import wait_for

BOUNDS = Bounds(
    memory_mib=4096, pids=4096, inodes=100_000, pods=16, runs=8, cpus=frozenset(usable_cpus(1 << 16)), gpu=False
)


def answers(path):
    """Whether a broker, and its engine, answer there."""
    try:
        with Line(path) as line:
            line.call(wire.Look(), wire.Done)
    except SandboxUnavailable:
        return False
    return True


@contextlib.contextmanager
def serving(image, state_dir, *, images=(), peers=None, **bounds):
    """The path of the socket of one that lives in a thread."""
    path = state_dir / "broker.sock"
    runner = DockerRunner(image, state_dir, shared=True)
    broker = PodBroker(runner, images or [image], replace(BOUNDS, **bounds), peers or frozenset({os.geteuid()}))
    stopped = threading.Event()
    thread = threading.Thread(target=broker.serve, args=(path, stopped))
    thread.start()
    try:
        wait_for(path.exists, 10)
        yield path
    finally:
        stopped.set()
        thread.join()


@contextlib.contextmanager
def grader_pods(state_dir, image):
    """`grader pods` as a process, which answers; killed in the end if it still lives."""
    path = state_dir / "broker.sock"
    environment = {name: os.environ[name] for name in ("PATH", "DOCKER_HOST") if name in os.environ}
    environment |= {
        "GRADER_STATE_DIR": str(state_dir), "GRADER_POD_BROKER": str(path), "GRADER_LAB_IMAGE": image,
        "GRADER_GPU": "none", "GRADER_LOCK_DIR": str(state_dir),
    }  # fmt: skip
    with subprocess.Popen([BIN / "grader", "pods"], env=environment) as process:
        try:
            wait_for(lambda: process.poll() is not None or answers(path), 20)
            yield process
        finally:
            process.kill()


def anew(engine, image, name):
    """Gives an image of another id this name."""
    container = engine.containers.create(image)
    container.commit(name, "latest")
    container.remove()
