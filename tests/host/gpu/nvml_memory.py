"""An NVML that exists in memory only: GPUs, their MIG instances, and faults that are set by hand.

It offers the functions of pynvml that the grader asks, under their names. They answer and refuse as NVIDIA documents,
which for MIG no hardware has confirmed here: an instance has memory and processes; it has no utilisation, no clocks and
no events of its own, and a partitioned GPU has no utilisation either.
"""

from collections import deque
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pynvml

ANY_INSTANCE = 0xFFFFFFFF
MOST_INSTANCES = 7


@dataclass(eq=False)
class InMemoryInstance:
    """A MIG instance; `gpu_instance` owns memory and engines, which several compute instances may share."""

    uuid: str
    profile: str = "1g.18gb"
    gpu_instance: int = 7
    compute_instance: int = 0
    memory_mib: int = 16_384
    used_mib: int = 20
    processes: list[int] = field(default_factory=list)
    jpeg_engines: int = 1


@dataclass(eq=False)
class InMemoryCard:
    """A GPU; every field may be changed while it is in use.

    Args:
        mig: whether it is partitioned; None for a model that cannot be.
        instances: by their number.
        clocks_held: NVML's bits for why clocks are held down.
        recovery: NVML's number for what has to be done before it is used again.
    """

    uuid: str
    model: str = "NVIDIA H200"
    memory_mib: int = 143_771
    used_mib: int = 500
    processes: list[int] = field(default_factory=list)
    mig: bool | None = None
    instances: dict[int, InMemoryInstance] = field(default_factory=dict)
    sm_percent: int = 0
    clocks_held: int = 0
    recovery: int = 0
    minor: int | None = None
    """Number of its device node; its place among the cards if absent."""
    lost: bool = False
    listeners: list[deque[SimpleNamespace]] = field(default_factory=list)

    def report(self, xid: int, gpu_instance: int = ANY_INSTANCE, compute_instance: int = ANY_INSTANCE) -> None:
        """The driver reports an Xid, of an instance or of none."""
        for events in self.listeners:
            events.append(
                SimpleNamespace(eventData=xid, gpuInstanceId=gpu_instance, computeInstanceId=compute_instance)
            )


class InMemoryNvml:
    """Stands where pynvml does.

    Args:
        cards: in the order of their numbers.
        instance_processes: whether the driver lists the processes of one instance, which it does not below some
            hypervisors.
        privileged: whether whoever asks may see what is in a partitioned GPU as a whole.
    """

    NVMLError = pynvml.NVMLError

    def __init__(self, *cards: InMemoryCard, instance_processes: bool = True, privileged: bool = True) -> None:
        self.cards = list(cards)
        self.opened = 0
        self._privileged = privileged
        self._instance_processes = instance_processes

    def __getattr__(self, name: str) -> Any:
        """NVML's numbers; a function that is not here is missing, and never the real driver's."""
        value = getattr(pynvml, name)
        if not isinstance(value, int):
            raise AttributeError(f"{type(self).__name__} has no {name}")  # noqa: TRY004 - what looking up a name raises
        return value

    def nvmlInit(self) -> None:
        self.opened += 1

    def nvmlShutdown(self) -> None:
        self._require_open()
        self.opened -= 1

    def nvmlSystemGetDriverVersion(self) -> str:
        self._require_open()
        return "580.1"

    def nvmlDeviceGetCount(self) -> int:
        self._require_open()
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> InMemoryCard:
        return self._there(self.cards[index])

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> InMemoryCard | InMemoryInstance:
        for card in self.cards:
            devices: list[InMemoryCard | InMemoryInstance] = [card, *card.instances.values()]
            for device in devices:
                if device.uuid == uuid:
                    self._there(card)
                    return device
        raise self._refusal("NOT_FOUND")

    def nvmlDeviceGetName(self, device: InMemoryCard | InMemoryInstance) -> str:
        card = self._card(device)
        return card.model if device is card else f"{card.model} MIG {self._instance(device).profile}"

    def nvmlDeviceGetUUID(self, device: InMemoryCard | InMemoryInstance) -> str:
        self._card(device)
        return device.uuid

    def nvmlDeviceGetMinorNumber(self, card: InMemoryCard) -> int:
        place = self.cards.index(self._there(card))
        return place if card.minor is None else card.minor

    def nvmlDeviceGetMemoryInfo(self, device: InMemoryCard | InMemoryInstance) -> SimpleNamespace:
        card = self._card(device)
        if device is card:
            if card.mig and not self._privileged:
                raise self._refusal("NO_PERMISSION")
            used = card.used_mib + sum(instance.used_mib for instance in card.instances.values())
        else:
            home = self._instance(device).gpu_instance
            used = sum(one.used_mib for one in card.instances.values() if one.gpu_instance == home)
        return SimpleNamespace(used=used << 20, total=device.memory_mib << 20)

    def nvmlDeviceGetMigMode(self, card: InMemoryCard) -> list[int]:
        if self._there(card).mig is None:
            raise self._refusal("NOT_SUPPORTED")
        return [int(bool(card.mig)), int(bool(card.mig))]

    def nvmlDeviceGetMaxMigDeviceCount(self, card: InMemoryCard) -> int:
        return 0 if self._there(card).mig is None else MOST_INSTANCES

    def nvmlDeviceGetMigDeviceHandleByIndex(self, card: InMemoryCard, index: int) -> InMemoryInstance:
        if index not in self._there(card).instances:
            raise self._refusal("NOT_FOUND")
        return card.instances[index]

    def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self, device: InMemoryInstance) -> InMemoryCard:
        return self._card(self._instance(device))

    def nvmlDeviceGetGpuInstanceId(self, device: InMemoryCard | InMemoryInstance) -> int:
        return self._instance(device).gpu_instance

    def nvmlDeviceGetComputeInstanceId(self, device: InMemoryCard | InMemoryInstance) -> int:
        return self._instance(device).compute_instance

    def nvmlDeviceGetAttributes(self, device: InMemoryCard | InMemoryInstance) -> SimpleNamespace:
        return SimpleNamespace(sharedJpegCount=self._instance(device).jpeg_engines)

    def nvmlDeviceGetComputeRunningProcesses(self, device: InMemoryCard | InMemoryInstance) -> list[SimpleNamespace]:
        card = self._card(device)
        if device is not card and not self._instance_processes:
            raise self._refusal("NOT_SUPPORTED")
        found = [(pid, ANY_INSTANCE, ANY_INSTANCE) for pid in card.processes if device is card]
        for one in card.instances.values() if device is card else [self._instance(device)]:
            found += [(pid, one.gpu_instance, one.compute_instance) for pid in one.processes]
        return [SimpleNamespace(pid=pid, gpuInstanceId=gi, computeInstanceId=ci) for pid, gi, ci in found]

    def nvmlDeviceGetUtilizationRates(self, device: InMemoryCard | InMemoryInstance) -> SimpleNamespace:
        return SimpleNamespace(gpu=self._undivided(device).sm_percent, memory=0)

    def nvmlDeviceGetJpgUtilization(self, device: InMemoryCard | InMemoryInstance) -> list[int]:
        self._undivided(device)
        return [0, 100_000]

    def nvmlDeviceGetCurrentClocksEventReasons(self, device: InMemoryCard | InMemoryInstance) -> int:
        return self._board(device).clocks_held

    def nvmlDeviceGetFieldValues(
        self, device: InMemoryCard | InMemoryInstance, fields: list[int]
    ) -> list[SimpleNamespace]:
        value = SimpleNamespace(uiVal=self._board(device).recovery)
        return [SimpleNamespace(nvmlReturn=pynvml.NVML_SUCCESS, value=value) for _ in fields]

    def nvmlEventSetCreate(self) -> deque[SimpleNamespace]:
        self._require_open()
        return deque()

    def nvmlEventSetFree(self, events: deque[SimpleNamespace]) -> None:
        for card in self.cards:
            card.listeners = [one for one in card.listeners if one is not events]

    def nvmlDeviceRegisterEvents(
        self, device: InMemoryCard | InMemoryInstance, _kinds: int, events: deque[SimpleNamespace]
    ) -> None:
        self._board(device).listeners.append(events)

    def nvmlEventSetWait_v2(self, events: deque[SimpleNamespace], _timeout_ms: int) -> SimpleNamespace:
        self._require_open()
        if not events:
            raise self._refusal("TIMEOUT")
        return events.popleft()

    def _card(self, device: InMemoryCard | InMemoryInstance) -> InMemoryCard:
        """The GPU that this is, or is a part of."""
        for card in self.cards:
            if device is card or any(device is instance for instance in card.instances.values()):
                return self._there(card)
        raise self._refusal("NOT_FOUND")

    def _board(self, device: InMemoryCard | InMemoryInstance) -> InMemoryCard:
        """The GPU, for questions that an instance has no answer to."""
        if not isinstance(device, InMemoryCard):
            raise self._refusal("NOT_SUPPORTED")
        return self._there(device)

    def _undivided(self, device: InMemoryCard | InMemoryInstance) -> InMemoryCard:
        """The GPU, for questions that have no answer in MIG mode at all."""
        card = self._board(device)
        if card.mig:
            raise self._refusal("NOT_SUPPORTED")
        return card

    def _instance(self, device: InMemoryCard | InMemoryInstance) -> InMemoryInstance:
        if not isinstance(device, InMemoryInstance):
            raise self._refusal("NOT_SUPPORTED")
        return device

    def _there(self, card: InMemoryCard) -> InMemoryCard:
        self._require_open()
        if card.lost:
            raise self._refusal("GPU_IS_LOST")
        return card

    def _require_open(self) -> None:
        if self.opened == 0:
            raise self._refusal("UNINITIALIZED")

    def _refusal(self, what: str) -> Exception:
        return self.NVMLError(getattr(pynvml, f"NVML_ERROR_{what}"))  # type: ignore[no-any-return]
