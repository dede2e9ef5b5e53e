"""Another grader, as a process of its own that can be killed: opens a run, starts a pod, says so, and waits.

python -m tests.sandbox.owner folder|process|docker|broker|kubernetes STATE_DIR RUN_ID [IMAGE [URL NODE]]
"""

import contextlib
import signal
import subprocess
import sys
from pathlib import Path

from sandbox.api import Ending, PodRole, PodSpec, Scratch, SpaceLimits
from sandbox.broker.client import BrokerRunner
from sandbox.docker.runner import DockerRunner
from sandbox.kubernetes.manifests import Site
from sandbox.kubernetes.runner import KubernetesRunner
from sandbox.process.runner import ProcessRunner
from sandbox.run_folder import RunFolder
from tests.kubernetes_api.cluster import NAMESPACE, connect

ROOT = Path(__file__).parents[2]
LIMITS = SpaceLimits(workspace_mib=64, workspace_inodes=1000, shm_mib=16)
IMPORTS = ("wave", "colorsys")
"""What a pod that waits imports: in no time, with no memory to speak of, and needed by nothing else of ours."""
OTHER_LIMITS = SpaceLimits(workspace_mib=32, workspace_inodes=500, shm_mib=16)


def drill(role=PodRole.LEARNER, **changes):
    """A pod that does what it is told."""
    values = {"program": "drill", "memory_mib": 256, "pids": 64, "cpus": (0, 1), "scratch": Scratch.READ_WRITE}
    return PodSpec(role=role, **{"imports": IMPORTS, **values, **changes})


def ask(pod, **request):
    """One answer of such a pod."""
    assert pod.send(request) is None
    answer = pod.receive(60)
    assert not isinstance(answer, Ending), pod.end()
    return answer


@contextlib.contextmanager
def talking(runner, run_id):
    """A pod of an open run, which has answered once."""
    with runner.open_run(run_id, LIMITS) as space:
        pod = space.start(drill())
        ask(pod, kind="echo", value=1)
        yield pod


def main() -> None:
    """Owns a run until it is killed."""
    kind, state_dir, run_id, *where = sys.argv[1:]
    if kind == "folder":
        folder = RunFolder(Path(state_dir), run_id)
        folder.create()
        print("ready", flush=True)
        signal.pause()
    with _runner(kind, Path(state_dir), *where).open_run(run_id, LIMITS) as space:
        pod = space.start(drill())
        path = f"{space.paths.workspace}/heartbeat"
        pod.send({"kind": "daemon", "path": path})
        pod.receive(60)
        pod.send({"kind": "hang"})  # or it would end when it sees that we are gone
        print("ready", flush=True)
        signal.pause()


def _runner(kind, state_dir, image="", url="", node=""):
    if kind == "docker":
        return DockerRunner(image, state_dir)
    if kind == "broker":
        return BrokerRunner(Path(url), image, state_dir)
    if kind == "kubernetes":
        return KubernetesRunner(image, state_dir, Site(NAMESPACE, node), cluster=connect(url))
    return ProcessRunner(state_dir)


@contextlib.contextmanager
def another_grader(kind, state_dir, run_id, *where):
    """A grader that owns a run; killed with SIGKILL at the end, if it still lives."""
    command = [sys.executable, "-m", "tests.sandbox.owner", kind, str(state_dir), run_id, *where]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


if __name__ == "__main__":
    main()
