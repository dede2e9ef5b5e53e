"""The sandbox's policy as a table: what every pod is denied, and what each kind of pod is given."""

import dataclasses
import itertools
import json
from pathlib import Path

import pytest

from sandbox.api import PodRole, PodSpec, Scratch
from sandbox.docker.options import (
    GUEST_CODE,
    PodFolders,
    ScratchVolumes,
    container_options,
    guest_environment,
    labels,
    scratch_volume_options,
)
from sandbox.gpu_access import GpuAccess
from sandbox.seccomp import profile_text

FOLDERS = PodFolders(Path("/s/code"), Path("/s/link"), Path("/s/submission"), Path("/s/shards"), Path("/srv/lab"))
VOLUMES = ScratchVolumes("v-workspace", "v-tmp", "v-shm")
SPEC = PodSpec(role=PodRole.LEARNER, program="learner.main", memory_mib=512, pids=100, cpus=(2, 3), shm_mib=64)
GPUS = {
    "none": None,
    "cdi": GpuAccess("cdi", device_requests=({"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=1"]},)),
    "runtime": GpuAccess("nvidia-runtime", runtime="nvidia", environment={"NVIDIA_VISIBLE_DEVICES": "1"}),
    "nodes": GpuAccess(
        "device-nodes",
        devices=("/dev/nvidia1", "/dev/nvidiactl"),
        volumes={"/usr/local/nvidia": "/usr/local/nvidia"},
        environment={"LD_LIBRARY_PATH": "/usr/local/nvidia/lib64"},
    ),
}

ALWAYS = {
    "image": "sha256:abc",
    "command": ["python3", "-P", "-s", "-B", "-u", f"{GUEST_CODE}/grader_guest/boot.py", "learner.main"],
    "entrypoint": [],
    "user": "60706:65534",
    "hostname": "pod",
    "stdin_open": False,
    "network_mode": "none",
    "read_only": True,
    "cap_drop": ["ALL"],
    "security_opt": ["no-new-privileges:true", f"seccomp={profile_text()}"],
    "ipc_mode": "private",
    "pids_limit": 100,
    "mem_limit": 512 << 20,
    "memswap_limit": 512 << 20,
    "oom_score_adj": 500,
    "cpuset_cpus": "2,3",
    "ulimits": [{"Name": "core", "Soft": 0, "Hard": 0}],
    "log_config": {"Type": "json-file", "Config": {"max-size": "256k", "max-file": "1"}},
}
"""Every setting that no pod is without. A change of the policy is a change of this table."""

PER_POD = {"name", "labels", "environment", "working_dir", "tmpfs", "mounts", "shm_size"}
"""Settings that differ from pod to pod; each has a test below."""

FOR_A_GPU = {"device_requests", "devices", "runtime"}


def options(spec=SPEC, *, gpu="none", folders=FOLDERS):
    return container_options(
        spec,
        run_id="0123456789abcdef0123456789abcdef",
        number=4,
        labels=labels("0123456789abcdef0123456789abcdef", Path("/s")),
        image="sha256:abc",
        folders=folders,
        volumes=VOLUMES,
        gpu=GPUS[gpu],
        uid=60706,
    )


EVERY_POD = [
    (dataclasses.replace(SPEC, role=role, scratch=scratch, submission=True, shards=True), gpu)
    for role, scratch, gpu in itertools.product(PodRole, Scratch, GPUS)
]


@pytest.mark.parametrize("name", ALWAYS)
def test_every_pod_has_every_wall(name):
    """Whatever its role, scratch and GPU."""
    for spec, gpu in EVERY_POD:
        assert options(spec, gpu=gpu)[name] == ALWAYS[name]


@pytest.mark.parametrize("gpu", GPUS)
def test_nothing_else_is_asked_for(gpu):
    """No privileges, capabilities, host namespaces, devices or mounts beyond what the tables name."""
    for spec, _ in EVERY_POD:
        made = options(spec, gpu=gpu)
        assert set(made) <= ALWAYS.keys() | PER_POD | (FOR_A_GPU if gpu != "none" else set())
        text = json.dumps(made)
        for forbidden in ("docker.sock", "privileged", "cap_add", "SYS_ADMIN", "unconfined", "/proc", "/etc", '"host"'):
            assert forbidden not in text


def test_every_mount_from_the_host_is_read_only():
    """Binds are private and read-only, the folder with the socket too; only volumes are ever writable."""
    for spec, gpu in EVERY_POD:
        for mount in options(spec, gpu=gpu)["mounts"]:
            if mount["Type"] == "bind":
                assert mount["ReadOnly"] is True
                assert mount["BindOptions"] == {"Propagation": "rprivate"}
            else:
                assert mount["Type"] == "volume"
                assert mount["ReadOnly"] is (spec.scratch is not Scratch.READ_WRITE)
                assert mount["VolumeOptions"] == {"NoCopy": True}


def targets(made):
    """Source by target of every mount."""
    return {mount["Target"]: mount["Source"] for mount in made["mounts"]}


BASE = {"/grader/code": "/s/code", "/grader/link": "/s/link"}
SCRATCH = {"/workspace": "v-workspace", "/tmp": "v-tmp", "/dev/shm": "v-shm"}


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ({"role": PodRole.CLEAN_ROOM}, {}),
        ({"role": PodRole.REFERENCE, "shards": True}, {"/grader/shards": "/s/shards"}),
        ({"role": PodRole.CLEAN_ROOM, "submission": True}, {"/grader/submission": "/s/submission"}),
        ({"role": PodRole.LEARNER, "scratch": Scratch.READ_WRITE}, {**SCRATCH, "/data/lab": "/srv/lab"}),
        ({"role": PodRole.SCANNER, "scratch": Scratch.READ_ONLY}, {**SCRATCH, "/data/lab": "/srv/lab"}),
    ],
)
def test_each_pod_gets_what_it_asks_for(changes, more):
    """The lab's data goes to the learner and the scanner, shards and submission to those that want them."""
    assert targets(options(dataclasses.replace(SPEC, **changes))) == {**BASE, **more}


def test_a_lab_without_data():
    """Nothing is mounted in its place."""
    assert targets(options(folders=dataclasses.replace(FOLDERS, lab_data=None))) == BASE


def test_a_pod_without_scratch_has_a_small_one_of_its_own():
    """Bounded in bytes and files; programs may run from it, since compilers' caches need that."""
    made = options()
    assert made["tmpfs"] == {"/tmp": "rw,exec,nosuid,nodev,size=256m,nr_inodes=20000,mode=1777,uid=60706"}
    assert made["shm_size"] == 64 << 20
    assert made["working_dir"] == "/"


@pytest.mark.parametrize("scratch", [Scratch.READ_WRITE, Scratch.READ_ONLY])
def test_a_pod_with_scratch_has_no_other(scratch):
    """The run's volumes stand where its own scratch would be, shared memory included."""
    made = options(dataclasses.replace(SPEC, scratch=scratch))
    assert made["tmpfs"] == {}
    assert "shm_size" not in made
    assert made["working_dir"] == "/workspace"


@pytest.mark.parametrize(
    ("gpu", "given"),
    [
        ("none", {}),
        (
            "cdi",
            {"device_requests": [{"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=1"]}], "devices": []},
        ),
        ("runtime", {"device_requests": [], "devices": [], "runtime": "nvidia"}),
        (
            "nodes",
            {"device_requests": [], "devices": ["/dev/nvidia1:/dev/nvidia1:rw", "/dev/nvidiactl:/dev/nvidiactl:rw"]},
        ),
    ],
)
def test_one_gpu_by_one_way(gpu, given):
    """Exactly what `gpu_access` chose."""
    made = options(gpu=gpu)
    assert {name: made[name] for name in FOR_A_GPU if name in made} == given
    assert ("/usr/local/nvidia" in targets(made)) is (gpu == "nodes")


def test_the_environment_is_ours():
    """Named one by one; a pod's own and the GPU's come last."""
    spec = dataclasses.replace(SPEC, environment={"OMP_NUM_THREADS": "2"})
    assert guest_environment(spec, GPUS["runtime"]) == {
        "HOME": "/tmp",
        "TMPDIR": "/tmp",
        "USER": "pod",
        "LANG": "C.UTF-8",
        "MPLBACKEND": "Agg",
        "XDG_CACHE_HOME": "/tmp/.cache",
        "GRADER_DATA_DIR": "/data/lab",
        "GRADER_LINK": "/grader/link/host.sock",
        "NVIDIA_VISIBLE_DEVICES": "1",
        "OMP_NUM_THREADS": "2",
    }
    assert guest_environment(dataclasses.replace(spec, scratch=Scratch.READ_WRITE), None)["HOME"] == "/workspace"


@pytest.mark.parametrize("role", PodRole)
def test_names_and_labels(role):
    """A container's name has its run, its number and its role; its labels are what a sweep looks for."""
    made = options(dataclasses.replace(SPEC, role=role))
    assert made["name"] == f"grader-0123456789abcdef01234567-4-{role.value.replace('_', '-')}"
    assert made["labels"] == {
        "org.grader.run": "0123456789abcdef0123456789abcdef",
        "org.grader.state": "/s",
        "org.grader.role": role.value,
    }


def test_scratch_volumes_are_memory_of_a_fixed_size():
    """No set-id programs and no devices in them."""
    made = scratch_volume_options(300, 5000, "v", labels={"a": "b"}, uid=60706)
    assert made == {
        "name": "v",
        "driver": "local",
        "driver_opts": {
            "type": "tmpfs",
            "device": "tmpfs",
            "o": "size=300m,nr_inodes=5000,mode=1777,uid=60706,gid=65534,nosuid,nodev",
        },
        "labels": {"a": "b"},
    }
