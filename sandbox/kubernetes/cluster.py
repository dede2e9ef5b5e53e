"""The connection to an API server that may be gone, slow or busy; objects come as plain JSON."""

import json
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from kubernetes.config.config_exception import ConfigException
from urllib3.exceptions import HTTPError

from grader_service.errors import SandboxUnavailable
from sandbox.kubernetes import failure as kubernetes_failure

Document = dict[str, Any]
CALL_S = 20.0
"""Longest wait for one answer."""
_PATIENCE_S = 30.0
"""How long a call is tried again while the server says that it is overloaded, or cannot be reached."""
_FIRST_WAIT_S = 0.2
_LONGEST_WAIT_S = 5.0
LOG_BYTES = 256 << 10
_HURRY_S = 5.0
"""Longest wait for what nobody needs as much as the run's going on."""


def connect_cluster() -> client.ApiClient:
    """A client of the cluster in which this process runs, else of the one that its kubeconfig names.

    Raises:
        SandboxUnavailable: there is neither.
    """
    settings = client.Configuration()
    try:
        try:
            config.load_incluster_config(client_configuration=settings)
        except ConfigException:
            config.load_kube_config(client_configuration=settings)
    except (ConfigException, OSError) as error:
        raise SandboxUnavailable(
            f"expected a ServiceAccount's token or a kubeconfig, found neither: {error}; run inside the cluster or set "
            "KUBECONFIG"
        ) from error
    settings.retries = False  # Cluster tries again itself, and knows when that is safe
    return client.ApiClient(settings)


class Cluster:
    """The calls that the sandbox makes, in one namespace.

    Every method raises `SandboxUnavailable` when the server refuses, or does not answer for thirty seconds.
    """

    def __init__(self, api: client.ApiClient, namespace: str, patience_s: float = _PATIENCE_S) -> None:
        self._batch = client.BatchV1Api(api)
        self._core = client.CoreV1Api(api)
        self._network = client.NetworkingV1Api(api)
        self._version = client.VersionApi(api)
        self._namespace = namespace
        self._patience_s = patience_s

    def version(self) -> str:
        """The server's, such as `v1.37.0`."""
        answer = self._call("the API server's version", self._version.get_code)
        return str((answer or {}).get("gitVersion", "unknown"))

    def network_policies(self) -> list[Document]:
        """Those of the namespace."""
        return self._list("network policies", self._network.list_namespaced_network_policy)

    def create_job(self, manifest: Document) -> None:
        """Creates it; the same one that is there already, since an answer was lost, is fine."""
        name = manifest["metadata"]["name"]
        create, read = self._batch.create_namespaced_job, self._batch.read_namespaced_job
        self._call(f"creating Job {name}", partial(create, self._namespace, manifest), fine=(409,))
        found = self._call(f"reading Job {name}", partial(read, name, self._namespace))
        theirs = ((found or {}).get("metadata") or {}).get("labels")
        if theirs != manifest["metadata"]["labels"]:
            raise SandboxUnavailable(f"expected to have made Job {name}, but another run's has that name: {theirs}")

    def jobs(self, selector: str) -> list[Document]:
        """Those with these labels."""
        return self._list("Jobs", self._batch.list_namespaced_job, label_selector=selector)

    def pods(self, selector: str) -> list[Document]:
        """Those with these labels."""
        return self._list("pods", self._core.list_namespaced_pod, label_selector=selector)

    def pod(self, name: str) -> Document | None:
        """One pod; None where there is none."""
        read = self._core.read_namespaced_pod
        return self._call(f"reading pod {name}", partial(read, name, self._namespace), fine=(404,))

    def log_tail(self, name: str, *, hurried: bool = False) -> str:
        """The last lines that a pod wrote, at most `LOG_BYTES` bytes; `hurried` asks once, and for seconds only."""
        read = self._core.read_namespaced_pod_log
        ask = partial(read, name, self._namespace, tail_lines=200, limit_bytes=LOG_BYTES)
        return self._raw(f"the log of pod {name}", ask, fine=(404,), hurried=hurried).decode(errors="replace")

    def delete_job(self, name: str) -> None:
        """Asks for it; its pods are deleted after it."""
        body = client.V1DeleteOptions(propagation_policy="Background")
        delete = partial(self._batch.delete_namespaced_job, name, self._namespace, body=body)
        self._call(f"deleting Job {name}", delete, fine=(404,))

    def delete_pod(self, name: str, grace_s: int) -> None:
        """Asks for it; it is gone when its node has ended it."""
        body = client.V1DeleteOptions(grace_period_seconds=grace_s)
        delete = partial(self._core.delete_namespaced_pod, name, self._namespace, body=body)
        self._call(f"deleting pod {name}", delete, fine=(404, 409))  # 409: it is being deleted already

    def _list(self, what: str, ask: Callable[..., Any], **options: str) -> list[Document]:
        answer = self._call(what, partial(ask, self._namespace, **options))
        return list((answer or {}).get("items") or ())

    def _call(self, what: str, ask: Callable[..., Any], fine: tuple[int, ...] = ()) -> Document | None:
        data = self._raw(what, ask, fine)
        if not data:
            return None
        try:
            answer = json.loads(data)
        except ValueError as error:
            raise SandboxUnavailable(f"{what}: expected JSON of the API server, got {data[:200]!r}") from error
        if not isinstance(answer, dict):
            raise SandboxUnavailable(f"{what}: expected a JSON object of the API server, got {data[:200]!r}")
        return answer

    def _raw(self, what: str, ask: Callable[..., Any], fine: tuple[int, ...] = (), *, hurried: bool = False) -> bytes:
        """The answer's bytes; none where the status is one of `fine`."""
        call_s, patience_s = (_HURRY_S, 0.0) if hurried else (CALL_S, self._patience_s)
        deadline = time.monotonic() + patience_s
        wait = _FIRST_WAIT_S
        while True:
            asked: float | None = None
            try:
                # Plain JSON: models of the client refuse what a newer server adds.
                return bytes(ask(_preload_content=False, _request_timeout=call_s).data)
            except ApiException as error:
                status = int(error.status or 0)
                if status in fine:
                    return b""
                failure = unavailable(what, status, _said(error))
                if not kubernetes_failure.may_pass(status):
                    raise failure from error
                asked = _retry_after(error)
            except (HTTPError, OSError) as error:
                failure = SandboxUnavailable(
                    f"{what}: expected an answer of the API server, got none: {error} "
                    "(it is down, or a network policy keeps the runner from it)"
                )
            if time.monotonic() + (asked or wait) > deadline:
                raise failure
            time.sleep(asked or wait)
            wait = min(2 * wait, _LONGEST_WAIT_S)


def unavailable(what: str, status: int, said: str) -> SandboxUnavailable:
    """The error to raise: what failed, what the server said, and what an operator should do about it."""
    advice = kubernetes_failure.hint(status)
    return SandboxUnavailable(f"{what} failed: HTTP {status}, {said}" + (f" ({advice})" if advice else ""))


def _said(error: ApiException) -> str:
    body = error.body.decode(errors="replace") if isinstance(error.body, bytes) else str(error.body or error.reason)
    try:
        answer = json.loads(body)
    except ValueError:
        return body[:500]
    return str(answer.get("message") or body)[:500] if isinstance(answer, Mapping) else body[:500]


def _retry_after(error: ApiException) -> float | None:
    """Seconds that the server asks to wait, if it does."""
    value = (error.headers or {}).get("Retry-After", "")
    return min(float(value), _LONGEST_WAIT_S) if value.isdigit() and int(value) else None
