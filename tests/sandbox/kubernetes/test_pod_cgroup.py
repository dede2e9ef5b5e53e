"""Control groups of the host: real processes in a real group of each version, where this machine has it."""

import secrets
import subprocess
import time
from pathlib import Path

import pytest

from grader_service.errors import SandboxUnavailable
from sandbox.kubernetes.pod_cgroup import PodCgroup
from tests.conftest import missing
from tests.waiting import wait_for

ID = "5a" * 32
COUNT = "import itertools, pathlib, sys\nfor n in itertools.count(): pathlib.Path(sys.argv[1]).write_text(str(n))"


@pytest.fixture
def unified():
    """A group of version 2, named as containerd names one; other tests may have theirs at the same time."""
    roots = map(Path, ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"))
    root = next((path for path in roots if (path / "cgroup.controllers").exists()), None)
    if root is None:
        missing("no control group of version 2")
    name = secrets.token_hex(32)
    folder = root / f"grader-test-{name[:8]}" / f"cri-containerd-{name}.scope"
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        missing(f"no control group of version 2 can be made: {error}")
    yield PodCgroup(name, root), folder
    folder.rmdir()
    folder.parent.rmdir()


@pytest.fixture
def counting(unified, tmp_path):
    """A process in that group that counts, and the file in which it does."""
    cgroup, folder = unified
    path = tmp_path / "count"
    with subprocess.Popen(["python3", "-c", COUNT, str(path)]) as process:
        (folder / "cgroup.procs").write_text(str(process.pid))
        _counts(path)
        yield cgroup, process, path
        process.kill()


def _counts(path):
    """Waits until the file changes."""
    before = path.read_text() if path.exists() else ""
    wait_for(lambda: path.exists() and path.read_text() not in {before, ""}, 5.0, 0.01)


def test_freezing_and_thawing(counting):
    """A frozen process stands still, a thawed one runs on."""
    cgroup, _, path = counting
    cgroup.freeze()
    assert cgroup.frozen()
    before = path.read_text()
    time.sleep(0.3)
    assert path.read_text() == before
    cgroup.thaw()
    _counts(path)
    assert not cgroup.frozen()


@pytest.mark.parametrize("frozen", [False, True])
def test_killing(counting, frozen):
    """Frozen or not, all are dead at once and the group is empty."""
    cgroup, process, _ = counting
    if frozen:
        cgroup.freeze()
    assert cgroup.kill()
    assert process.wait(5) == -9
    assert cgroup.empty()


def test_limits_of_version_2(tmp_path):
    """One folder takes both, where the engine of the node delegated them."""
    (tmp_path / "cgroup.controllers").touch()
    folder = tmp_path / "kubepods.slice" / "kubepods-pod1.slice" / f"crio-{ID}.scope"
    folder.mkdir(parents=True)
    PodCgroup(ID, tmp_path).limit(64, (3, 5))
    assert (folder / "pids.max").read_text() == "64"
    assert (folder / "cpuset.cpus").read_text() == "3,5"


def test_limits_of_version_1(tmp_path):
    """Each controller has a tree of its own."""
    for name in ("freezer", "pids", "cpuset"):
        (tmp_path / name / "kubepods" / "pod1" / ID).mkdir(parents=True)
    PodCgroup(ID, tmp_path).limit(64, (3, 5))
    assert (tmp_path / "pids/kubepods/pod1" / ID / "pids.max").read_text() == "64"
    assert (tmp_path / "cpuset/kubepods/pod1" / ID / "cpuset.cpus").read_text() == "3,5"


@pytest.mark.parametrize("name", ["", "..", "init", ID[:-1], ID.upper(), f"{ID}/.."])
def test_only_a_container_is_touched(name, tmp_path):
    """A short or strange id could match a group of somebody else's."""
    with pytest.raises(SandboxUnavailable, match="expected a container id"):
        PodCgroup(name, tmp_path)


def test_a_group_that_is_not_there(tmp_path):
    """Says where it was looked for, and what to mount."""
    with pytest.raises(SandboxUnavailable, match="mount the host's /sys/fs/cgroup"):
        PodCgroup(ID, tmp_path)


def test_a_limit_that_the_kernel_refuses(unified):
    """Is our failure: the pod does not start without its walls."""
    cgroup, _ = unified
    with pytest.raises(SandboxUnavailable):
        cgroup.limit(64, (100_000,))
