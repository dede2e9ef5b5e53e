"""What a pod says: frames on its socket, and every message of every stage, through the real `ConnectedPod`."""

import contextlib
import json
import socket
import time
from collections.abc import Iterator, Mapping
from typing import Any

from grader_service.ingest.artifact import Prepared
from grader_service.measure import acceptance, arms, blocks, clean_room, delivery, tiers
from grader_service.measure.comparison import claims_beside, declared_settings, fair_settings, reference_settings
from grader_service.model.discovery import GraphRef
from grader_service.model.evidence import CleanRoom, Evidence, PodRole, ProbeRef, ProbeSite, ProbeTask, RunRecord
from grader_service.model.lab import MeasurementPlan, PodLimits
from grader_service.model.measurement import Arm, GraphProof, LoaderSettings, Window
from grader_service.run import learner, probing, scanning, trusted_pod
from sandbox.api import GuestPaths, PodSpec
from sandbox.endpoint import Endpoint, Silence
from sandbox.frames import FrameError, FrameLimits, Message, decode_json, encode
from sandbox.pod import ConnectedPod, ContainerEnd
from tests.factories import a_discovery, a_pipeline, a_run

LIMITS = FrameLimits()
PATHS = GuestPaths("/workspace", "/tmp", "/dev/shm", "/submission", "/shards", "/data/lab")
_MOST_BLOB = 1 << 20
_SHORTEST_S = 2e-5
"""Two messages on a real socket are never closer."""


def frames(data: bytes) -> list[Message]:
    """Everything on a socket until it closes, as the host's endpoint reads it."""
    ours, theirs = socket.socketpair()
    with contextlib.closing(theirs):
        theirs.settimeout(1.0)
        theirs.sendall(data)
    endpoint = Endpoint.__new__(Endpoint)
    endpoint._limits, endpoint._connection = LIMITS, ours
    found: list[Message] = []
    with contextlib.closing(ours):
        while not isinstance(message := endpoint.receive(time.monotonic() + 9.0), Silence):
            found.append(message)
            encode(message.body, message.blob)
    return found


class _Handle:
    def alive(self) -> bool:
        return True

    def pause(self) -> None:
        """Nothing runs."""

    def resume(self) -> None:
        """Nothing runs."""

    def destroy(self) -> ContainerEnd:
        return ContainerEnd(0, oom_killed=False, log_tail="")


class _Said:
    """Stands for an endpoint: hands out messages as the wire would."""

    def __init__(self, messages: Iterator[Any]) -> None:
        self._messages = messages

    def connect(self, deadline: float, alive: Any) -> None:
        return None

    def send(self, body: Mapping[str, object], blob: bytes, deadline: float) -> None:
        encode(body, blob)

    def receive(self, deadline: float) -> Message | Silence:
        try:
            said = next(self._messages)
        except StopIteration:
            return Silence.CLOSED
        if not isinstance(said, dict):
            raise FrameError("no object")
        size = said.pop("blob", 0)
        blob = bytes(range(256)) * (min(size, _MOST_BLOB) // 256 + 1) if type(size) is int and size > 0 else b""
        try:
            text = json.dumps(said, allow_nan=False).encode()
        except (ValueError, RecursionError):
            raise FrameError("no JSON") from None
        return Message(decode_json(text, LIMITS), blob[: size if blob else 0])

    def close(self) -> None:
        """Nothing is open."""


def _pod(messages: list[Any]) -> ConnectedPod:
    spec = PodSpec(role=PodRole.LEARNER, program="learner", memory_mib=1, pids=1, cpus=(0,))
    return ConnectedPod(spec, _Handle(), _Said(iter(messages)))


def _messages(data: bytes) -> list[Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return []
    return value if isinstance(value, list) else [value]


def discovery(data: bytes) -> object:
    """What the learner's pod says after its code ran, and everything that the host computes from it."""
    pod = _pod([{"kind": "started"}, *_messages(data)])
    found = learner.discover(pod, Prepared(entry="submission.py", cells=None), PATHS, PodLimits(), "cpu")
    if not isinstance(found, learner.Found):
        return _stored(pod=pod)
    said = found.discovery
    batch = tiers._wanted_batch(said)
    fair = fair_settings(MeasurementPlan(), 2, batch)
    for loader in said.loaders:
        reference_settings(declared_settings(loader, batch), fair)
    claims_beside(said, {Arm.LEARNER: 1.0})
    outcome = arms.prepare_learner_arm(pod, said, "/shards", batch)
    if isinstance(outcome, arms.LearnerArm):
        declared_settings(outcome.facts.loader, batch)
        outcome.window(2, timeout_s=1.0)
        outcome.batches_for(1.0)
    return _stored(pod=pod, discovery=said)


def dialogue(data: bytes) -> object:
    """A list whose first element names a stage, and whose others are the messages of that stage's pod."""
    messages = _messages(data)
    stage = messages[0] if messages and isinstance(messages[0], str) else ""
    return _STAGES.get(stage, _carry)(_pod(messages[1:]))


def _carry(pod: ConnectedPod) -> object:
    ref = GraphRef(sha256="0" * 64, size_bytes=1)
    said = a_discovery(pipelines=(a_pipeline(graph=0),), graphs=(ref,))
    trusted_pod.await_ready(pod)
    carried = clean_room.carry(pod, learner.Found(said, (b"x",)), ["/shards/0.jpg"], 2, "cpu", experiments=False)
    if isinstance(carried, CleanRoom):
        return _stored(clean_room=carried)
    window = carried.arm.window(2, timeout_s=1.0)
    return _stored(clean_room=carried.facts), window


def _scan(pod: ConnectedPod) -> object:
    return _stored(scan=scanning.scan(pod, "/workspace/data", PATHS))


def _probe(pod: ConnectedPod) -> object:
    ref = ProbeRef(id="data_sides", version="1.0.0", site=ProbeSite.LEARNER, sha256="0" * 64, budget_s=5.0)
    record, _ = probing._run(ProbeTask(ref, b""), pod, "cpu")
    return _stored(probes=(record,))


def _window(pod: ConnectedPod) -> object:
    pace = arms.Pace(burst=2)
    window = arms.timed_window(pod, Arm.LEARNER, arms.Asked(2, 0), 1.0, pace)
    if not isinstance(window, Window):
        return window
    window = window.model_copy(update={"seconds": max(window.seconds, _SHORTEST_S)})
    dali = Window(arm=Arm.DALI, images=100, seconds=1.0)
    rates = {Arm.DALI: dali, Arm.LEARNER: window, Arm.DECLARED: dali.model_copy(update={"arm": Arm.DECLARED})}
    taken = blocks._Taken(tuple(rates), list(rates.values()))
    return blocks._block(0, taken, rates, MeasurementPlan(), None), pace.batches_for(1.0)


def _delivery(pod: ConnectedPod) -> object:
    arrival = delivery.receive(pod, 5.0, most_images=64)
    if isinstance(arrival, delivery.Arrival):
        assert arrival.content.means.shape[0] == arrival.images
        return arrival.content.means.nbytes
    return arrival


def _experiment(pod: ConnectedPod) -> object:
    seen = clean_room.experimented(pod)
    if not isinstance(seen, clean_room.Experimented):
        return seen
    proof = acceptance.judge(seen.found, ((500, 375), (96, 1600)))
    assert (proof.problem is None) == (proof.note == "")
    return GraphProof.model_validate_json(proof.model_dump_json()), seen.plan


def _dali(pod: ConnectedPod) -> object:
    ready = tiers._build(pod, "/shards/live", 32, 2)
    if isinstance(ready, tiers.DaliReady):
        return tiers._job(ready), fair_settings(MeasurementPlan(), 2, ready.shape[0])
    return ready


def _reference(pod: ConnectedPod) -> object:
    settings = LoaderSettings(batch_size=4, num_workers=2, pin_memory=True, persistent_workers=True, prefetch_factor=2)
    arm = arms.ReferenceArm.prepare(pod, Arm.FAIR, settings, ["/shards/0.jpg"], {}, "cpu")
    return arm.window(2, timeout_s=1.0)


_STAGES = {
    "carry": _carry, "scan": _scan, "probe": _probe, "window": _window, "delivery": _delivery,
    "experiment": _experiment, "dali": _dali, "reference": _reference,
}  # fmt: skip


def _stored(pod: ConnectedPod | None = None, **parts: Any) -> Evidence:
    """The evidence as it goes into the store and comes out of it."""
    run: RunRecord = a_run(pods=(pod.end(),)) if pod is not None else a_run()
    evidence = Evidence(run=run, **parts)
    text = evidence.model_dump_json()
    again = Evidence.model_validate_json(text)
    assert again.model_dump_json() == text
    return again
