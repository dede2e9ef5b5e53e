"""What every runner must do, as a suite that any runner can be put through.

    for behaviour in BEHAVIOURS:
        behaviour.check(runner)         # raises ConformanceError

A runner without walls lists the behaviours that it cannot show in `NEEDS_ISOLATION`.
"""

import contextlib
import os
import secrets
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from grader_service.model.evidence import Ending, PodRole
from sandbox.api import Pod, PodSpec, RunSpace, SandboxRunner, Scratch, SpaceLimits
from sandbox.frames import HEADER, Message

PATIENCE_S = 60.0
_SOON_S = 30.0
"""Killing and removing a pod, on a busy host."""


class ConformanceError(AssertionError):
    """The runner did not do what every runner must do."""


@dataclass(frozen=True)
class Behaviour:
    """One behaviour: its name is the promise."""

    name: str
    check: Callable[[SandboxRunner], None]


BEHAVIOURS: list[Behaviour] = []
NEEDS_ISOLATION: set[str] = set()
"""Behaviours that only a runner with walls can show."""


def _behaviour(
    *, isolation: bool = False
) -> Callable[[Callable[[SandboxRunner], None]], Callable[[SandboxRunner], None]]:
    def register(function: Callable[[SandboxRunner], None]) -> Callable[[SandboxRunner], None]:
        BEHAVIOURS.append(Behaviour(function.__name__, function))
        if isolation:
            NEEDS_ISOLATION.add(function.__name__)
        return function

    return register


@_behaviour()
def messages_and_bytes_go_both_ways(runner: SandboxRunner) -> None:
    """A request and its blob come back unchanged."""
    with _pod(runner) as (pod, _):
        blob = secrets.token_bytes(3 << 20)
        answer = _ask(pod, {"kind": "echo", "value": ["é", 1, 2.5, None, {"a": True}]}, blob)
        _equal(answer.blob, blob)
        _equal(answer.body["value"], ["é", 1, 2.5, None, {"a": True}])


@_behaviour()
def an_exit_is_reported_with_its_code(runner: SandboxRunner) -> None:
    """`os._exit(7)` is EXITED with 7, never a success."""
    with _pod(runner) as (pod, _):
        _equal(_order(pod, {"kind": "exit", "code": 7}), Ending.EXITED)
        _equal(pod.end().exit_code, 7)


@_behaviour()
def an_exit_with_code_0_is_no_success(runner: SandboxRunner) -> None:
    """Leaving without an answer is EXITED even with exit code 0."""
    with _pod(runner) as (pod, _):
        _equal(_order(pod, {"kind": "exit", "code": 0}), Ending.EXITED)


@_behaviour()
def a_crash_is_reported(runner: SandboxRunner) -> None:
    """A memory fault ends the pod and nothing else."""
    with _pod(runner) as (pod, _):
        _equal(_order(pod, {"kind": "signal"}), Ending.EXITED)
        _true(pod.end().exit_code in (139, -11), f"exit code {pod.end().exit_code}")


@_behaviour()
def the_deadline_is_the_hosts(runner: SandboxRunner) -> None:
    """A pod that ignores every signal and never answers is killed soon after the deadline."""
    for kind in ("hang", "spin"):
        with _pod(runner) as (pod, _):
            _send(pod, {"kind": kind})
            started = time.monotonic()
            _equal(pod.receive(0.5), Ending.TIMED_OUT)
            _true(time.monotonic() - started < _SOON_S, "killing took too long")


@_behaviour()
def daemons_do_not_survive(runner: SandboxRunner) -> None:
    """A process in a session of its own, orphaned and deaf to signals, is dead when its pod has ended."""
    with _space(runner) as space:
        path = f"{space.paths.workspace}/heartbeat"
        reader = space.start(_spec(runner, role=PodRole.SCANNER, scratch=Scratch.READ_ONLY))
        _ask(reader, {"kind": "echo", "value": 0})
        pod = space.start(_spec(runner, scratch=Scratch.READ_WRITE))
        _ask(pod, {"kind": "daemon", "path": path})
        _wait_until(lambda: _number(_ask(reader, {"kind": "size", "path": path})) > 0, "the daemon never wrote")
        pod.end()
        before = _number(_ask(reader, {"kind": "size", "path": path}))
        time.sleep(0.3)
        _equal(_number(_ask(reader, {"kind": "size", "path": path})), before)


@_behaviour()
def malformed_frames_end_the_pod(runner: SandboxRunner) -> None:
    """An absurd length, broken JSON and a torn frame stand for all that `frames` refuses: protocol violations."""
    for frame in (struct.pack(">II", 2**32 - 1, 0), HEADER.pack(1, 0) + b"{"):
        with _pod(runner) as (pod, _):
            _equal(_order(pod, {"kind": "raw", "data": frame.hex()}), Ending.PROTOCOL_VIOLATION)
    with _pod(runner) as (pod, _):
        torn = HEADER.pack(10, 0) + b"{}"
        _equal(_order(pod, {"kind": "raw", "data": torn.hex(), "close": True}), Ending.PROTOCOL_VIOLATION)


@_behaviour()
def a_dripping_frame_meets_the_deadline(runner: SandboxRunner) -> None:
    """A frame that arrives a byte at a time does not stretch the deadline."""
    with _pod(runner) as (pod, _):
        _send(pod, {"kind": "drip"})
        started = time.monotonic()
        _equal(pod.receive(1.0), Ending.TIMED_OUT)
        _true(time.monotonic() - started < _SOON_S, "the deadline was stretched")


@_behaviour()
def only_one_connection_is_taken(runner: SandboxRunner) -> None:
    """Whatever else runs in the pod cannot open a second conversation with the host."""
    with _pod(runner) as (pod, _):
        answer = _ask(pod, {"kind": "connect_again"})
        _equal(answer.body["connected"], False)


@_behaviour()
def memory_is_limited(runner: SandboxRunner) -> None:
    """A pod that takes more than its memory is OUT_OF_MEMORY, and the host is not."""
    with _pod(runner, memory_mib=192) as (pod, _):
        _equal(_order(pod, {"kind": "eat_memory"}), Ending.OUT_OF_MEMORY)


@_behaviour(isolation=True)
def processes_are_limited(runner: SandboxRunner) -> None:
    """A fork bomb stops at the limit."""
    with _pod(runner, pids=64) as (pod, _):
        made = _ask(pod, {"kind": "fork_many", "most": 500}).body["made"]
        _true(isinstance(made, int) and made < 64, f"{made} processes were made")


@_behaviour()
def many_processes_are_killed(runner: SandboxRunner) -> None:
    """Every child of a pod with many children is gone at its end."""
    with _pod(runner) as (pod, _):
        _ask(pod, {"kind": "fork_many", "most": 100})
        started = time.monotonic()
        pod.end()
        _true(time.monotonic() - started < _SOON_S, "killing took too long")


@_behaviour()
def a_flood_of_output_is_harmless(runner: SandboxRunner) -> None:
    """Output is drained, cut and never parsed."""
    with _pod(runner) as (pod, _):
        _ask(pod, {"kind": "flood", "mib": 64})
        _true(len(pod.end().log_tail) <= 8192, "the log's tail is too long")


@_behaviour()
def what_a_pod_writes_can_be_read(runner: SandboxRunner) -> None:
    """While it runs, also beside the thread that waits for it, and after its end; it is safe to show."""
    with _pod(runner) as (pod, _), ThreadPoolExecutor(1) as beside:
        _ask(pod, {"kind": "say", "text": "one\x1b[2J", "stream": "stdout"})
        _wait_until(lambda: "one\ufffd[2J\n" in pod.output(), "what was printed cannot be read")
        seen = beside.submit(pod.output)
        _ask(pod, {"kind": "say", "text": "10%\r20%", "stream": "stderr"})
        _true("one" in seen.result(PATIENCE_S), "what was printed before is gone")
        pod.end()
        _true(pod.output().endswith("10%\n20%\n"), f"after its end there is {pod.output()[-100:]!r}")


@_behaviour()
def a_paused_pod_stands_still(runner: SandboxRunner) -> None:
    """Between pause and resume nothing in the pod runs."""
    with _pod(runner) as (pod, _):
        _ask(pod, {"kind": "count"})
        pod.pause()
        time.sleep(1.0)
        pod.resume()
        answer = _ask(pod, {"kind": "read_count"})
        counted, longest = _number(answer), answer.body.get("longest")
        # Of a pod that ran on, a busy host makes the pauses longer, but none of them as long as this.
        _true(isinstance(longest, float) and longest >= 0.9, f"it never stood longer than {longest} s")
        _wait_until(lambda: _number(_ask(pod, {"kind": "read_count"})) > counted, "the pod did not run on")


@_behaviour()
def a_paused_pod_can_be_ended(runner: SandboxRunner) -> None:
    """Ending a frozen pod works, and soon."""
    with _pod(runner) as (pod, _):
        _ask(pod, {"kind": "echo", "value": 1})
        pod.pause()
        started = time.monotonic()
        _equal(pod.end().ending, Ending.COMPLETED)
        _true(time.monotonic() - started < _SOON_S, "ending a frozen pod took too long")


@_behaviour()
def ending_twice_gives_the_same_record(runner: SandboxRunner) -> None:
    """`end` can be called again; a pod that has ended answers with how it did."""
    with _pod(runner) as (pod, _):
        _ask(pod, {"kind": "echo", "value": 1})
        record = pod.end()
        _equal(pod.end(), record)
        _equal(pod.receive(0.1), Ending.COMPLETED)
        _equal(pod.send({"kind": "echo", "value": 1}), Ending.COMPLETED)


@_behaviour()
def held_out_files_appear_at_once(runner: SandboxRunner) -> None:
    """What the host writes into the shards folder is there for a running pod."""
    with _pod(runner, shards=True) as (pod, space):
        path = f"{space.paths.shards}/late.jpg"
        _equal(_number(_ask(pod, {"kind": "size", "path": path})), -1)
        (space.shards_dir / "late.jpg").write_bytes(b"12345")
        _equal(_number(_ask(pod, {"kind": "size", "path": path})), 5)


@_behaviour(isolation=True)
def mounts_are_read_only(runner: SandboxRunner) -> None:
    """Submission, shards, guest code and the image cannot be written to."""
    with _pod(runner, shards=True, submission=True) as (pod, space):
        for folder in (space.paths.shards, space.paths.submission, "/grader/code", "/usr", "/etc", "/"):
            answer = _ask(pod, {"kind": "write", "path": f"{folder}/new", "size": 1})
            _true(bool(answer.body["error"]), f"{folder} is writable")


@_behaviour(isolation=True)
def the_scanner_cannot_change_what_it_scans(runner: SandboxRunner) -> None:
    """The same scratch is writable for one role and read-only for another."""
    with _space(runner) as space:
        writer = space.start(_spec(runner, scratch=Scratch.READ_WRITE))
        path = f"{space.paths.workspace}/file"
        _equal(_ask(writer, {"kind": "write", "path": path, "size": 10}).body["error"], "")
        reader = space.start(_spec(runner, role=PodRole.SCANNER, scratch=Scratch.READ_ONLY))
        _equal(_number(_ask(reader, {"kind": "size", "path": path})), 10)
        _true(bool(_ask(reader, {"kind": "write", "path": path, "size": 1}).body["error"]), "scratch is writable")


@_behaviour(isolation=True)
def scratch_is_bounded(runner: SandboxRunner) -> None:
    """A pod cannot fill the host's disk or memory through its scratch."""
    with _space(runner, SpaceLimits(workspace_mib=16, workspace_inodes=1000, shm_mib=16)) as space:
        pod = space.start(_spec(runner, scratch=Scratch.READ_WRITE))
        for folder in (space.paths.workspace, space.paths.tmp, space.paths.shm):
            answer = _ask(pod, {"kind": "write", "path": f"{folder}/big", "size": 64 << 20})
            _equal(answer.body["error"], "No space left on device")


@_behaviour()
def scratch_outlives_the_pod_that_wrote_it(runner: SandboxRunner) -> None:
    """A scanner that was started before sees the files after the writer's end."""
    with _space(runner) as space:
        reader = space.start(_spec(runner, role=PodRole.SCANNER, scratch=Scratch.READ_ONLY))
        writer = space.start(_spec(runner, scratch=Scratch.READ_WRITE))
        path = f"{space.paths.tmp}/kept"
        _ask(writer, {"kind": "write", "path": path, "size": 1234})
        writer.end()
        _equal(_number(_ask(reader, {"kind": "size", "path": path})), 1234)


@_behaviour()
def the_cpu_set_is_what_was_asked_for(runner: SandboxRunner) -> None:
    """Every arm must get the same cores."""
    cpus = (min(os.sched_getaffinity(0)),)
    with _pod(runner, cpus=cpus) as (pod, _):
        _equal(_ask(pod, {"kind": "facts"}).body["cpus"], list(cpus))


@_behaviour()
def no_core_is_dumped_and_no_secret_is_passed_on(runner: SandboxRunner) -> None:
    """Core dumps are off; of the host's environment only harmless names arrive."""
    with _pod(runner) as (pod, _):
        facts = _ask(pod, {"kind": "facts"}).body
        _equal(facts["core_limit"], 0)
        names = facts["environment"]
        _true(isinstance(names, list), "no environment was told")
        _true("GRADER_CONFORMANCE_SECRET" not in names, "the host's environment leaked")  # type: ignore[operator]


@_behaviour(isolation=True)
def the_pod_has_no_rights_and_no_network(runner: SandboxRunner) -> None:
    """Not root, no capability, no new privileges, seccomp on, loopback only."""
    with _pod(runner) as (pod, _):
        facts = _ask(pod, {"kind": "facts"}).body
        _true(int(str(facts["uid"])) >= 1000, f"user {facts['uid']}")
        _equal(int(str(facts["capabilities"]), 16), 0)
        _equal(int(str(facts["bounding"]), 16), 0)
        _equal(facts["no_new_privileges"], "1")
        _equal(facts["seccomp"], "2")
        _equal(facts["interfaces"], ["lo"])


@_behaviour()
def a_run_space_leaves_nothing_behind(runner: SandboxRunner) -> None:
    """Leaving the space ends its pods and removes its folders, whatever the pods were doing."""
    with _space(runner) as space:
        folder = space.shards_dir.parent
        for kind in ("hang", "spin"):
            pod = space.start(_spec(runner, scratch=Scratch.READ_WRITE))
            _send(pod, {"kind": kind})
    _true(not folder.exists(), f"{folder} is still there")
    _equal(runner.sweep(), 0)


@contextlib.contextmanager
def _space(runner: SandboxRunner, limits: SpaceLimits | None = None) -> Iterator[RunSpace]:
    with runner.open_run(secrets.token_hex(16), limits or SpaceLimits(256, 10_000, 64)) as space:
        yield space


@contextlib.contextmanager
def _pod(runner: SandboxRunner, **changes: Any) -> Iterator[tuple[Pod, RunSpace]]:
    with _space(runner) as space:
        yield space.start(_spec(runner, **changes)), space


def _spec(
    runner: SandboxRunner,
    *,
    role: PodRole = PodRole.LEARNER,
    scratch: Scratch = Scratch.NONE,
    memory_mib: int = 1024,
    pids: int = 256,
    cpus: tuple[int, ...] | None = None,
    submission: bool = False,
    shards: bool = False,
) -> PodSpec:
    del runner
    return PodSpec(
        role=role,
        program="drill",
        memory_mib=memory_mib,
        pids=pids,
        cpus=cpus or tuple(sorted(os.sched_getaffinity(0))[:64]),
        scratch=scratch,
        submission=submission,
        shards=shards,
    )


def _send(pod: Pod, request: Mapping[str, object], blob: bytes = b"") -> None:
    _equal(pod.send(request, blob), None)


def _ask(pod: Pod, request: Mapping[str, object], blob: bytes = b"") -> Message:
    _send(pod, request, blob)
    answer = pod.receive(PATIENCE_S)
    if isinstance(answer, Ending):
        raise ConformanceError(f"no answer to {request['kind']}: {pod.end()}")
    return answer


def _order(pod: Pod, request: Mapping[str, object]) -> Message | Ending:
    """Sends a request that ends the pod; returns how it ended."""
    _send(pod, request)
    return pod.receive(PATIENCE_S)


def _number(message: Message) -> int:
    value = message.body["value"]
    _true(isinstance(value, int), f"expected a number, got {value!r}")
    return int(str(value))


def _wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 10.0
    while not condition():
        _true(time.monotonic() < deadline, what)
        time.sleep(0.05)


def _equal(found: object, expected: object) -> None:
    if found != expected:
        raise ConformanceError(f"expected {str(expected)[:500]!r}, got {str(found)[:500]!r}")


def _true(condition: bool, what: str) -> None:  # noqa: FBT001
    if not condition:
        raise ConformanceError(what)
