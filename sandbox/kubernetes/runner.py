"""Runs pods as Kubernetes Jobs on the node of their runner; the policy itself stands in `manifests`."""

import copy
import secrets
from pathlib import Path

from grader_service.errors import SandboxUnavailable
from grader_service.model.evidence import PodRole
from sandbox.api import Pod, PodSpec, SandboxFacts, SpaceLimits
from sandbox.docker.options import GUEST_PATHS, STATE_LABEL, PodFolders
from sandbox.endpoint import Endpoint
from sandbox.frames import FrameLimits
from sandbox.kubernetes import manifests
from sandbox.kubernetes.cluster import Cluster, connect_cluster
from sandbox.kubernetes.failure import container_state, container_status
from sandbox.kubernetes.job import JobHandle, container_id, remove_job, wait_for_start
from sandbox.kubernetes.pod_cgroup import CGROUP_ROOT, PodCgroup
from sandbox.kubernetes.scratch_mounts import mount_scratch, unmount_below
from sandbox.pod import ConnectedPod
from sandbox.run_folder import dead_runs, is_live, remove_tree
from sandbox.run_space import LocalRunSpace

_POD_LIMIT_S = 8 * 3600
"""The cluster ends a pod after this time, also where its runner is gone for good."""
_LOOK_MIB = 64


class KubernetesRunner:
    """A runner whose pods are Jobs on the node on which it runs itself.

    Args:
        image: of the lab, as the nodes pull it.
        state_dir: folder for run spaces; a folder of the node, mounted at the same path.
        gpu: UUID of the GPU that the runner holds; None for a rehearsal.
        lab_data: folder of the node with the JPEGs that the lab hands out.
        any_lab: the image stands for that of every lab, so that `of_image` changes nothing.

    Raises:
        SandboxUnavailable: no cluster answers, nothing denies the namespace its network, or the image cannot run.
    """

    def __init__(
        self,
        image: str,
        state_dir: Path,
        site: manifests.Site,
        *,
        gpu: str | None = None,
        lab_data: Path | None = None,
        any_lab: bool = False,
        cluster: Cluster | None = None,
        cgroup_root: Path = CGROUP_ROOT,
    ) -> None:
        self._any_lab = any_lab
        self.gpu = manifests.kubernetes_gpu(gpu, site.runtime_class) if gpu is not None else None
        self.cluster = cluster or Cluster(connect_cluster(), site.namespace)
        self.site = site
        self.state_dir = state_dir.resolve()
        self.lab_data = lab_data
        self.cgroup_root = cgroup_root
        self._engine = f"kubernetes {self.cluster.version()}"
        if not any(denies_all(policy) for policy in self.cluster.network_policies()):
            raise SandboxUnavailable(
                f"expected a NetworkPolicy that denies every pod of namespace {site.namespace} all traffic, found "
                "none; apply deploy/kubernetes, and use a network plugin that enforces policies"
            )
        self.image = image
        self.image_id: str | None = None
        self._look_at_image()

    @property
    def facts(self) -> SandboxFacts:
        """See `SandboxRunner.facts`."""
        return SandboxFacts(
            name="kubernetes",
            isolated=True,
            image=self.image,
            image_digest=self.image_id,
            engine=self._engine,
            gpu_access=self.gpu.name if self.gpu else None,
            oci_runtime=(self.gpu.runtime if self.gpu else None) or self.site.runtime_class,
        )

    def of_image(self, image: str) -> "KubernetesRunner":
        """See `SandboxRunner.of_image`."""
        if self._any_lab or image == self.image:
            return self
        other = copy.copy(self)
        other.image, other.image_id = image, None
        other._look_at_image()  # noqa: SLF001 - a copy of this object
        return other

    def look(self) -> None:
        """See `SandboxRunner.look`; only a pod can show that the node has the image, so that is not asked again."""
        self.cluster.version()

    def open_run(self, run_id: str, limits: SpaceLimits) -> "KubernetesRunSpace":
        """See `SandboxRunner.open_run`."""
        return KubernetesRunSpace(self, run_id, limits)

    def sweep(self) -> int:
        """See `SandboxRunner.sweep`. Touches only runs of this node's state folder whose owner is gone."""
        removed = 0
        mine = f"{STATE_LABEL}={manifests.state_label(self.site.node, self.state_dir)}"
        for name, run_id in _left(self.cluster, mine).items():
            if not is_live(self.state_dir, run_id):
                remove_job(self.cluster, name)
                removed += 1
        for folder in dead_runs(self.state_dir):
            unmount_below(folder)
            removed += remove_tree(folder)
        return removed

    def _look_at_image(self) -> None:
        """Learns its digest as the node has it: a pod of it is run, so that a missing one is told at the start."""
        run_id = f"look-{secrets.token_hex(8)}"
        with KubernetesRunSpace(self, run_id, SpaceLimits(1, 100, 1)) as space:
            spec = PodSpec(PodRole.SCANNER, "none", _LOOK_MIB, pids=16, cpus=())
            manifest = space.manifest(spec, space.folders_of("look"), 0)
            manifest["spec"]["template"]["spec"]["containers"][0]["command"] = ["/bin/true"]
            self.cluster.create_job(manifest)
            pod = wait_for_start(self.cluster, manifest["metadata"]["name"])
            self.image_id = str(container_status(pod).get("imageID") or "unknown")


class KubernetesRunSpace(LocalRunSpace):
    """See `sandbox.api.RunSpace`."""

    paths = GUEST_PATHS

    def __init__(self, runner: KubernetesRunner, run_id: str, limits: SpaceLimits) -> None:
        super().__init__(runner.state_dir, run_id)
        self._runner = runner
        self._limits = limits
        scratch = self._folder.root / "scratch"
        self._scratch = manifests.ScratchFolders(
            scratch / "workspace", scratch / "tmp", scratch / "shm", max(limits.workspace_mib, limits.shm_mib)
        )
        self._labels = manifests.run_labels(run_id, runner.site.node, runner.state_dir)

    def _make(self) -> None:
        sizes = {
            self._scratch.workspace: self._limits.workspace_mib,
            self._scratch.tmp: self._limits.workspace_mib,
            self._scratch.shm: self._limits.shm_mib,
        }
        for folder, size_mib in sizes.items():
            mount_scratch(folder, size_mib, self._limits.workspace_inodes)

    def start(self, spec: PodSpec) -> Pod:
        """See `RunSpace.start`. Waits until the pod's process runs, since its limits are written to its control group.

        The guest cannot run a line of the learner's before that: it waits for our first message.
        """
        number, self._started = self._started, self._started + 1
        try:
            folders = self.folders_of(f"{spec.role.value}-{number}")
            endpoint = Endpoint(folders.socket, FrameLimits())
        except OSError as error:
            raise SandboxUnavailable(f"the {spec.role.value} pod's socket could not be made: {error}") from error
        cluster = self._runner.cluster
        manifest = self.manifest(spec, folders, number)
        name = manifest["metadata"]["name"]
        try:
            cluster.create_job(manifest)
            found = wait_for_start(cluster, name)
            self._check(found)
            cgroup = PodCgroup(container_id(found), self._runner.cgroup_root)
            cgroup.limit(spec.pids, spec.cpus)
        except BaseException:
            endpoint.close()
            raise  # what was made goes when the run space does
        pod = ConnectedPod(spec, JobHandle(cluster, name, found["metadata"]["name"], cgroup), endpoint)
        self._pods.append(pod)
        return pod

    def folders_of(self, link: str) -> PodFolders:
        """Host folders of one pod, with a fresh one for its socket."""
        return PodFolders(
            code=self._folder.code,
            socket=self._folder.link(link),
            submission=self.submission_dir,
            shards=self.shards_dir,
            lab_data=self._runner.lab_data,
        )

    def manifest(self, spec: PodSpec, folders: PodFolders, number: int) -> manifests.Document:
        """The Job of one pod of this run."""
        return manifests.job_manifest(
            spec,
            site=self._runner.site,
            name=manifests.job_name(self._run_id, number, spec.role.value),
            labels=self._labels,
            annotations={manifests.RUN_ANNOTATION: self._run_id},
            image=self._runner.image,
            folders=folders,
            scratch=self._scratch,
            gpu=self._runner.gpu if spec.gpu else None,
            deadline_s=_POD_LIMIT_S,
        )

    def _check(self, pod: manifests.Document) -> None:
        """A pod runs, and its image is the one that the runner's facts name."""
        if container_state(pod, "running") is None:
            ended = container_state(pod, "terminated")
            raise SandboxUnavailable(f"pod {pod['metadata']['name']} ended before it could be used: {ended}")
        found = container_status(pod).get("imageID")
        if found != self._runner.image_id:
            raise SandboxUnavailable(
                f"expected image {self._runner.image} to be {self._runner.image_id}, the node started {found}; its tag "
                "was moved: restart the worker, or name the image by its digest"
            )

    def _remove(self) -> SandboxUnavailable | None:
        left: SandboxUnavailable | None = None
        try:
            mine = ",".join(f"{key}={value}" for key, value in self._labels.items())
            for name in _left(self._runner.cluster, mine):
                remove_job(self._runner.cluster, name)
        except SandboxUnavailable as error:
            left = error
        unmount_below(self._folder.root)
        return left


def _left(cluster: Cluster, selector: str) -> dict[str, str]:
    """Names of the Jobs with these labels, each with its run's id; also of those that are gone and left a pod."""
    found = {}
    for one in (*cluster.jobs(selector), *cluster.pods(selector)):
        run_id = (one["metadata"].get("annotations") or {}).get(manifests.RUN_ANNOTATION, "")
        found[str(one["metadata"]["labels"][manifests.POD_LABEL])] = str(run_id)
    return found


def denies_all(policy: manifests.Document) -> bool:
    """Whether a NetworkPolicy selects every pod of its namespace and lets nothing in or out."""
    spec = policy.get("spec") or {}
    return (
        not spec.get("podSelector")
        and {"Ingress", "Egress"} <= set(spec.get("policyTypes") or ())
        and not spec.get("ingress")
        and not spec.get("egress")
    )
