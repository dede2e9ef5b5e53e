"""What the engine was asked for is what it did: its own description of a running learner's pod."""

import json

import pytest

from sandbox.docker.options import GUEST_CODE
from sandbox.docker.pod_uids import PodUids
from sandbox.docker.runner import DockerRunner
from sandbox.seccomp import profile_text
from tests.sandbox.docker.test_runner import containers
from tests.sandbox.owner import LIMITS, ask, drill

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def inspected(engine, lab_image, tmp_path_factory):
    """The engine's own description of a running learner's pod, whose submission is full of hostile names."""
    state_dir = tmp_path_factory.mktemp("state")
    with DockerRunner(lab_image, state_dir).open_run("test-policy", LIMITS) as space:
        for name in ("--privileged", "a$(reboot)", "x;y", "docker.sock", "é\u202e.py"):
            (space.submission_dir / name).write_text("--cap-add=ALL HOSTILE")
        pod = space.start(drill(submission=True, shards=True))
        ask(pod, kind="echo", value=1)
        yield containers(engine, "test-policy")[0].attrs


class TestPolicy:
    """What the engine was asked for is what it did."""

    @pytest.mark.parametrize(
        ("setting", "value"),
        [
            ("ReadonlyRootfs", True),
            ("CapDrop", ["ALL"]),
            ("SecurityOpt", ["no-new-privileges:true", f"seccomp={profile_text()}"]),
            ("NetworkMode", "none"),
            ("IpcMode", "private"),
            ("Memory", 256 << 20),
            ("MemorySwap", 256 << 20),
            ("PidsLimit", 64),
            ("CpusetCpus", "0,1"),
            ("OomScoreAdj", 500),
            ("RestartPolicy", {"Name": "", "MaximumRetryCount": 0}),
            ("Ulimits", [{"Name": "core", "Hard": 0, "Soft": 0}]),
            ("LogConfig", {"Type": "json-file", "Config": {"max-file": "1", "max-size": "256k"}}),
        ],
    )
    def test_host_settings(self, inspected, setting, value):
        """As the engine reports them."""
        assert inspected["HostConfig"][setting] == value

    def test_what_is_not_asked_for_is_the_safe_default(self, inspected):
        """Whichever empty value the engine has for it."""
        settings = (
            "Privileged", "CapAdd", "PidMode", "UTSMode", "UsernsMode", "OomKillDisable", "AutoRemove", "Binds",
            "PublishAllPorts", "PortBindings", "Devices", "DeviceRequests", "DeviceCgroupRules", "VolumesFrom",
            "GroupAdd", "ExtraHosts", "Sysctls",
        )  # fmt: skip
        assert {name: found for name in settings if (found := inspected["HostConfig"].get(name))} == {}

    def test_masked_paths_are_the_engines_own(self, inspected):
        """Kernel interfaces stay hidden or read-only."""
        assert "/proc/kcore" in inspected["HostConfig"]["MaskedPaths"]
        assert "/proc/sys" in inspected["HostConfig"]["ReadonlyPaths"]

    def test_process_settings(self, inspected):
        """User, command line, host name; no entry point of the image's."""
        config = inspected["Config"]
        uid, gid = map(int, config["User"].split(":"))
        assert PodUids().first <= uid <= PodUids().last
        assert gid == 65534
        assert config["Hostname"] == "pod"
        assert not config["Entrypoint"]
        assert config["Cmd"] == ["python3", "-P", "-s", "-B", "-u", f"{GUEST_CODE}/grader_guest/boot.py", "drill"]
        assert (config["OpenStdin"], config["Tty"]) == (False, False)

    def test_mounts(self, inspected):
        """Only these, and only the scratch is writable."""
        assert {mount["Destination"]: mount["RW"] for mount in inspected["Mounts"]} == {
            "/grader/code": False,
            "/grader/link": False,
            "/grader/submission": False,
            "/grader/shards": False,
            "/workspace": True,
            "/tmp": True,
            "/dev/shm": True,
        }

    def test_nothing_of_the_learners_is_in_it(self, inspected):
        """No name and no content of a submission reaches the engine's arguments."""
        text = json.dumps(inspected)
        for trace in ("HOSTILE", "reboot", "--privileged", "--cap-add", r"\u202e", "docker.sock"):
            assert trace not in text
