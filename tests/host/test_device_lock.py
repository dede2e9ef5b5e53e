"""One grader holds a device, and measures on cores that no other grader of the host measures on."""

import os
import subprocess
import sys
import threading

import pytest

from grader_service import wiring
from grader_service.errors import ConfigurationError
from grader_service.host.device_lock import Hold, Neighbour, hold_device
from grader_service.host.facts import Gpu
from grader_service.settings import Settings
from tests.store.threads import at_once


def test_a_device_is_free_when_its_worker_is_killed(tmp_path):
    """(E2') The kernel lets go of the lock, whatever the worker's end was."""
    path = tmp_path / "devices" / "GPU-1.lock"
    code = (
        "import sys, time\nfrom pathlib import Path\n"
        "from grader_service.host.device_lock import hold_device\n"
        "with hold_device(Path(sys.argv[1]), 'GPU-1'):\n    print('held', flush=True)\n    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(ConfigurationError, match="another grader"), hold_device(path, "GPU-1"):
            pytest.fail("the lock was given twice")
        holder.kill()
        holder.wait(10)
        with hold_device(path, "GPU-1"):
            pass


def test_graders_of_one_host_measure_on_cores_of_their_own(tmp_path):
    """Each takes the first that nobody else measures on; where too few are left it shares, and knows with whom."""
    folder = tmp_path / "devices"
    with (
        hold_device(folder / "GPU-1.lock", "GPU-1", range(10), 4) as first,
        hold_device(folder / "GPU-2.lock", "GPU-2", range(10), 4) as second,
        hold_device(folder / "GPU-3.lock", "GPU-3", range(10), 4) as third,
        hold_device(folder / "GPU-4.lock", "GPU-4", range(2, 6), 4) as fourth,
    ):
        assert (first.usable, first.neighbours) == (tuple(range(10)), ())
        assert (second.usable, second.neighbours) == ((4, 5, 6, 7, 8, 9), ())
        assert (third.usable, third.neighbours) == (tuple(range(10)), (Neighbour("GPU-1", (0, 1, 2, 3)),))
        assert fourth.neighbours == (
            Neighbour("GPU-1", (2, 3)), Neighbour("GPU-2", (4, 5)), Neighbour("GPU-3", (2, 3))
        )  # fmt: skip
    with hold_device(folder / "GPU-3.lock", "GPU-3", range(10), 4, 5) as later:
        assert later == Hold((0, 1, 2, 3, 4), ())  # those have ended, though their files are there


def test_a_grader_takes_cores_that_nobody_uses_before_those_that_nobody_measures_on(tmp_path):
    """The first one's decoding of pixels, say, may spread over its share: the second one measures elsewhere."""
    folder = tmp_path / "devices"
    with (
        hold_device(folder / "GPU-1.lock", "GPU-1", range(12), 2, 4) as first,
        hold_device(folder / "GPU-2.lock", "GPU-2", range(12), 2, 4) as second,
        hold_device(folder / "GPU-3.lock", "GPU-3", range(12), 2, 4) as third,
        hold_device(folder / "GPU-4.lock", "GPU-4", range(12), 2, 4) as fourth,
    ):
        shares = [hold.usable for hold in (first, second, third)]
        assert shares == [(0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11)]
        assert (fourth.usable, fourth.neighbours) == ((2, 3, 6, 7), ())


def test_graders_that_start_at_once_choose_one_after_another(tmp_path):
    """Or both would find the first cores free."""
    folder, met = tmp_path / "devices", threading.Barrier(8)

    def hold(number):
        with hold_device(folder / f"GPU-{number}.lock", f"GPU-{number}", range(16), 2) as hold:
            met.wait(30)
            return hold.usable[:2], hold.neighbours

    chosen = at_once(8, hold)
    assert sorted(cpu for cpus, _ in chosen for cpu in cpus) == list(range(16))
    assert {neighbours for _, neighbours in chosen} == {()}


def test_a_gpu_is_held_whatever_the_state_folder_is(tmp_path):
    """Two installations of one host, or two users, look at one folder; rehearsals share out slots of their own."""
    gpu = Gpu(0, "H100", "GPU-1", "580.1", 80_000)
    first, second = (Settings(state_dir=tmp_path / name, lock_dir=tmp_path / "locks") for name in ("a", "b"))
    before = os.sched_getaffinity(0)
    with wiring.held(first, gpu):
        with (
            pytest.raises(ConfigurationError, match="another grader of this host holds GPU-1"),
            wiring.held(second, gpu),
        ):
            pytest.fail("the GPU was held twice")
        with wiring.held(first, None), wiring.held(second, None):
            pass
    with wiring.held(second, gpu):
        assert (tmp_path / "locks" / "grader-GPU-1.lock").stat().st_mode & 0o777 == 0o666
    assert os.sched_getaffinity(0) == before


def test_a_folder_that_cannot_be_written_to(tmp_path):
    """Is said, with the setting that names it."""
    (tmp_path / "file").touch()
    held = hold_device(tmp_path / "file" / "GPU-1.lock", "GPU-1")
    with pytest.raises(ConfigurationError, match=r"lock of GPU-1 cannot be kept.*GRADER_LOCK_DIR"), held:
        pytest.fail("there is no lock")
