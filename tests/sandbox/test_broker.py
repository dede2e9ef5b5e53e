"""What the pod broker refuses whoever has taken over a runner, and what such a one can touch."""

import json
import os
import secrets
import socket
import subprocess
import threading
import time

import pytest

from grader_service.errors import ConfigurationError, SandboxUnavailable
from grader_service.host.facts import total_memory_mib
from grader_service.host.sandboxes import open_broker, open_runner
from grader_service.labs.specs import lab_text, read_lab
from grader_service.settings import Settings
from sandbox.api import PodRole, Scratch
from sandbox.broker import wire
from sandbox.broker.client import BrokerRunner, Line
from sandbox.broker.rules import programs
from sandbox.docker.engine import DockerHandle
from tests.conftest import missing
from tests.sandbox.docker.test_runner import gives_labs_their_images
from tests.sandbox.owner import LIMITS, ask, drill
from tests.sandbox.pod_broker import answers, serving
from tests.sandbox.test_run_folder import ANY_USERS_PYTHON
from tests.waiting import wait_for

pytestmark = pytest.mark.integration


def own(name):
    """A run id of this test's: containers and volumes are named by it, and tests of other files use the same engine."""
    return f"{name}-{secrets.token_hex(4)}"


def started(engine, runner):
    return engine.containers.list(all=True, filters={"label": f"org.grader.state={runner._path.parent}"})


def test_no_more_than_allowed(lab_image, state_dir, tmp_path):
    """Of run spaces and of pods; who gives one back may have another one."""
    with serving(lab_image, state_dir, runs=1, pods=1) as path:
        runner = BrokerRunner(path, lab_image, tmp_path)
        for _ in range(2):
            with runner.open_run(own("one"), LIMITS) as space:
                with pytest.raises(SandboxUnavailable, match="at most 1 run spaces"):
                    runner.open_run(own("two"), LIMITS).__enter__()
                for _ in range(2):
                    pod = space.start(drill())
                    with pytest.raises(SandboxUnavailable, match="at most 1 pods"):
                        space.start(drill())
                    pod.end()


def test_bounds_are_said(broker_runner):
    """As the runner says it: what was expected, what came, and the setting."""
    with broker_runner.open_run(own("bounds"), LIMITS) as space:
        with pytest.raises(SandboxUnavailable, match=r"expected at most 4096, got 5000.*GRADER_POD_MOST_MEMORY_MIB"):
            space.start(drill(memory_mib=5000))
        with pytest.raises(SandboxUnavailable, match="starts a pod like this"):
            space.start(drill(environment={"LD_PRELOAD": "x"}))
        ask(space.start(drill(environment={"GRADER_AHEAD": "wave,colorsys"})), kind="echo", value=1)


def test_programs_are_those_that_boot_runs():
    """Found in the guest's code, so that a new one needs no list."""
    trusted = {f"trusted.{name}" for name in ("scanner", "clean_room", "reference", "probe_room")}
    assert programs() == {"drill", "learner.main"} | trusted


STRANGER = """
import json, socket, sys
connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
connection.connect(sys.argv[1])
connection.send(json.dumps({"ask": "sweep"}).encode())
print(connection.recv(10000).decode())
"""


def as_user(groups, program, *arguments, uid=10001):
    """What a program of another user printed, standard library only."""
    if os.geteuid() != 0:
        missing("only root may be another user")
    who = {"user": uid, "group": uid, "extra_groups": groups}
    command = [ANY_USERS_PYTHON, "-c", program, *map(str, arguments)]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60, cwd="/", **who)


def test_another_user_is_refused(broker_runner):
    """By the kernel where its group is another one, and else by its user id."""
    broker_runner._path.parent.chmod(0o755)
    assert "PermissionError" in as_user([], STRANGER, broker_runner._path).stderr
    told = json.loads(as_user([os.getegid()], STRANGER, broker_runner._path).stdout)
    assert (told["answer"], "got 10001" in told["why"]) == ("refused", True)


def test_the_runners_user_is_served(lab_image, state_dir):
    """Whom the setting names."""
    state_dir.chmod(0o755)
    with serving(lab_image, state_dir, peers=frozenset({10001})) as path:
        assert json.loads(as_user([os.getegid()], STRANGER, path).stdout)["answer"] == "swept"


ATTACKS = """
import os, sys, socket
root = sys.argv[1]
os.chdir(root)
os.mkdir("shards/mine")
attacks = {
    "rename": lambda: os.rename("submission", "elsewhere"),
    "replace": lambda: os.rename(f"{root}/shards/mine", f"{root}/submission"),
    "rmdir": lambda: os.rmdir("submission"),
    "symlink": lambda: os.symlink("/etc", "new"),
    "mkdir": lambda: os.mkdir("new"),
    "rename the run": lambda: os.rename(root, root + "-mine"),
    "another run": lambda: os.mkdir(os.path.dirname(root) + "/other"),
    "chmod": lambda: os.chmod("submission", 0o777),
    "code": lambda: open("code/grader_guest/boot.py", "w"),
    "new code": lambda: open("code/grader_guest/new.py", "w"),
    "link": lambda: open("links/learner-0/new", "w"),
    "unlink its socket": lambda: os.unlink("links/learner-0/host.sock"),
    "lock": lambda: open("owner.lock"),
    "device": lambda: os.mknod("shards/device", 0o60666, os.makedev(8, 0)),
}
for name, attack in attacks.items():
    try:
        attack()
    except OSError as error:
        continue
    print("succeeded:", name)
os.mkdir("shards/class_0")
open("shards/class_0/a.jpg", "w").write("1234")
os.symlink("/etc/passwd", "shards/passwd")
os.symlink(root, "shards/up")
os.chmod("shards/class_0", 0)
open("submission/s.py", "w").write("12")
os.chmod("submission/s.py", 0o6755)
os.mkdir("hidden-shards/0")
os.rename("hidden-shards/0", "shards/class_1")
print("wrote")
"""


def test_a_runners_user_writes_to_three_folders_and_moves_none(broker_runner, engine):
    """What the engine mounts stays where it is; links of the runner's lead a pod nowhere; the broker follows none."""
    parent = broker_runner._path.parent
    parent.chmod(0o755)
    space = broker_runner.open_run(own("attacked"), LIMITS)
    space.__enter__()
    try:
        (parent / "runs").chmod(0o755)
        pod = space.start(drill(submission=True, shards=True, scratch=Scratch.NONE))
        done = as_user([os.getegid()], ATTACKS, space.shards_dir.parent)
        assert (done.stdout, done.stderr) == ("wrote\n", "")
        assert ask(pod, kind="size", path=f"{space.paths.submission}/s.py").body["value"] == 2
        inside = ask(pod, kind="size", path=f"{space.paths.shards}/passwd").body["value"]
        of_image = ask(pod, kind="size", path="/etc/passwd").body["value"]
        assert inside == of_image
        assert ask(pod, kind="size", path=f"{space.paths.shards}/up/owner.lock").body["value"] == -1
    finally:
        for _, line in space._pods:
            line.close()
        space._line.close()  # as one that dies: nobody removes what was written
    wait_for(lambda: not (space.shards_dir.parent / "code").exists(), 20)
    left = {"submission", "s.py", "shards", "class_0", "a.jpg", "class_1", "mine", "passwd", "up"}
    assert {path.name for path in space.shards_dir.parent.rglob("*")} == left
    assert os.path.exists("/etc/passwd")
    assert broker_runner.sweep() >= 1
    assert not space.shards_dir.parent.exists()
    assert started(engine, broker_runner) == []


def test_a_slow_call_holds_up_no_other(broker_runner, monkeypatch):
    """Neither those about other pods, nor of other run spaces."""
    slowly, asked, freeze = threading.Event(), threading.Event(), DockerHandle.pause

    def freeze_slowly(handle):
        asked.set()
        slowly.wait(60)
        freeze(handle)

    with broker_runner.open_run(own("slow"), LIMITS) as space:
        slow, other = space.start(drill()), space.start(drill(PodRole.SCANNER, scratch=Scratch.READ_ONLY))
        monkeypatch.setattr(DockerHandle, "pause", freeze_slowly)
        stuck = threading.Thread(target=slow.pause)
        stuck.start()
        try:
            assert asked.wait(30)
            monkeypatch.undo()
            other.pause()
            other.resume()
            assert ask(other, kind="echo", value=1).body["value"] == 1
            with broker_runner.open_run(own("meanwhile"), LIMITS) as another:
                ask(another.start(drill()), kind="echo", value=1)
            assert stuck.is_alive()
        finally:
            slowly.set()
            stuck.join()


def test_images_of_labs(lab_image, state_dir, tmp_path, engine):
    """Those that the broker knows, each by what its name meant when it was asked for."""
    with serving(lab_image, state_dir, images=[lab_image, "grader-test-broker"]) as path:
        runner = BrokerRunner(path, lab_image, tmp_path)
        fixed = BrokerRunner(path, lab_image, tmp_path, any_lab=True)
        gives_labs_their_images(runner, fixed, engine, "grader-test-broker", "expected one of grader-lab, grader-test")


@pytest.fixture
def opened_with(broker_runner, lab_image, tmp_path):
    """A runner of the same broker, of these settings."""
    return lambda **told: open_runner(
        "docker",
        lab_image,
        Settings(state_dir=tmp_path, pod_broker=broker_runner._path, lab_image=lab_image, **told),
        None,
    )


def test_the_labs_data_is_the_brokers_to_choose(broker_runner, opened_with, tmp_path):
    """A runner that was told of a folder that pods do not get says so, and where to say it instead."""
    assert opened_with(lab_data="").facts == broker_runner.facts
    with pytest.raises(ConfigurationError, match=r"GRADER_LAB_DATA: expected the pod broker's \(None\)"):
        opened_with(lab_data=tmp_path)


def test_an_oci_runtime_is_the_brokers_to_choose(broker_runner, opened_with):
    """A runner that was told of another one, with a thicker wall perhaps, does not start pods without it."""
    assert opened_with(oci_runtime=broker_runner.facts.oci_runtime).facts == broker_runner.facts
    with pytest.raises(ConfigurationError, match=r"GRADER_OCI_RUNTIME: expected the pod broker's .*, got runsc"):
        opened_with(oci_runtime="runsc")


def test_installed_labs_are_within_the_bounds(lab_image, state_dir):
    """Unless a setting has it otherwise."""
    limits = {"pids": 8192, "workspace_inodes": 3_000_000, "workspace_mib": 1 << 30}
    lab = read_lab(lab_text("dali-pipelines"), "lab")
    labs = [lab, lab.model_copy(update={"limits": lab.limits.model_copy(update=limits)})]

    def most(labs, **named):
        settings = Settings(state_dir=state_dir, lab_image=lab_image, lock_dir=state_dir, **named)
        bounds = open_broker(labs, settings, None)._bounds
        return bounds.pids, bounds.inodes, bounds.memory_mib

    assert most([lab]) == (4096, 2_000_000, total_memory_mib())
    assert most(labs) == (8192, 3_000_000, 1 << 30)
    assert most(labs, pod_most_pids=100, pod_most_inodes=200, pod_most_memory_mib=300) == (100, 200, 300)


def test_scratch_of_another_grader(broker_runner, engine):
    """Whoever asks for a run id that it knows gets volumes of its own, and the other's stays."""
    run_id = own("theirs")
    theirs = engine.volumes.create(f"grader-{run_id}-workspace", labels={"org.grader.run": run_id})
    try:
        with broker_runner.open_run(run_id, LIMITS) as space:
            pod = space.start(drill(scratch=Scratch.READ_WRITE))
            ask(pod, kind="echo", value=1)
            (container,) = started(engine, broker_runner)
            assert theirs.name not in {mount.get("Name") for mount in container.attrs["Mounts"]}
        assert [volume.name for volume in engine.volumes.list(filters={"name": run_id})] == [theirs.name]
    finally:
        theirs.remove()


class SlowToListen(socket.socket):
    """A socket that is bound for a while before anybody can connect."""

    def listen(self, waiting):
        time.sleep(0.5)
        super().listen(waiting)


def test_whoever_sees_the_socket_is_answered(lab_image, state_dir, monkeypatch):
    """It appears once the broker listens."""
    monkeypatch.setattr(wire, "make_socket", lambda: SlowToListen(socket.AF_UNIX, socket.SOCK_SEQPACKET))
    with serving(lab_image, state_dir) as path:
        assert answers(path)


def test_a_broker_that_is_not_there(tmp_path):
    """Is said with the remedy."""
    with pytest.raises(SandboxUnavailable, match="see that `grader pods` runs"):
        BrokerRunner(tmp_path / "broker.sock", "grader-lab", tmp_path)


def test_a_broker_that_never_answers(tmp_path, monkeypatch):
    """Is given up, in time."""
    monkeypatch.setattr("sandbox.broker.client.CALL_S", 0.3)
    with wire.make_socket() as silent:
        silent.bind(str(tmp_path / "broker.sock"))
        silent.listen()
        with Line(tmp_path / "broker.sock") as line, pytest.raises(SandboxUnavailable, match="timed out"):
            line.call(wire.Look(), wire.Done)
        assert line.lost
