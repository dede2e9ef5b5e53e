"""The Kubernetes runner on a cluster of one node: what it leaves behind, and what a cluster may do to it.

The API server is a fake, its pods are real containers.
"""

import contextlib
import copy
import os
import threading
import time
from pathlib import Path

import pytest

from grader_service.errors import ConfigurationError, SandboxUnavailable
from grader_service.host.sandboxes import open_runner
from grader_service.settings import Settings
from sandbox.api import Ending, PodRole, Scratch
from sandbox.kubernetes import cluster as kubernetes_cluster
from sandbox.kubernetes import job as kubernetes_job
from sandbox.kubernetes.manifests import Site
from sandbox.kubernetes.runner import KubernetesRunner, KubernetesRunSpace
from tests.kubernetes_api.cluster import DENY_ALL, NAMESPACE, connect
from tests.sandbox.docker.test_runner import gives_labs_their_images
from tests.sandbox.owner import LIMITS, another_grader, ask, drill, talking
from tests.sandbox.prepared_runs import FULL_S, pooled
from tests.sandbox.test_conformance import behaviours
from tests.waiting import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.slow]
RUN = "test-run"


@pytest.fixture
def cluster(kubernetes_cluster):
    """A cluster of one node."""
    return kubernetes_cluster


@pytest.fixture
def runner(kubernetes_runner):
    """A runner on it, as patient as users' runners are with a node: a busy one takes seconds for a container."""
    return kubernetes_runner


def pods(cluster):
    return cluster.server.objects.find("pods")


def nothing_left(cluster, state_dir, engine):
    mounted = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(state_dir) in line]
    containers = engine.containers.list(all=True, filters={"label": f"org.grader.test-node={cluster.site.node}"})
    return (pods(cluster), cluster.server.objects.find("jobs"), mounted, containers) == ([], [], [], [])


class TestRun:
    """A run on a good day."""

    def test_facts(self, runner):
        """A verdict names the sandbox, its server's version and the image by its digest."""
        facts = runner.facts
        assert (facts.name, facts.isolated, facts.image, facts.gpu_access) == ("kubernetes", True, "grader-lab", None)
        assert facts.engine == "kubernetes v1.37.0-fake"
        assert "@sha256:" in facts.image_digest

    def test_nothing_is_left(self, runner, cluster, state_dir, engine):
        """No Job, pod, container, mount or folder, though an error ends the run; it is the one that is raised."""
        with pytest.raises(RuntimeError, match="ours"), runner.open_run(RUN, LIMITS) as space:
            ask(space.start(drill()), kind="echo", value=1)
            ask(space.start(drill(PodRole.SCANNER, scratch=Scratch.READ_ONLY)), kind="echo", value=1)
            assert len(pods(cluster)) == 2
            raise RuntimeError("ours")
        assert nothing_left(cluster, state_dir, engine)

    def test_what_a_pod_finds(self, runner):
        """No token of the cluster's, no service's address, no core, and a number of processes."""
        with runner.open_run(RUN, LIMITS) as space:
            pod = space.start(drill(pids=40))
            names = ask(pod, kind="facts").body["environment"]
            assert not [name for name in names if "KUBERNETES" in name or "SERVICE" in name]
            path = "/var/run/secrets/kubernetes.io/serviceaccount/token"
            assert ask(pod, kind="size", path=path).body["value"] == -1
            assert ask(pod, kind="fork_many", most=200).body["made"] < 40

    def test_the_image_cannot_be_written_to(self, runner):
        """Not even where everybody may: a writable layer lies on the node's disk, without a cap."""
        with runner.open_run(RUN, LIMITS) as space:
            pod = space.start(drill())
            assert ask(pod, kind="write", path="/var/tmp/new", size=1).body["error"] == "Read-only file system"

    def test_two_runs_do_not_share_scratch(self, runner):
        """Each has mounts of its own."""
        with runner.open_run("one", LIMITS) as one, runner.open_run("two", LIMITS) as two:
            first, second = one.start(drill()), two.start(drill())
            ask(first, kind="write", path="/workspace/mark", size=1)
            assert ask(second, kind="size", path="/workspace/mark").body["value"] == -1

    def test_inodes_are_capped(self, runner, state_dir):
        """A million empty files do not fit."""
        with runner.open_run(RUN, LIMITS) as space:
            space.start(drill())
            assert os.statvfs(state_dir / "runs" / RUN / "scratch" / "workspace").f_files == LIMITS.workspace_inodes

    @behaviours("scratch_outlives_the_pod_that_wrote_it", "a_paused_pod_stands_still")
    def test_runs_prepared_ahead(self, runner, behaviour):
        """A warm pool works on this runner as on any other."""
        with pooled(runner) as (warm, pool):
            for _ in range(2):
                behaviour.check(warm)
                assert pool.waits(FULL_S)
        assert runner.sweep() == 0


class TestStart:
    """A runner that cannot work says so when it starts, and a pod that cannot start says why."""

    @pytest.mark.parametrize(
        "change",
        [
            None,
            {"policyTypes": ["Ingress"]},
            {"egress": [{}]},
            {"ingress": [{}]},
            {"podSelector": {"matchLabels": {"app": "other"}}},
        ],
    )
    def test_no_policy_or_one_with_a_hole(self, cluster, lab_image, state_dir, change):
        """Without one that denies everything, pods would have a network."""
        cluster.server.objects._kinds["networkpolicies"].clear()
        if change is not None:
            policy = {**DENY_ALL, "spec": {**DENY_ALL["spec"], **change}}
            cluster.server.objects.create("networkpolicies", NAMESPACE, policy)
        with pytest.raises(SandboxUnavailable, match="expected a NetworkPolicy that denies every pod"):
            cluster.runner(lab_image, state_dir)

    def test_no_image(self, cluster, state_dir, engine):
        """The image and what to do are named, at once and not after the patience."""
        with pytest.raises(SandboxUnavailable, match=r"ErrImagePull.*no-such-image.*push it"):
            cluster.runner("no-such-image", state_dir)
        assert nothing_left(cluster, state_dir, engine)

    def test_another_labs_image(self, runner, cluster, engine, lab_image, state_dir):
        """As with Docker: see `gives_labs_their_images`."""
        fixed = cluster.runner(lab_image, state_dir, any_lab=True)
        gives_labs_their_images(runner, fixed, engine, "grader-test-kubernetes", "no-such-image")

    def test_an_image_that_was_moved(self, runner):
        """A pod of other bytes than the facts name is not used."""
        runner.image_id = "docker-pullable://other@sha256:0"
        with pytest.raises(SandboxUnavailable, match="its tag was moved"), runner.open_run(RUN, LIMITS) as space:
            space.start(drill())

    def test_no_profile_on_the_node(self, cluster, lab_image, state_dir, tmp_path):
        """A pod without its seccomp profile does not start."""
        for path in (tmp_path / "seccomp").rglob("*.json"):
            path.unlink()
        with pytest.raises(SandboxUnavailable, match=r"CreateContainerError.*seccomp profile"):
            cluster.runner(lab_image, state_dir)

    def test_a_node_that_does_nothing(self, runner, cluster, state_dir, engine, monkeypatch):
        """Pending for ever is not waited for, and the kubelet is named."""
        monkeypatch.setattr(kubernetes_job, "START_S", 3.0)
        cluster.kubelet.deaf = True
        with (
            pytest.raises(SandboxUnavailable, match=r"within 3 s.*is the kubelet of its node alive"),
            runner.open_run(RUN, LIMITS) as space,
        ):
            try:
                space.start(drill())
            finally:
                cluster.kubelet.deaf = False
        assert nothing_left(cluster, state_dir, engine)

    def test_a_quota(self, runner, cluster, monkeypatch):
        """A Job that makes no pod is told from a pod that does not start."""
        monkeypatch.setattr(kubernetes_job, "START_S", 3.0)
        cluster.server.objects.quota_refuses = True
        with (
            pytest.raises(SandboxUnavailable, match="its Job made no pod: a quota"),
            runner.open_run(RUN, LIMITS) as space,
        ):
            space.start(drill())

    def test_a_pod_that_ends_before_it_could_be_used(self, runner):
        """Our own code failed, not a learner's."""
        with pytest.raises(SandboxUnavailable), runner.open_run(RUN, LIMITS) as space:
            space.start(drill(program="no_such_program")).receive(30)

    def test_no_control_groups(self, cluster, lab_image, state_dir, tmp_path):
        """A runner that cannot set the limits of a pod does not use it."""
        blind = cluster.runner(lab_image, state_dir, cgroup_root=tmp_path)
        with pytest.raises(SandboxUnavailable, match="control group"), blind.open_run(RUN, LIMITS) as space:
            space.start(drill())


class TestBadDays:
    """An API server or a node that fails: always `SandboxUnavailable`, and never a learner's failure."""

    @pytest.mark.parametrize("action", [401, 403, 409, 410, 429, 500, 503, "drop", "garbage"])
    @pytest.mark.parametrize("call", ["POST .*/jobs", "GET .*/pods"])
    def test_a_call_fails_at_the_start(self, runner, cluster, state_dir, engine, call, action):
        """Nothing is left when the server has recovered and the run is over."""
        runner.cluster._patience_s = 2.0  # it says no again and again: as good as thirty
        with pytest.raises(SandboxUnavailable), runner.open_run(RUN, LIMITS) as space:
            cluster.server.fail(call, action)
            try:
                space.start(drill())
            finally:
                cluster.server.heal()
        assert nothing_left(cluster, state_dir, engine)

    @pytest.mark.parametrize("action", [429, 500, 503, "drop", "lose"])
    @pytest.mark.parametrize("call", ["POST .*/jobs", "GET .*/pods", "DELETE .*/jobs", "DELETE .*/pods"])
    def test_a_call_that_fails_once(self, runner, cluster, state_dir, engine, call, action):
        """Is made again, also where it was carried out and the answer was lost: nobody notices."""
        cluster.server.fail(call, action, times=1)
        with runner.open_run(RUN, LIMITS) as space:
            pod = space.start(drill())
            assert ask(pod, kind="echo", value=3).body["value"] == 3
            assert pod.end().ending is Ending.COMPLETED
        assert nothing_left(cluster, state_dir, engine)

    def test_a_server_that_hangs(self, runner, cluster, monkeypatch):
        """Is waited for, but not for ever."""
        monkeypatch.setattr("sandbox.kubernetes.cluster.CALL_S", 0.5)
        cluster.server.fail("GET .*/jobs", "hang")
        started = time.monotonic()
        with pytest.raises(SandboxUnavailable, match="expected an answer of the API server, got none"):
            runner.sweep()
        assert time.monotonic() - started < 30

    def test_a_log_that_does_not_come(self, runner, cluster, monkeypatch):
        """Is asked for once, and not waited for: the run goes on."""
        monkeypatch.setattr(kubernetes_cluster, "_HURRY_S", 0.5)
        with talking(runner, RUN) as pod:
            faults = [
                cluster.server.fail("GET .*/log", 503, times=1),
                cluster.server.fail("GET .*/log", "hang", times=1),
            ]
            started = time.monotonic()
            assert pod.output() == pod.output() == ""
            assert time.monotonic() - started < 10
            assert [fault.met for fault in faults] == [1, 1]
            assert ask(pod, kind="echo", value=2).body["value"] == 2

    def test_nobody_listens(self, cluster, lab_image, state_dir):
        """A wrong address or a policy in between."""
        nowhere = connect("http://127.0.0.1:9", patience_s=0.5)
        with pytest.raises(SandboxUnavailable, match="expected an answer of the API server, got none"):
            KubernetesRunner(lab_image, state_dir, cluster.site, cluster=nowhere)

    def test_a_wrong_token(self, cluster, lab_image, state_dir):
        """Is not tried again, and says what to do."""
        stranger = connect(cluster.server.url, token="wrong", patience_s=60.0)  # noqa: S106
        with pytest.raises(SandboxUnavailable, match=r"HTTP 401.*ServiceAccount"):
            KubernetesRunner(lab_image, state_dir, cluster.site, cluster=stranger)

    @pytest.mark.parametrize(
        ("reason", "message"),
        [("Evicted", "The node was low on resource: memory"), ("NodeLost", "the node is gone"), ("Shutdown", "bye")],
    )
    def test_a_pod_that_the_cluster_ends(self, runner, cluster, reason, message):
        """Looks to the learner's guest like an end of its own, and is none."""
        away = f"took pod .* away: {reason}: {message}"
        with pytest.raises(SandboxUnavailable, match=away), talking(runner, RUN) as pod:
            cluster.kubelet.evict(pods(cluster)[0], reason, message)
            pod.receive(20)

    def test_a_pod_that_somebody_deletes(self, runner, cluster):
        """So does `kubectl delete pod`."""
        with pytest.raises(SandboxUnavailable, match="somebody else"), talking(runner, RUN) as pod:
            cluster.server.objects.delete("pods", NAMESPACE, pods(cluster)[0]["metadata"]["name"], {})
            pod.receive(20)

    def test_a_node_that_is_lost_at_the_end(self, runner, cluster, state_dir, engine, monkeypatch):
        """A pod that may still run is said, and so it is by every sweep until its node is back."""
        monkeypatch.setattr(kubernetes_job, "_GONE_S", 3.0)
        monkeypatch.setattr(kubernetes_job, "_REPORT_S", 3.0)
        with (
            pytest.raises(SandboxUnavailable, match="still there after 3 s: its node does not answer"),
            talking(runner, RUN),
        ):
            cluster.kubelet.deaf = True
        with pytest.raises(SandboxUnavailable, match="its node does not answer"):
            runner.sweep()
        cluster.kubelet.deaf = False
        wait_for(lambda: not pods(cluster), 5.0, 0.02)
        assert runner.sweep() == 0
        assert nothing_left(cluster, state_dir, engine)

    def test_a_deadline_holds_without_a_server(self, runner, cluster):
        """The pod's processes are killed while the runner still asks a server that does not answer."""
        runner.cluster._patience_s = 60.0
        with runner.open_run(RUN, LIMITS) as space:
            pod = space.start(drill())
            ask(pod, kind="daemon", path="/workspace/beat")
            pod.send({"kind": "hang"})
            assert not pod._handle._cgroup.empty()
            cluster.server.fail(".", 503)

            def meet_the_deadline():
                with contextlib.suppress(SandboxUnavailable):
                    pod.receive(0.2)

            thread = threading.Thread(target=meet_the_deadline)
            thread.start()
            wait_for(pod._handle._cgroup.empty, 5.0, 0.02)
            assert thread.is_alive()
            cluster.server.heal()
            thread.join()


class TestSweep:
    """What a killed grader left goes, what lives stays."""

    def test_a_killed_grader(self, runner, cluster, state_dir, engine, lab_image):
        """While it lives nothing of its run is touched; afterwards all of it goes."""
        where = (lab_image, cluster.server.url, cluster.site.node)
        with another_grader("kubernetes", state_dir, RUN, *where) as owner:
            assert runner.sweep() == 0
            assert len(pods(cluster)) == 1
            owner.kill()
            owner.wait()
        assert runner.sweep() == 2
        assert nothing_left(cluster, state_dir, engine)
        assert not (state_dir / "runs" / RUN).exists()

    def test_other_nodes_are_left_alone(self, runner, cluster, lab_image, state_dir):
        """A run of another node, whose folder and locks nobody sees here."""
        other = Site(NAMESPACE, "another-node")
        cluster.server.objects.create("jobs", NAMESPACE, _job_of(runner, other))
        assert runner.sweep() == 0
        assert len(cluster.server.objects.find("jobs")) == 1


def _job_of(runner, site):
    """A Job as a runner of this site makes it."""
    elsewhere = copy.copy(runner)
    elsewhere.site = site
    with KubernetesRunSpace(elsewhere, "elsewhere", LIMITS) as space:
        return space.manifest(drill(), space.folders_of("x"), 0)


class TestSettings:
    """`GRADER_SANDBOX=kubernetes`."""

    def test_the_node_must_be_named(self, tmp_path):
        """A runner shares folders with its pods."""
        with pytest.raises(ConfigurationError, match="needs GRADER_NODE_NAME"):
            open_runner("kubernetes", "lab", Settings(state_dir=tmp_path), None)

    def test_outside_a_cluster(self, tmp_path, monkeypatch):
        """Without a kubeconfig nothing can be reached, and it is said."""
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
        monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "none"))
        with pytest.raises(SandboxUnavailable, match="expected a ServiceAccount's token or a kubeconfig"):
            open_runner("kubernetes", "lab", Settings(state_dir=tmp_path, node_name="node"), None)


class TestFakeServer:
    """The fake is as strict as what it stands for."""

    def test_what_the_node_does_not_understand(self, runner, cluster):
        """A part of the policy that it cannot follow stops the pod."""
        job = _job_of(runner, cluster.site)
        job["spec"]["template"]["spec"]["hostAliases"] = []
        cluster.server.objects.create("jobs", NAMESPACE, job)
        wait_for(lambda: any(pod["status"]["containerStatuses"] for pod in pods(cluster)), 5.0, 0.02)
        assert "hostAliases" in str(pods(cluster)[0]["status"])

    def test_a_deletion_without_grace(self, runner, cluster):
        """Forgets a pod before its node has ended it, as a real server does: no runner may ask for it."""
        with talking(runner, RUN) as pod:
            name = pods(cluster)[0]["metadata"]["name"]
            cluster.server.objects.delete("pods", NAMESPACE, name, {"gracePeriodSeconds": 0})
            assert pods(cluster) == []
            assert ask(pod, kind="echo", value=2).body["value"] == 2

    def test_what_the_role_does_not_allow(self, cluster):
        """Only what the runner's Role lists is answered."""
        from kubernetes import client

        core = connect(cluster.server.url)._core
        with pytest.raises(client.ApiException) as caught:
            core.create_namespaced_pod(NAMESPACE, {})
        assert caught.value.status == 403
