"""Which way a container gets its GPU, on hosts made of a fake device folder, CDI folders and driver folders."""

import pytest

from sandbox import gpu_access
from sandbox.gpu_access import GpuAccess, GpuName, GpuRefusal, choose

FIRST = GpuName("GPU-1", 0, 0)
SECOND = GpuName("GPU-2", 1, 1)
MIG = GpuName("MIG-5f0c", 1, 1, 2)
RUNTIME = {"Runtimes": {"runc": {}, "nvidia": {"path": "nvidia-container-runtime"}}}


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A host without a GPU; tests add to it."""
    for name in ("dev", "cdi", "run-cdi"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(gpu_access, "DEVICE_FOLDER", tmp_path / "dev")
    monkeypatch.setattr(gpu_access, "DRIVER_FOLDERS", (tmp_path / "nvidia", tmp_path / "opt" / "nvidia"))
    return tmp_path


@pytest.fixture
def gpus(host):
    """Device nodes of two GPUs."""
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"):
        (host / "dev" / name).touch()
    return host


def with_cdi(host):
    """What an engine with CDI says of itself."""
    return {"CDISpecDirs": [str(host / "cdi"), str(host / "run-cdi")]}


def specification(*names, kind="nvidia.com/gpu"):
    """As the toolkit writes it, short of most of what a device needs."""
    lines = [f"cdiVersion: 0.5.0\nkind: {kind}\ndevices:"]
    lines += [f'- name: "{name}"\n  containerEdits:\n    deviceNodes:\n    - path: /dev/nvidia0' for name in names]
    return "\n".join(lines) + "\n"


def reasons(engine_info, gpu):
    """Why no way was found."""
    refusal = choose(engine_info, gpu)
    assert isinstance(refusal, GpuRefusal)
    return refusal.reasons


def test_no_driver(host):
    """Nothing else is looked at, and nothing can be given."""
    assert reasons({**with_cdi(host), **RUNTIME}, FIRST) == (
        f"{host}/dev/nvidia0 does not exist: no NVIDIA driver is loaded, or not for this GPU",
    )


def test_another_gpu_than_there_is(gpus):
    """The third of two."""
    assert "nvidia2 does not exist" in reasons(RUNTIME, GpuName("GPU-3", 2, 2))[0]


@pytest.mark.parametrize(
    ("gpu", "names", "chosen"),
    [
        (SECOND, ("0", "1", "all"), "1"),
        (SECOND, ("1", "GPU-2"), "GPU-2"),
        (SECOND, ("gpu0", "gpu1"), "gpu1"),
        (MIG, ("0", "0:2", "1:2", "all"), "1:2"),
        (MIG, ("GPU-1", "MIG-5f0c", "MIG-other"), "MIG-5f0c"),
        (MIG, ("1:2", "MIG-5f0c"), "MIG-5f0c"),
        (MIG, ("gpu0", "mig1:2"), "mig1:2"),
    ],
)
def test_cdi_comes_first_by_the_name_that_it_has(gpus, gpu, names, chosen):
    """Even where the runtime is there too; a UUID before a number, which is another's when a GPU is lost."""
    (gpus / "cdi" / "nvidia.yaml").write_text(specification(*names))
    assert choose({**with_cdi(gpus), **RUNTIME}, gpu) == GpuAccess(
        "cdi", device_requests=({"Driver": "cdi", "DeviceIDs": [f"nvidia.com/gpu={chosen}"]},)
    )


@pytest.mark.parametrize(("names", "way"), [(("0", "1"), "nvidia-runtime"), (("0", "1", "GPU-2"), "cdi")])
def test_a_worker_that_sees_only_some_gpus_of_its_host(gpus, names, way):
    """As in a container: its GPU 0 is not what the engine means by 0, and only a UUID is the same to both."""
    (gpus / "cdi" / "nvidia.yaml").write_text(specification(*names))
    ours = GpuName("GPU-2", 0, 1)
    access = choose({**with_cdi(gpus), **RUNTIME}, ours)
    assert access.name == way
    assert "GPU-2" in str(access)
    (gpus / "nvidia" / "lib64").mkdir(parents=True)
    assert choose({}, ours).devices[0].endswith("nvidia1")


@pytest.mark.parametrize("name", ["cdi/other.yaml", "cdi/nvidia.txt", "elsewhere.yaml"])
def test_cdi_needs_a_specification_in_the_engines_folders(gpus, name):
    """Another vendor's, another file type or another folder will not do."""
    kind = "vendor.com/net" if "other" in name else "nvidia.com/gpu"
    (gpus / name).write_text(f"kind: {kind}")
    (told, *_) = reasons(with_cdi(gpus), FIRST)
    assert "nvidia-ctk cdi generate" in told
    assert str(gpus / "cdi") in told


@pytest.mark.parametrize("dirs", [None, [], "text", 5])
def test_an_engine_without_cdi(gpus, dirs):
    """Older engines do not have the field; the reason names the version that does."""
    (gpus / "cdi" / "nvidia.yaml").write_text("kind: nvidia.com/gpu")
    assert "Docker 25 or newer" in reasons({"CDISpecDirs": dirs}, FIRST)[0]


def test_folders_that_cannot_be_read(gpus):
    """A specification that is a folder, or a folder that is missing, is none."""
    (gpus / "cdi" / "nvidia.yaml").mkdir()
    (gpus / "run-cdi").rmdir()
    assert reasons(with_cdi(gpus), FIRST)


@pytest.mark.usefixtures("gpus")
@pytest.mark.parametrize("gpu", [SECOND, MIG])
def test_the_runtime_comes_second(gpu):
    """With the capabilities that decoding needs, and without `utility`; it takes the UUID of an instance as well."""
    assert choose(RUNTIME, gpu) == GpuAccess(
        "nvidia-runtime",
        runtime="nvidia",
        environment={"NVIDIA_VISIBLE_DEVICES": gpu.uuid, "NVIDIA_DRIVER_CAPABILITIES": "compute,video"},
    )


def test_device_nodes_come_last(gpus):
    """This GPU's node, the control nodes that exist, and the driver's folder."""
    (gpus / "opt" / "nvidia" / "lib64").mkdir(parents=True)
    folder = str(gpus / "opt" / "nvidia")
    assert choose({"Runtimes": {"runc": {}}}, SECOND) == GpuAccess(
        "device-nodes",
        devices=tuple(str(gpus / "dev" / name) for name in ("nvidia1", "nvidiactl", "nvidia-uvm")),
        volumes={folder: folder},
        environment={"LD_LIBRARY_PATH": f"{folder}/lib64:{folder}/lib"},
    )


@pytest.mark.parametrize("info", [{}, {"Runtimes": None}, {"Runtimes": ["nvidia"]}, {"Runtimes": {}}])
def test_no_way(gpus, info):
    """One reason for each way that was looked at."""
    assert [reason.split(":")[0] for reason in reasons(info, FIRST)] == ["CDI", "NVIDIA runtime", "device nodes"]


def test_an_instance_in_a_specification_of_json(gpus):
    """Beside a broken one, and one of another kind with the same name."""
    (gpus / "cdi" / "broken.yaml").write_text("kind: nvidia.com/gpu\n\t- [")
    (gpus / "cdi" / "other.yaml").write_text(specification("MIG-5f0c", kind="vendor.com/nvidia.com/gpu"))
    (gpus / "run-cdi" / "nvidia.json").write_text('{"kind": "nvidia.com/gpu", "devices": [{"name": "1:2"}, 3]}')
    access = choose(with_cdi(gpus), MIG)
    assert isinstance(access, GpuAccess)
    assert access.device_requests[0]["DeviceIDs"] == ["nvidia.com/gpu=1:2"]


@pytest.mark.parametrize(
    ("gpu", "text"),
    [
        (SECOND, specification("0")),
        (MIG, specification("0", "1", "1:0", "all")),
        (MIG, specification("1:2", kind="vendor.com/nvidia.com/gpu")),
        (MIG, "kind: nvidia.com/gpu\ndevices: none"),
        (MIG, "kind: nvidia.com/gpu\n\t- ["),
        (MIG, "- nvidia.com/gpu"),
    ],
)
def test_what_no_specification_names(gpus, gpu, text):
    """It was written before the instance was made: its whole GPU is not given in its place, and the way out is said."""
    (gpus / "cdi" / "nvidia.yaml").write_text(text)
    advice = f"no specification names {gpu.uuid}; run `nvidia-ctk cdi generate --device-name-strategy=uuid`"
    assert advice in reasons(with_cdi(gpus), gpu)[0]
    assert choose({**with_cdi(gpus), **RUNTIME}, gpu).name == "nvidia-runtime"


def test_no_device_nodes_for_an_instance(gpus):
    """The node of its GPU is its neighbours', too."""
    (gpus / "nvidia" / "lib64").mkdir(parents=True)
    assert choose({}, SECOND).name == "device-nodes"
    assert [reason.split(":")[0] for reason in reasons({}, MIG)] == ["CDI", "NVIDIA runtime", "device nodes"]


def test_tracing_of_memory_is_not_handed_out(gpus):
    """CUDA needs its other node only."""
    (gpus / "dev" / "nvidia-uvm-tools").touch()
    (gpus / "nvidia" / "lib64").mkdir(parents=True)
    names = [device.rsplit("/", 1)[1] for device in choose({}, FIRST).devices]
    assert names == ["nvidia0", "nvidiactl", "nvidia-uvm"]


def test_another_oci_runtime_leaves_the_nvidia_runtime_out(gpus):
    """A container has one runtime, and the setting says which."""
    assert choose(RUNTIME, FIRST, "nvidia").name == "nvidia-runtime"
    refusal = choose(RUNTIME, FIRST, "crun")
    assert any("GRADER_OCI_RUNTIME names crun" in reason for reason in refusal.reasons)
