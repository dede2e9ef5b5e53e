"""What is in the lab image, and what is not; one container tells it all."""

import json
import os
from pathlib import PurePosixPath

import pytest

pytestmark = pytest.mark.integration

SCRIPT = """
import importlib.util, json, os, pathlib, shutil, stat, sys, sysconfig
site = pathlib.Path(sysconfig.get_path("purelib"))
set_id, writable = [], []
for folder, names, files in os.walk("/"):
    if folder == "/":
        names[:] = [name for name in names if name not in ("proc", "sys", "dev")]
    for path in (os.path.join(folder, name) for name in names + files):
        mode = os.lstat(path).st_mode
        if stat.S_ISREG(mode) and mode & 0o6000:
            set_id.append(path)
        if not stat.S_ISLNK(mode) and os.access(path, os.W_OK):
            writable.append(path)
sizes = [pathlib.Path(path) for path in ("/var/lib/apt/lists", "/var/cache/apt", "/var/log")]
compiled = f"__init__.{sys.implementation.cache_tag}.pyc"
facts = {
    "python": sys.version_info[:2],
    "ids": [os.getuid(), os.getgid(), os.getgroups()],
    "set_id": set_id,
    "writable": writable,
    "programs": [name for name in %(programs)r if shutil.which(name)],
    "modules": [name for name in ("pip", "ensurepip", "uv", "grader_service", "docker")
                if importlib.util.find_spec(name)],
    "downloads": [str(path) for folder in sizes if folder.is_dir() for path in folder.rglob("*") if path.is_file()],
    "without_bytecode": sorted({path.relative_to(site).parts[0] for path in site.rglob("__init__.py")
                                if not (path.parent / "__pycache__" / compiled).is_file()}),
    "environment": dict(os.environ),
    "folder": os.getcwd(),
}
import torch, torchvision, nvidia.dali, nvidia.dali.plugin.pytorch, numpy, PIL, matplotlib, tqdm
facts["versions"] = [torch.__version__, torchvision.__version__, nvidia.dali.__version__]
print(json.dumps(facts))
"""
PROGRAMS = [
    "pip",
    "pip3",
    "uv",
    "conda",
    "gcc",
    "cc",
    "g++",
    "make",
    "nvcc",
    "curl",
    "wget",
    "git",
    "ssh",
    "nc",
    "sudo",
    "docker",
]

# Debian's own programs that change the user: powerless in a pod, where no process gains privileges and nobody has a
# password. Anything that is not in this list came from somewhere else.
DEBIAN_SET_ID = {
    "chage", "chfn", "chsh", "expiry", "gpasswd", "mount", "newgrp", "passwd", "su", "umount", "unix_chkpwd",
}  # fmt: skip


@pytest.fixture(scope="module")
def facts(engine, lab_image):
    """What a container of the image says of itself, under the walls of a pod."""
    output = engine.containers.run(
        lab_image,
        ["python3", "-P", "-s", "-B", "-c", SCRIPT % {"programs": PROGRAMS}],
        remove=True,
        network_mode="none",
        read_only=True,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges:true"],
        tmpfs={"/tmp": "rw,size=64m"},
        mem_limit="4g",
    )
    return json.loads(output)


@pytest.mark.skipif("GRADER_LAB_IMAGE" in os.environ, reason="another lab image, with versions of its own")
def test_versions(facts):
    """Those of the lab's page."""
    torch, torchvision, dali = facts["versions"]
    assert torch.split("+")[0] == "2.11.0"
    assert torchvision.split("+")[0] == "0.26.0"
    assert dali == "2.4.0"
    assert tuple(facts["python"]) in {(3, 11), (3, 12)}


def test_nobody_runs_it(facts):
    """No root, in no group of anybody's."""
    assert facts["ids"] == [65534, 65534, [65534]]


@pytest.mark.parametrize(
    "fact",
    [
        "programs",  # that install, compile or download
        "modules",  # installers, and ours
        "downloads",  # package lists, caches and logs
        "without_bytecode",  # pods write none: every run would compile torch, or what torchvision imports, again
    ],
)
def test_what_the_image_does_not_have(facts, fact):
    """No tools, no leftovers of its making, and no library that is not compiled."""
    assert facts[fact] == []


def test_programs_that_change_the_user(facts):
    """Only Debian's own, which can do nothing in a pod."""
    assert {PurePosixPath(path).name for path in facts["set_id"]} <= DEBIAN_SET_ID
    assert all(path.startswith(("/usr/", "/bin/", "/sbin/")) for path in facts["set_id"])


def test_the_pods_user_can_write_nowhere(facts):
    """But to the scratch that a pod is given; here that is /tmp."""
    assert {path for path in facts["writable"] if not path.startswith("/tmp")} == set()


def test_the_environment_is_bare(facts):
    """The image sets a path and a locale, no more: nothing steers a driver or a loader."""
    assert set(facts["environment"]) <= {"PATH", "LANG", "HOME", "HOSTNAME"}
    assert facts["environment"]["LANG"] == "C.UTF-8"
    assert facts["folder"] == "/workspace"


def test_the_image_says_what_it_is(engine, lab_image):
    """Labels for its lock file and base; no entry point, port or volume."""
    config = engine.images.get(lab_image).attrs["Config"]
    assert config["User"] == "65534:65534"
    assert set(config["Labels"]) == {"org.grader.lock", "org.grader.base"}
    for name in ("Entrypoint", "ExposedPorts", "Volumes", "Healthcheck", "OnBuild"):
        assert not config.get(name), name
