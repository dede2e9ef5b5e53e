"""The policy of a pod on Kubernetes, as the Job says it; every manifest is valid by the strict published schemas."""

import re
import resource
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader_service.errors import ConfigurationError
from sandbox.api import PodRole, PodSpec, Scratch
from sandbox.docker.options import PodFolders
from sandbox.kubernetes.manifests import (
    GRACE_S,
    ScratchFolders,
    Site,
    job_manifest,
    job_name,
    kubernetes_gpu,
    limited,
    run_labels,
    seccomp_path,
)
from sandbox.kubernetes.node import install_profile
from sandbox.seccomp import profile_text
from tests.kubernetes_api.objects import Objects, Refused, validate

RUN = Path("/var/lib/grader/runs/one")
FOLDERS = PodFolders(RUN / "code", RUN / "links/a", RUN / "submission", RUN / "shards", Path("/data"))
SCRATCH = ScratchFolders(RUN / "scratch/workspace", RUN / "scratch/tmp", RUN / "scratch/shm", 512)
SITE = Site("grader-sandbox", "gpu-node-1")
UUID = "GPU-1f2e3d4c"


def manifest(site=SITE, gpu=None, **changes):
    """The Job of a pod."""
    values = {"role": PodRole.LEARNER, "program": "learner.main", "memory_mib": 4096, "pids": 256, "cpus": (2, 3)}
    return job_manifest(
        PodSpec(**values | changes),
        site=site,
        name=job_name("one", 0, "learner"),
        labels=run_labels("one", site.node, Path("/var/lib/grader")),
        annotations={"org.grader.run-id": "one"},
        image="lab@sha256:00",
        folders=FOLDERS,
        scratch=SCRATCH,
        gpu=gpu,
        deadline_s=600,
    )


def pod_of(job):
    """The pod's specification."""
    return job["spec"]["template"]["spec"]


def mounts(job):
    """Path in the pod to (source on the host or kind of volume, read-only)."""
    volumes = {volume["name"]: volume for volume in pod_of(job)["volumes"]}
    found = {}
    for mount in pod_of(job)["containers"][0]["volumeMounts"]:
        volume = volumes[mount["name"]]
        source = volume["hostPath"]["path"] if "hostPath" in volume else f"memory {volume['emptyDir']['sizeLimit']}"
        found[mount["mountPath"]] = (source, mount["readOnly"])
    return found


@pytest.mark.parametrize("role", PodRole)
@pytest.mark.parametrize("scratch", Scratch)
@pytest.mark.parametrize("gpu", [None, kubernetes_gpu(UUID, "nvidia")])
def test_every_pod_is_valid(role, scratch, gpu):
    """No field is misspelt or in the wrong place, whatever pod is asked for."""
    validate(manifest(role=role, scratch=scratch, gpu=gpu, submission=True, shards=True))


def test_a_misspelt_field_would_be_refused():
    """The schemas are strict, here and where the fake server takes a Job: the test above can fail."""
    job = manifest()
    pod_of(job)["automountServiceAccountTokens"] = False
    with pytest.raises(Refused, match="automountServiceAccountTokens"):
        Objects().create("jobs", SITE.namespace, job)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("restartPolicy", "Never"),
        ("nodeName", "gpu-node-1"),
        ("automountServiceAccountToken", False),
        ("enableServiceLinks", False),
        ("hostNetwork", False),
        ("hostPID", False),
        ("hostIPC", False),
        ("shareProcessNamespace", False),
        ("dnsPolicy", "None"),
        ("terminationGracePeriodSeconds", GRACE_S),
    ],
)
def test_the_pod(field, value):
    """Nothing of the host's, of the cluster's or of a neighbour's is given to a pod."""
    assert pod_of(manifest())[field] == value


def test_a_pod_has_no_rights():
    """Not root, no capability, no more of either, and no system call beyond the profile."""
    pod = pod_of(manifest())
    assert pod["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 65534,
        "runAsGroup": 65534,
        "seccompProfile": {"type": "Localhost", "localhostProfile": seccomp_path()},
    }
    assert pod["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "privileged": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_a_job_is_tried_once_and_goes():
    """A second try would be another measurement; a forgotten one does not stay."""
    spec = manifest()["spec"]
    assert (spec["backoffLimit"], spec["completions"], spec["parallelism"]) == (0, 1, 1)
    assert spec["activeDeadlineSeconds"] == 600
    assert spec["ttlSecondsAfterFinished"] > 0


def test_memory_is_reserved_and_cores_are_not():
    """A node must have the memory; the cores are those that the runner has reserved."""
    resources = pod_of(manifest(memory_mib=100))["containers"][0]["resources"]
    assert resources["limits"] == {"memory": "100Mi"}
    assert resources["requests"]["memory"] == "100Mi"


def test_what_a_learner_can_write_to():
    """The run's scratch; all else is read-only."""
    found = mounts(manifest(scratch=Scratch.READ_WRITE, submission=True, shards=True))
    assert {path for path, (_, read_only) in found.items() if not read_only} == {"/workspace", "/tmp", "/dev/shm"}
    assert found["/workspace"][0] == str(SCRATCH.workspace)
    assert {path for path, (_, read_only) in found.items() if read_only} == {
        "/grader/code",
        "/grader/link",
        "/grader/submission",
        "/grader/shards",
        "/data/lab",
    }


def test_what_a_scanner_can_write_to():
    """Nothing."""
    found = mounts(manifest(role=PodRole.SCANNER, scratch=Scratch.READ_ONLY))
    assert {path for path, (_, read_only) in found.items() if not read_only} == set()


def test_a_pod_of_ours_has_memory_of_its_own():
    """With a size; and neither submission nor shards nor the lab's data where they were not asked for."""
    found = mounts(manifest(role=PodRole.REFERENCE, shm_mib=77))
    assert found == {
        "/grader/code": (str(FOLDERS.code), True),
        "/grader/link": (str(FOLDERS.socket), True),
        "/tmp": ("memory 256Mi", False),
        "/dev/shm": ("memory 77Mi", False),
    }


@pytest.mark.parametrize("uuid", [UUID, "MIG-5f0c"])
def test_a_gpu_or_an_instance_by_runtime_class(uuid):
    """NVIDIA's hook reads the environment; it is never requested: the runner holds it, and the scheduler counts it."""
    job = manifest(gpu=kubernetes_gpu(uuid, "nvidia"))
    (guest,) = pod_of(job)["containers"]
    assert pod_of(job)["runtimeClassName"] == "nvidia"
    assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": uuid} in guest["env"]
    assert list(guest["resources"]["requests"]) == ["cpu", "memory"]
    assert "nvidia.com" not in str(job)


def test_a_gpu_without_a_runtime_class():
    """Pods would start without one, and every learner would fail for it."""
    with pytest.raises(ConfigurationError, match="expected its name in GRADER_KUBERNETES_RUNTIME_CLASS"):
        kubernetes_gpu(UUID, None)


def test_a_pod_without_a_gpu_has_none():
    """No runtime class of the GPU's and no environment; the site's own class, where it has one, stays."""
    pod = pod_of(manifest(site=Site("ns", "node", runtime_class="gvisor", priority_class="grader-live")))
    assert pod["runtimeClassName"] == "gvisor"
    assert pod["priorityClassName"] == "grader-live"
    assert "NVIDIA" not in str(pod["containers"][0]["env"])


@given(st.text(alphabet="abzABZ019_-", min_size=1, max_size=128).filter(lambda text: text[0].isalnum()))
def test_any_run_id_gives_names_that_kubernetes_takes(run_id):
    """Also one that ends in a dash, is long, or has capital letters."""
    assert re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", job_name(run_id, 12, "clean_room"))
    for value in run_labels(run_id, "node", Path("/var/lib/grader")).values():
        assert re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", value)


def test_runs_that_differ_in_case_only_have_names_of_their_own():
    """A DNS label has no capital letters."""
    assert job_name("Run", 0, "learner") != job_name("run", 0, "learner")


def test_limits_of_a_process():
    """No core dump, for good; no file larger than scratch where there is one; the command is passed on word by word."""
    if resource.getrlimit(resource.RLIMIT_CORE)[1] == 0:
        pytest.skip("core dumps are forbidden here: nothing would show")
    show = ["/bin/sh", "-c", 'ulimit -Hc; ulimit -f; echo "$1"', "x", "a b;$(c)"]
    assert subprocess.check_output(limited(show, 3), text=True).split("\n")[:3] == ["0", "6144", "a b;$(c)"]
    assert subprocess.check_output(limited(show, 0), text=True).split("\n")[:2] == ["0", "unlimited"]


def test_the_profile_is_installed_under_the_name_that_pods_ask_for(tmp_path):
    """And readable for the kubelet; again is fine."""
    for _ in range(2):
        path = install_profile(tmp_path)
    assert path == tmp_path / seccomp_path()
    assert path.read_text() == profile_text()
    assert [one.name for one in path.parent.iterdir()] == [path.name]
