"""Attempts on the walls of a pod: a submission tries, prints what it got, and the next one is graded as if nothing was.

The last line of such a submission is `RESULT` and a list. It is read from the end of the pod's log, which the service
itself never does.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from grader_service.model.evidence import PodRole
from grader_service.model.verdict import Outcome
from grader_service.service.local import Graded
from sandbox.api import PodSpec, Scratch, SpaceLimits
from sandbox.docker.options import PodFolders, ScratchVolumes, container_options, labels
from tests.corpus.case import Observed, Procedure
from tests.corpus.parts import REFLECTIONS, joined
from tests.corpus.world import World

CONTAINED = "pod.contained"
MARK = "RESULT "

TRY = """
import json, os, sys, time

got = []


def attempt(name, deed):
    try:
        if deed():
            got.append(name)
    except Exception as error:
        print("TRIED", name, type(error).__name__, error)
"""
"""`attempt(name, deed)`: what works is a gain, what raises is not."""

TELL = f'print("\\n{MARK}" + json.dumps(got), flush=True)'

CALL = """
import ctypes

libc = ctypes.CDLL(None, use_errno=True)


def call(*numbers):
    result = libc.syscall(*(ctypes.c_long(number) if isinstance(number, int) else number for number in numbers))
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
"""
"""A system call by its number, of x86-64."""

CONNECT = """
import socket


def connect(path):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(1.0)
        connection.connect(path)
    return True
"""
"""Whether somebody listens at a socket's file."""

Around = Callable[[World], AbstractContextManager[Mapping[str, str]]]
"""What is there while the attempt is made: text in the script → what stands for it."""


@dataclass(frozen=True)
class Attempt:
    """Plays one attempt; `passed` means that the attacker got something, or that the runner waits for it."""

    script: str
    limits: Mapping[str, object] = field(default_factory=dict)
    around: Around = lambda _: nullcontext({})
    patience_s: float = 40.0
    """Longer than that is a gain too: a runner that waits grades nobody."""

    def __call__(self, world: World) -> Observed:
        """Grades it, looks at what it got, and grades an honest one."""
        started = time.monotonic()
        with self.around(world) as values:
            content = joined(TRY, self.script, TELL, REFLECTIONS)
            for name, value in values.items():
                content = content.replace(name, value)
            done = world.grade(content, steps=("reflection",), lab=world.lab(limits=self.limits))
        seconds = time.monotonic() - started
        observed = gained(done)
        if observed.outcome != "failed":
            return observed
        if seconds > self.patience_s:
            return Observed("passed", "pod.late", f"{seconds:.0f} s")
        return observed if fine(world) else Observed("error", "pod.harmed_the_next", observed.detail)


def contained(id_: str, title: str, *script: str, code: str = CONTAINED, **more: object) -> Procedure:
    """The case of an attempt of these parts, which gets nothing."""
    return Procedure(id_, title, Attempt(joined(*script), **more), (code,))


def gained(done: Graded) -> Observed:
    """What an attempt got, as its pod's log tells; where it tells nothing, how the pod ended."""
    verdict = done.verdict
    if done.failure is not None or done.evidence is None or not verdict.checks:
        return Observed("error", verdict.code, str(done.failure or verdict.feedback))
    (check,) = verdict.checks
    pod = next(pod for pod in done.evidence.run.pods if pod.role is PodRole.LEARNER)
    told = [line.removeprefix(MARK) for line in pod.log_tail.splitlines() if line.startswith(MARK)]
    if not told:  # it was killed: the learner's failure, or there is something wrong with us
        outcome = "failed" if check.counted is Outcome.FAILED else "error"
        return Observed(outcome, f"pod.{pod.ending.value}", f"{check.code}: {check.feedback} {pod.log_tail[-600:]}")
    if got := json.loads(told[-1]):
        return Observed("passed", "pod.gained", "; ".join(got))
    if check.code != "reflections.ok":  # its honest part must be graded as if nothing had been tried
        return Observed("error", check.code, f"{check.feedback} {pod.log_tail[-600:]}")
    return Observed("failed", CONTAINED, pod.log_tail[-1500:])


def fine(world: World) -> bool:
    """Whether an honest submission is graded now."""
    done = world.grade(joined(REFLECTIONS), steps=("reflection",))
    return done.failure is None and [check.code for check in done.verdict.checks] == ["reflections.ok"]


@contextmanager
def neighbour(world: World, *, script: str) -> Iterator[Mapping[str, str]]:
    """Another learner's pod, with all that the policy gives it, which does something, says READY and stays."""
    assert world.engine is not None, "needs the Docker sandbox"
    options = container_options(
        PodSpec(role=PodRole.LEARNER, program="drill", memory_mib=512, pids=64, cpus=(0,)),
        run_id="neighbour",
        number=0,
        labels=labels("neighbour", world.state_dir),
        image="grader-lab",
        folders=PodFolders(*[Path("/nowhere")] * 4, None),
        volumes=ScratchVolumes("", "", ""),
        gpu=None,
        uid=65534,
    )
    command = ["python3", "-u", "-c", f"{joined(TRY, CALL, script)}\nprint('READY')\ntime.sleep(300)"]
    name = f"corpus-neighbour-{time.time_ns():x}"
    container = world.engine.containers.create(**{**options, "name": name, "mounts": [], "command": command})
    try:
        container.start()
        deadline = time.monotonic() + 30
        while b"READY" not in (said := container.logs()):
            if time.monotonic() > deadline:
                raise RuntimeError(f"the neighbour is not ready: {said.decode(errors='replace')[-600:]}")
            time.sleep(0.1)
        yield {}
    finally:
        container.remove(force=True)


@contextmanager
def file_beside(world: World) -> Iterator[Mapping[str, str]]:
    """Another learner's run, whose pod has written a file into its scratch and stays; the file's name for `@NAME@`."""
    name = f"corpus-{time.time_ns():x}"
    with world.runner.open_run(f"neighbour-{time.time_ns():x}", SpaceLimits(64, 1000, 64)) as space:
        spec = PodSpec(
            role=PodRole.LEARNER, program="drill", memory_mib=512, pids=64, cpus=(0,), scratch=Scratch.READ_WRITE
        )
        pod = space.start(spec)
        assert pod.send({"kind": "write", "path": f"/workspace/{name}", "size": 16}) is None
        answer = pod.receive(30)
        assert not isinstance(answer, str), answer
        yield {"@NAME@": name}
