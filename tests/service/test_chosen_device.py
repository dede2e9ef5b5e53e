"""Which device a worker takes on a host with GPUs and MIG instances, and that nobody else takes it."""

import functools
from contextlib import ExitStack, suppress
from dataclasses import dataclass

import psutil
import pynvml
import pytest

from grader_service import wiring
from grader_service.cli import grade
from grader_service.errors import ConfigurationError
from grader_service.host import doctor as diagnosis
from grader_service.host.facts import driver_gpus, find_gpus
from grader_service.host.sandboxes import gpu_name, open_runner
from grader_service.settings import Settings
from sandbox import gpu_access
from sandbox.api import PodRole, PodSpec
from sandbox.docker import runner as docker_runner
from sandbox.docker.options import guest_environment
from sandbox.gpu_access import GpuName
from tests.host.gpu.nvml_memory import InMemoryCard, InMemoryInstance, InMemoryNvml
from tests.sandbox.owner import LIMITS, ask, drill

pytestmark = pytest.mark.integration


@pytest.fixture
def card():
    return InMemoryCard(
        "GPU-parted",
        mig=True,
        instances={
            1: InMemoryInstance("MIG-a", gpu_instance=7),
            3: InMemoryInstance("MIG-b", gpu_instance=8, jpeg_engines=0),
        },
    )


@pytest.fixture
def host(card, monkeypatch):
    """A whole GPU and a partitioned one."""
    nvml = InMemoryNvml(InMemoryCard("GPU-whole", mig=False), card)
    listed = functools.partial(find_gpus, nvml)
    for module in (wiring, grade, diagnosis):
        monkeypatch.setattr(module, "find_gpus", listed)
    monkeypatch.setattr(wiring, "driver_gpus", functools.partial(driver_gpus, nvml))
    return nvml


def chosen(name):
    return wiring.chosen_gpu(Settings(gpu=name))


def test_a_partitioned_gpu_is_not_taken_as_a_whole(host):
    """Its instances are named instead."""
    with pytest.raises(ConfigurationError, match=r"GPU-parted is in MIG mode; .* instances: MIG-a, MIG-b"):
        chosen("GPU-parted")


def test_of_several_one_must_be_named(host, card):
    """An instance counts as a GPU does; the only one is taken unasked."""
    with pytest.raises(ConfigurationError, match="GPU-whole, MIG-a, MIG-b"):
        chosen("auto")
    host.cards = [card]
    del card.instances[3]
    assert chosen("auto").uuid == "MIG-a"


def test_a_gpu_that_cannot_be_used_is_no_reason_to_rehearse(host, card):
    """Instances that were not made again after a restart: official runs would get verdicts that are no grades."""
    host.cards = [card]
    card.instances.clear()
    with pytest.raises(ConfigurationError, match=r"1 GPU\(s\) of which none can be used.*GRADER_GPU=none"):
        chosen("auto")
    assert chosen("none") is None
    host.cards = []
    assert chosen("auto") is None


def test_one_that_shares_memory_is_refused(host, card, tmp_path):
    """By workers, and passed over by `grader grade`."""
    card.instances[4] = InMemoryInstance("MIG-c", "1c.1g.18gb", gpu_instance=7, compute_instance=1)
    with pytest.raises(ConfigurationError, match="shares memory and faults"):
        chosen("MIG-a")
    assert chosen("MIG-b").uuid == "MIG-b"
    host.cards = [card]
    with ExitStack() as stack:
        settings = Settings(state_dir=tmp_path, lock_dir=tmp_path)
        device, gpu = grade.taken_device(stack, "cuda", settings)
        assert (device, gpu.uuid) == ("cuda", "MIG-b")


def test_grade_takes_a_gpu_that_no_worker_holds(host, tmp_path):
    """Beside a worker's measurement it would contaminate both; with none left it says so.

    Instances of one GPU are held apart like any others: each by one grader, beside each other.
    """
    settings = Settings(state_dir=tmp_path, lock_dir=tmp_path / "locks")
    first, *others = find_gpus(host)
    with wiring.held(settings, first), ExitStack() as stack:
        _, gpu = grade.taken_device(stack, "auto", settings)
        assert gpu.uuid != first.uuid
        (last,) = (other for other in others if other.uuid != gpu.uuid)
        with (
            wiring.held(settings, last),
            pytest.raises(ConfigurationError, match="another grader of this host holds MIG-b"),
        ):
            grade.taken_device(stack, "auto", settings)


def test_its_name_for_engines(host):
    """UUID, by which each is taken, its GPU's number and device node, and its own number."""
    assert gpu_name(chosen("GPU-whole")) == GpuName("GPU-whole", 0, 0)
    assert gpu_name(chosen("MIG-b")) == GpuName("MIG-b", 1, 1, 3)


def test_a_worker_in_a_container_knows_the_device_node_of_its_gpu():
    """There the driver counts only the GPUs that the container was given; nodes keep the host's numbers."""
    (gpu,) = find_gpus(InMemoryNvml(InMemoryCard("GPU-third", minor=2)))
    assert gpu_name(gpu) == GpuName("GPU-third", 0, 2)


def test_a_driver_that_does_not_say_the_node(monkeypatch):
    """Then the number stands for it."""
    nvml = InMemoryNvml(InMemoryCard("GPU-1"), InMemoryCard("GPU-2"))

    def refuse(_):
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    monkeypatch.setattr(nvml, "nvmlDeviceGetMinorNumber", refuse)
    assert gpu_name(find_gpus(nvml)[1]) == GpuName("GPU-2", 1, 1)


@dataclass
class Engine:
    """An engine with NVIDIA's runtime, as far as a runner asks it before its first pod."""

    images: "Engine | None" = None
    id: str = "sha256:00"

    def get(self, _name):
        return self

    def info(self):
        return {"SecurityOptions": ["name=seccomp"], "Runtimes": {"nvidia": {}}, "ServerVersion": "28.3"}


@pytest.mark.parametrize("uuid", ["MIG-b", "GPU-whole"])
def test_containers_get_the_chosen_instance(host, tmp_path, monkeypatch, uuid):
    """In the name that the engine's way of access has for it, and never the whole GPU in its place."""
    for number in (0, 1):
        (tmp_path / f"nvidia{number}").touch()
    monkeypatch.setattr(gpu_access, "DEVICE_FOLDER", tmp_path)
    monkeypatch.setattr(docker_runner, "connect_engine", lambda: Engine(Engine()))
    runner = open_runner("docker", "grader-lab", Settings(state_dir=tmp_path), chosen(uuid))
    assert runner.facts.gpu_access == "nvidia-runtime"
    spec = PodSpec(PodRole.LEARNER, "none", 64, pids=16, cpus=(0,))
    assert guest_environment(spec, runner.gpu)["NVIDIA_VISIBLE_DEVICES"] == uuid


def environments():
    """Of all processes below this one, some of which may end meanwhile."""
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            yield process.environ()


def test_processes_see_the_chosen_device_and_not_the_first(host, state_dir, monkeypatch):
    """Where the worker's own environment says another, too: lock and watch are on the chosen one."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5")
    for uuid in ("MIG-b", "GPU-whole"):
        runner = open_runner("process", "", Settings(state_dir=state_dir), chosen(uuid))
        with runner.open_run(f"run-of-{uuid}", LIMITS) as space:
            assert ask(space.start(drill()), kind="echo", value=1).body["value"] == 1
            told = {pod["CUDA_VISIBLE_DEVICES"] for pod in environments() if f"run-of-{uuid}" in pod.get("TMPDIR", "")}
            assert told == {uuid}


def test_doctor_lists_instances(host, card):
    """One line for each device, and what is wrong with one that workers refuse."""
    card.instances[4] = InMemoryInstance("MIG-c", "1c.1g.18gb", gpu_instance=7, compute_instance=1)
    found = [finding for finding in diagnosis._gpu(None, None) if finding.topic == "GPU"]
    assert [(finding.level.value, finding.found.rpartition(" ")[2]) for finding in found] == [
        ("ok", "GPU-whole"),
        ("limited", "MIG-a"),
        ("ok", "MIG-b"),
        ("limited", "MIG-c"),
    ]
    assert "MIG 1g.18gb" in found[1].found
    assert "share" in found[1].advice


@pytest.mark.parametrize(("uuid", "level", "said"), [("MIG-a", "ok", "1 for"), ("MIG-b", "limited", "none")])
def test_doctor_says_which_profile_has_a_jpeg_decoder(host, monkeypatch, uuid, level, said):
    """The driver says it of an instance, though not how busy it is."""
    monkeypatch.setattr(diagnosis.ctypes, "CDLL", lambda name: None)  # the library itself is another finding
    finding = diagnosis._jpeg_decoder(chosen(uuid))
    assert finding.level.value == level
    assert said in finding.found
