"""Runs pods as Docker containers; the policy itself stands in `options`."""

import contextlib
import copy
import secrets
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import docker
from docker.errors import APIError
from docker.models.containers import Container

from grader_service.errors import SandboxUnavailable
from sandbox.api import Pod, PodSpec, SandboxFacts, Scratch, SpaceLimits
from sandbox.docker import options as docker_options
from sandbox.docker.engine import (
    ENGINE_ERRORS,
    UNREACHABLE,
    DockerHandle,
    connect_engine,
    remove_container,
    unavailable,
)
from sandbox.docker.pod_uids import PodUids, TakenUid
from sandbox.endpoint import Endpoint
from sandbox.frames import FrameLimits
from sandbox.gpu_access import GpuAccess, GpuName, GpuRefusal, choose
from sandbox.pod import ConnectedPod
from sandbox.run_folder import dead_runs, is_live, remove_own, remove_tree
from sandbox.run_space import LocalRunSpace

__all__ = ["DockerRunSpace", "DockerRunner", "connect_engine"]

_UNUSABLE = "image {!r} cannot be used"


class _Listening(Protocol):
    def close(self) -> None: ...


_L = TypeVar("_L", bound=_Listening)


class DockerRunner:
    """A runner whose pods are containers of one image.

    Args:
        image: name of the lab image, as `grader images build` tagged it.
        state_dir: folder for run spaces; the engine must see the same folder under the same path.
        gpu: the GPU, or the instance of one, that learner, clean-room and reference pods get; None for a rehearsal.
        lab_data: folder with the JPEGs that the lab hands out, if it has any.
        any_lab: the image stands for that of every lab, so that `of_image` changes nothing.
        runtime: the OCI runtime of every pod, as the engine names it; the engine's default when None.
        uids: where pods' user ids come from.
        shared: another process writes to the folders of runs, as `RunFolder` has it.
    """

    def __init__(
        self,
        image: str,
        state_dir: Path,
        *,
        gpu: GpuName | None = None,
        lab_data: Path | None = None,
        any_lab: bool = False,
        runtime: str | None = None,
        uids: PodUids | None = None,
        shared: bool = False,
        client: docker.DockerClient | None = None,
    ) -> None:
        self._any_lab = any_lab
        self.client = client or connect_engine()
        self.state_dir = state_dir.resolve()
        self.lab_data = lab_data
        try:
            found = self.client.images.get(image)
            info: dict[str, Any] = self.client.info()
        except ENGINE_ERRORS as error:
            raise unavailable(_UNUSABLE.format(image), error) from error
        if not any("seccomp" in str(option) for option in info.get("SecurityOptions") or ()):
            raise SandboxUnavailable(
                "the Docker engine runs without seccomp, which the sandbox relies on; "
                "start an engine and kernel that have it (`docker info` lists it under Security Options)"
            )
        if (problem := docker_options.missing_runtime(info, runtime)) is not None:
            raise SandboxUnavailable(problem)
        self.runtime = runtime
        self.uids = uids or PodUids()
        self.shared = shared
        self.unsure: deque[_KeptUids] = deque()
        self.image_id: str = found.id
        self._image = image
        self.gpu: GpuAccess | None = None
        if gpu is not None:
            access = choose(info, gpu, runtime)
            if isinstance(access, GpuRefusal):
                raise SandboxUnavailable("no GPU can be given to a container: " + "; ".join(access.reasons))
            self.gpu = access
        default = info.get("DefaultRuntime")
        self._runtime_name = (self.gpu.runtime if self.gpu else None) or runtime or (str(default) if default else None)
        self._engine = f"docker {info.get('ServerVersion', 'unknown')}"

    @property
    def facts(self) -> SandboxFacts:
        """See `SandboxRunner.facts`."""
        return SandboxFacts(
            name="docker",
            isolated=True,
            image=self._image,
            image_digest=self.image_id,
            engine=self._engine,
            gpu_access=self.gpu.name if self.gpu else None,
            oci_runtime=self._runtime_name,
        )

    def of_image(self, image: str) -> "DockerRunner":
        """See `SandboxRunner.of_image`."""
        if self._any_lab or image == self._image:
            return self
        other = copy.copy(self)
        try:
            other.image_id = self.client.images.get(image).id
        except ENGINE_ERRORS as error:
            raise unavailable(_UNUSABLE.format(image), error) from error
        other._image = image  # noqa: SLF001 - a copy of this object
        return other

    def look(self) -> None:
        """See `SandboxRunner.look`; the image is the one that was there at the start, whatever its name means now."""
        what = UNREACHABLE
        try:
            self.client.ping()
            what = _UNUSABLE.format(self._image)
            self.client.images.get(self.image_id)
        except ENGINE_ERRORS as error:
            raise unavailable(what, error) from error

    def open_run(self, run_id: str, limits: SpaceLimits) -> "DockerRunSpace":
        """See `SandboxRunner.open_run`."""
        self._free_uids()
        return DockerRunSpace(self, run_id, limits)

    def sweep(self) -> int:
        """See `SandboxRunner.sweep`. Touches only runs of this state folder whose owner is gone."""
        removed = 0
        mine = {"label": f"{docker_options.STATE_LABEL}={self.state_dir}"}
        try:
            # Other runs end while this one looks: what is gone by then is no failure.
            for container in self.client.containers.list(all=True, filters=mine, ignore_removed=True):
                if not is_live(self.state_dir, container.labels.get(docker_options.LABEL, "")):
                    remove_container(container)
                    removed += 1
            for volume in self.client.volumes.list(filters=mine):
                labels = volume.attrs.get("Labels") or {}
                if not is_live(self.state_dir, labels.get(docker_options.LABEL, "")):
                    with contextlib.suppress(APIError):
                        volume.remove(force=True)
                        removed += 1
        except ENGINE_ERRORS as error:
            raise unavailable("leftovers could not be removed", error) from error
        self._free_uids()
        remove = remove_own if self.shared else remove_tree
        return removed + sum(remove(folder) for folder in dead_runs(self.state_dir))

    def _free_uids(self) -> None:
        """Frees the users of ended runs of which the engine now says that no pod is left."""
        for _ in range(len(self.unsure)):
            try:
                kept = self.unsure.popleft()
            except IndexError:  # other threads open runs, too
                return
            try:
                mine = _labelled(docker_options.labels(kept.run_id, self.state_dir))
                left = self.client.containers.list(all=True, filters=mine, sparse=True)
            except ENGINE_ERRORS:
                self.unsure.append(kept)
                return
            if left:
                self.unsure.append(kept)
            else:
                kept.free()


@dataclass(frozen=True)
class _KeptUids:
    """Users of a run that ended, and whose pods may still run."""

    run_id: str
    uids: list[TakenUid]

    def free(self) -> None:
        for taken in self.uids:
            taken.free()


class DockerRunSpace(LocalRunSpace):
    """See `sandbox.api.RunSpace`."""

    paths = docker_options.GUEST_PATHS

    def __init__(self, runner: DockerRunner, run_id: str, limits: SpaceLimits) -> None:
        super().__init__(runner.state_dir, run_id, shared=runner.shared)
        self._runner = runner
        self._client = runner.client
        self._uids: list[TakenUid] = []
        self._labels = docker_options.labels(run_id, runner.state_dir)
        # Run ids may be the runner's choice, and making a volume of a name that is there gives that one, whoever's.
        prefix = f"grader-{run_id}-{secrets.token_hex(8)}"
        self._volumes = docker_options.ScratchVolumes(f"{prefix}-workspace", f"{prefix}-tmp", f"{prefix}-shm")
        self._limits = limits

    def _make(self) -> None:
        sizes = {
            self._volumes.workspace: self._limits.workspace_mib,
            self._volumes.tmp: self._limits.workspace_mib,
            self._volumes.shm: self._limits.shm_mib,
        }
        try:
            self._take_uid()
            for name, size_mib in sizes.items():
                self._client.volumes.create(
                    **docker_options.scratch_volume_options(
                        size_mib,
                        self._limits.workspace_inodes,
                        name,
                        labels=self._labels,
                        uid=self._uids[0].uid,
                    )
                )
        except ENGINE_ERRORS as error:
            raise unavailable("scratch volumes could not be made", error) from error

    def start(self, spec: PodSpec) -> Pod:
        """See `RunSpace.start`."""
        handle, endpoint = self.launch(spec, lambda folder: Endpoint(folder, FrameLimits()))
        pod = ConnectedPod(spec, handle, endpoint)
        self._pods.append(pod)
        return pod

    def launch(self, spec: PodSpec, listening: Callable[[Path], _L]) -> tuple[DockerHandle, _L]:
        """Starts a pod that somebody else talks with: its container, and what listens for its guest. One at a time.

        Args:
            listening: begins to listen in the folder that is the pod's link; closed where the pod does not start.

        Raises:
            SandboxUnavailable: as `start`.
        """
        number, self._started = self._started, self._started + 1
        # Pods that share the learner's files share its user; each of the others has one of its own.
        uid = self._take_uid() if spec.scratch is Scratch.NONE else self._uids[0].uid
        try:
            socket_dir = self._folder.link(f"{spec.role.value}-{number}")
            listener = listening(socket_dir)
        except OSError as error:
            raise SandboxUnavailable(f"the {spec.role.value} pod's socket could not be made: {error}") from error
        options = docker_options.container_options(
            spec,
            run_id=self._run_id,
            number=number,
            labels=self._labels,
            image=self._runner.image_id,
            folders=docker_options.PodFolders(
                code=self._folder.code,
                socket=socket_dir,
                submission=self.submission_dir,
                shards=self.shards_dir,
                lab_data=self._runner.lab_data,
            ),
            volumes=self._volumes,
            gpu=self._runner.gpu if spec.gpu else None,
            uid=uid,
            runtime=self._runner.runtime,
        )
        try:
            # What was made and then not started, or made after our patience ended, goes when the run space does.
            container: Container = self._client.containers.create(**options)
            container.start()
        except ENGINE_ERRORS as error:
            listener.close()
            raise unavailable(f"the {spec.role.value} pod could not be started", error) from error
        return DockerHandle(container), listener

    def _remove(self) -> SandboxUnavailable | None:
        left: SandboxUnavailable | None = None
        try:
            for container in self._client.containers.list(
                all=True, filters=_labelled(self._labels), ignore_removed=True
            ):
                remove_container(container)
        except SandboxUnavailable as error:
            left = error
        except ENGINE_ERRORS as error:
            left = unavailable("a run's containers could not be removed", error)
        for name in (self._volumes.workspace, self._volumes.tmp, self._volumes.shm):
            with contextlib.suppress(*ENGINE_ERRORS):
                self._client.api.remove_volume(name, force=True)
        return left

    def _clear(self) -> SandboxUnavailable | None:
        left = super()._clear()
        kept = _KeptUids(self._run_id, self._uids)
        if left is None or self._started == 0:
            kept.free()
        else:
            self._runner.unsure.append(kept)
        return left

    def _take_uid(self) -> int:
        taken = self._runner.uids.take()
        self._uids.append(taken)
        return taken.uid


def _labelled(labels: Mapping[str, str]) -> dict[str, list[str]]:
    """What the engine lists by, so that only what has all of these labels is found."""
    return {"label": [f"{name}={value}" for name, value in labels.items()]}
