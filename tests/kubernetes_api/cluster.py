"""A cluster of one node for tests: the fake server, a node on the local engine, and a runner on it."""

import secrets
from pathlib import Path

from kubernetes import client

from sandbox.kubernetes.cluster import Cluster
from sandbox.kubernetes.manifests import Site
from sandbox.kubernetes.node import install_profile
from sandbox.kubernetes.runner import KubernetesRunner
from tests.kubernetes_api.kubelet import Kubelet
from tests.kubernetes_api.server import TOKEN, ApiServer

NAMESPACE = "grader-sandbox"
DENY_ALL = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "NetworkPolicy",
    "metadata": {"name": "deny-all", "namespace": NAMESPACE},
    "spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]},
}


def connect(url, token=TOKEN, patience_s=5.0):
    """A connection like that of a runner in a pod."""
    settings = client.Configuration()
    settings.host = url
    settings.api_key = {"authorization": f"Bearer {token}"}
    settings.retries = False
    return Cluster(client.ApiClient(settings), NAMESPACE, patience_s)


class OneNode:
    """A cluster of one node: the server, its node and what a runner needs to know of them."""

    def __init__(self, engine, folder: Path):
        self.server = ApiServer()
        self.server.objects.create("networkpolicies", NAMESPACE, DENY_ALL)
        install_profile(folder)
        self.site = Site(NAMESPACE, f"node-{secrets.token_hex(4)}")
        self.kubelet = self.server.kubelet = Kubelet(self.server.objects, engine, self.site.node, folder)

    def runner(self, image, state_dir, **options):
        """A runner on this node."""
        return KubernetesRunner(image, state_dir, self.site, cluster=connect(self.server.url), **options)

    def close(self):
        """Stops everything."""
        self.server.close()
        self.kubelet.stop()
