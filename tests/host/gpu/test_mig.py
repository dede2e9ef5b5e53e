"""Instances of partitioned GPUs, on an NVML in memory: what is listed, what is theirs and what is their neighbours'."""

import time

import pynvml
import pytest

from grader_service.host.facts import Gpu, Mig, driver_gpus, find_gpus
from grader_service.host.gpu.monitor import GpuGone
from grader_service.host.gpu.nvml import NvmlGpu
from grader_service.host.gpu.poll import GpuPoll
from grader_service.host.gpu.steward import GpuUnfit, Steward
from grader_service.measure.gpu_watch import GpuWatch
from tests.host.gpu.nvml_memory import InMemoryCard, InMemoryInstance, InMemoryNvml


@pytest.fixture
def card():
    """A GPU in two parts, the second number free."""
    return InMemoryCard(
        "GPU-parted",
        mig=True,
        instances={
            0: InMemoryInstance("MIG-ours", gpu_instance=7),
            2: InMemoryInstance("MIG-neighbour", "3g.71gb", gpu_instance=2, memory_mib=71_000, jpeg_engines=3),
        },
    )


@pytest.fixture
def nvml(card):
    return InMemoryNvml(card)


@pytest.fixture
def ours(card):
    return card.instances[0]


@pytest.fixture
def neighbour(card):
    return card.instances[2]


@pytest.fixture
def gpu(nvml):
    return NvmlGpu("MIG-ours", nvml)


class TestListing:
    """`find_gpus`."""

    def test_instances_stand_in_place_of_their_gpu(self, card):
        """With its number and UUID, and with memory and profile of their own; other GPUs are listed as ever."""
        whole, old = InMemoryCard("GPU-whole", mig=False), InMemoryCard("GPU-old", "Tesla V100", 16_384, mig=None)
        small = Mig("GPU-parted", "1g.18gb", 0, alone=True, jpeg_engines=1)
        large = Mig("GPU-parted", "3g.71gb", 2, alone=True, jpeg_engines=3)
        assert find_gpus(InMemoryNvml(whole, card, old)) == [
            Gpu(0, "NVIDIA H200", "GPU-whole", "580.1", 143_771, minor=0),
            Gpu(1, "NVIDIA H200 MIG 1g.18gb", "MIG-ours", "580.1", 16_384, small, minor=1),
            Gpu(1, "NVIDIA H200 MIG 3g.71gb", "MIG-neighbour", "580.1", 71_000, large, minor=1),
            Gpu(2, "Tesla V100", "GPU-old", "580.1", 16_384, minor=2),
        ]

    def test_facts_name_parent_and_profile(self, nvml):
        """A whole GPU's facts have neither."""
        facts = {"model": "NVIDIA H200", "uuid": "GPU-1", "driver": "580.1", "memory_mib": 143_771}
        assert find_gpus(InMemoryNvml(InMemoryCard("GPU-1")))[0].facts() == facts
        assert find_gpus(nvml)[0].facts() == {
            "model": "NVIDIA H200 MIG 1g.18gb",
            "uuid": "MIG-ours",
            "driver": "580.1",
            "memory_mib": 16_384,
            "parent": "GPU-parted",
            "profile": "1g.18gb",
        }

    @pytest.mark.parametrize("code", [pynvml.NVML_ERROR_FUNCTION_NOT_FOUND, pynvml.NVML_ERROR_NO_PERMISSION])
    def test_a_driver_that_does_not_say(self, monkeypatch, code):
        """Because its library lacks the function, or keeps it from us: the GPU is listed as ever."""
        nvml = InMemoryNvml(InMemoryCard("GPU-1"))

        def refuse(_):
            raise pynvml.NVMLError(code)

        monkeypatch.setattr(nvml, "nvmlDeviceGetMigMode", refuse)
        assert [found.uuid for found in find_gpus(nvml)] == ["GPU-1"]

    def test_mig_mode_without_instances(self):
        """Nothing can run on such a GPU; others are listed."""
        parted = InMemoryCard("GPU-parted", mig=True)
        assert find_gpus(InMemoryNvml(parted)) == []
        assert [found.uuid for found in find_gpus(InMemoryNvml(parted, InMemoryCard("GPU-2")))] == ["GPU-2"]

    def test_compute_instances_of_one_gpu_instance_are_not_alone(self, card):
        """They share its memory and its faults."""
        card.instances[3] = InMemoryInstance("MIG-third", gpu_instance=2, compute_instance=1)
        listed = find_gpus(InMemoryNvml(card))
        assert {found.uuid: found.mig.alone for found in listed} == {
            "MIG-ours": True,
            "MIG-neighbour": False,
            "MIG-third": False,
        }

    def test_who_may_not_see_a_partitioned_gpu_as_a_whole_sees_its_instances(self, card):
        """A worker without privileges, as in the service's own image: the driver keeps the GPU's memory from it."""
        listed = find_gpus(InMemoryNvml(card, InMemoryCard("GPU-2"), privileged=False))
        assert [found.uuid for found in listed] == ["MIG-ours", "MIG-neighbour", "GPU-2"]

    def test_a_lost_gpu_takes_no_other_with_it(self):
        """Workers of the others go on; the driver still counts it."""
        nvml = InMemoryNvml(InMemoryCard("GPU-1", lost=True), InMemoryCard("GPU-2"))
        assert [found.uuid for found in find_gpus(nvml)] == ["GPU-2"]
        assert driver_gpus(nvml) == 2
        assert nvml.opened == 0


class TestWatching:
    """`NvmlGpu` on an instance."""

    def test_memory_and_processes_are_its_own(self, gpu, ours, neighbour, card):
        """Whatever its neighbours and the GPU as a whole have."""
        ours.used_mib, ours.processes = 700, [41]
        neighbour.used_mib, neighbour.processes = 60_000, [42, 43]
        snapshot, use = gpu.snapshot(), gpu.utilisation()
        assert (snapshot.memory_used_mib, snapshot.processes) == (700, (41,))
        assert (use.memory_used_mib, use.processes) == (700, (41,))

    def test_processes_are_told_apart_where_an_instance_lists_none(self, card, ours, neighbour):
        """Then the GPU's own list is asked, which says whose they are."""
        ours.processes, neighbour.processes, card.processes = [41], [42], [43]
        assert NvmlGpu("MIG-ours", InMemoryNvml(card, instance_processes=False)).snapshot().processes == (41,)

    def test_how_busy_it_is_stays_unknown(self, gpu, card):
        """What the GPU does would be its neighbours' work too."""
        card.sm_percent = 90
        use = gpu.utilisation()
        assert (use.sm_percent, use.jpg_percent) == (None, None)
        assert 0 < use.period_s < 1

    def test_clocks_and_resets_are_those_of_the_gpu(self, gpu, card):
        """Neighbours share them: held down for one, held down for all."""
        assert (gpu.utilisation().throttled, gpu.snapshot().recovery_action) == (None, None)
        card.clocks_held, card.recovery = pynvml.nvmlClocksEventReasonSwThermalSlowdown, 1
        assert (gpu.utilisation().throttled, gpu.snapshot().recovery_action) == ("heat", "a GPU reset")

    @pytest.mark.parametrize(
        ("event", "heard"),
        [
            ((31, 7, 0), (31,)),
            ((48, 7, 0), (48,)),
            ((94, 7), (94,)),
            ((31, 2, 0), ()),
            ((48, 2, 0), ()),
            ((48, 2), ()),
            ((31, 7, 1), ()),
            ((79,), (79,)),
            ((31,), ()),
        ],
    )
    def test_faults_are_its_own_or_the_whole_gpus(self, gpu, card, event, heard):
        """Not those of another instance, nor a program's that cannot be told whose it was."""
        assert gpu.drain_xids() == ()
        card.report(*event)
        assert gpu.drain_xids() == heard
        assert gpu.drain_xids() == ()

    def test_a_neighbours_faults_do_not_hide_ours(self, gpu, card):
        """However many come before; each call looks at a bounded number."""
        gpu.drain_xids()
        for _ in range(100):
            card.report(31, 2, 0)
        card.report(13, 7, 0)
        assert (*gpu.drain_xids(), *gpu.drain_xids()) == (13,)

    def test_a_whole_gpu_hears_of_everything(self, card):
        """As ever."""
        card.mig, card.instances = False, {}
        gpu = NvmlGpu("GPU-parted", InMemoryNvml(card))
        gpu.drain_xids()
        card.report(31)
        card.report(48)
        assert gpu.drain_xids() == (31, 48)

    def test_an_instance_that_was_taken_apart_is_gone(self, gpu, card):
        """And found again when it is back."""
        before = gpu.snapshot()
        instances, card.instances = card.instances, {}
        for look in (gpu.snapshot, gpu.utilisation):
            with pytest.raises(GpuGone, match="MIG-ours does not answer"):
                look()
        card.instances = instances
        assert gpu.snapshot() == before

    def test_another_instance_under_the_same_handle_is_not_taken_for_it(self, gpu, ours, nvml):
        """The driver gives handles out again."""
        gpu.snapshot()
        ours.uuid = "MIG-new"
        with pytest.raises(GpuGone, match="MIG-new has its place"):
            gpu.snapshot()
        assert nvml.opened == 0

    def test_it_lets_go_of_the_driver(self, gpu, nvml, card):
        """Nobody listens any more."""
        gpu.snapshot()
        gpu.close()
        assert (nvml.opened, card.listeners) == (0, [])


class TestStewardship:
    """Stewards of instances, and a watch on one."""

    @pytest.mark.parametrize("event", [(79,), (48, 7, 0)])
    def test_a_fault_of_the_gpu_retires_every_instance_and_one_of_an_instance_that_one(self, nvml, card, event):
        """Each steward hears of what concerns it."""
        retired = {}
        stewards = {
            uuid: Steward(NvmlGpu(uuid, nvml), lambda reason, uuid=uuid: retired.update({uuid: reason}), patience_s=0.1)
            for uuid in ("MIG-ours", "MIG-neighbour")
        }
        for steward in stewards.values():
            steward.admit()
        card.report(*event)
        for uuid, steward in stewards.items():
            if uuid == "MIG-ours" or len(event) == 1:
                with pytest.raises(GpuUnfit):
                    steward.release()
            else:
                steward.release()
        assert set(retired) == ({"MIG-ours"} if len(event) == 3 else {"MIG-ours", "MIG-neighbour"})

    def test_a_neighbours_process_contaminates_no_block(self, gpu, card, ours, neighbour):
        """A foreign one on our instance does, and clocks that are held down for all do."""
        ours.processes = [41]
        with GpuPoll(gpu, every_s=60, home=lambda pid: f"pod of {pid}") as poll:
            watch = GpuWatch(poll, lambda note: None)
            watch.begin()
            neighbour.processes, neighbour.used_mib = [42, 43], 60_000
            assert watch.contamination() is None
            watch.begin()
            card.clocks_held = pynvml.nvmlClocksEventReasonSwThermalSlowdown
            assert watch.contamination() == "the GPU's clocks were held down: heat"
            card.clocks_held = 0
            time.sleep(0.01)
            watch.begin()
            ours.processes = [41, 44]
            assert watch.contamination() == "a process that is not of this run used the GPU"
