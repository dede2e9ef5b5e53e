"""The manifests below `deploy/kubernetes`, and questions about them."""

from pathlib import Path

import yaml

from grader_service.signer.key_folder import KEY_FILE
from grader_service.store.rights import RIGHTS

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy" / "kubernetes"
CORE = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())["resources"]
KEDA = yaml.safe_load((FOLDER / "keda" / "kustomization.yaml").read_text())["resources"]
FILES = [FOLDER / name for name in CORE] + [FOLDER / "keda" / name for name in KEDA]
DOCUMENTS = [(path, one) for path in FILES for one in yaml.safe_load_all(path.read_text())]
OBJECTS = [document for _, document in DOCUMENTS]
KEYS = "grader-signing-key"
SECRETS = {
    "grader-postgres": {"password"},
    **{f"grader-postgres-{role}": {"password"} for role in RIGHTS},
    "grader-redis": {"password"},
    "grader-redis-admin": {"password"},
    "grader-redis-judge": {"password"},
    "grader-redis-runner": {"password"},
    "grader-web": {"viewer", "operator"},
    "grader-artifacts": {"access-key-id", "secret-access-key"},
    KEYS: {KEY_FILE},
}
"""Made by hand, as docs/scaling.md tells; each with its keys."""


def of_kind(kind):
    """All objects of a kind."""
    return [one for one in OBJECTS if one["kind"] == kind]


def the(kind, name):
    """The one object of this kind and name."""
    (found,) = [one for one in of_kind(kind) if one["metadata"]["name"] == name]
    return found


def names(kind, namespace=None):
    """Names of the objects of a kind in this namespace."""
    return {one["metadata"]["name"] for one in of_kind(kind) if one["metadata"].get("namespace") == namespace}


def workloads():
    """Every object that makes pods, its namespace and its pod template."""
    for one in OBJECTS:
        template = one.get("spec", {}).get("template")
        if template is not None:
            yield one, one["metadata"]["namespace"], template


def containers():
    for one, namespace, template in workloads():
        for container in (*template["spec"].get("initContainers", ()), *template["spec"]["containers"]):
            yield one, namespace, template["spec"], container


def labelled(namespace, labels):
    return [
        one["metadata"]["name"]
        for one, where, template in workloads()
        if where == namespace and labels.items() <= template["metadata"]["labels"].items()
    ]


def selects(namespace, selector):
    """Names of the workloads that a label selector finds."""
    found = set(labelled(namespace, selector.get("matchLabels", {})))
    for term in selector.get("matchExpressions", ()):
        assert term["operator"] == "In"
        found &= {name for value in term["values"] for name in labelled(namespace, {term["key"]: value})}
    return found


def environment(namespace, container):
    """Variables as the container sees them; None for those that the cluster fills in."""
    found = {}
    for source in container.get("envFrom", ()):
        name = source["configMapRef"]["name"]
        where = {"name": name, "namespace": namespace}
        found |= next(one["data"] for one in of_kind("ConfigMap") if one["metadata"] == where)
    return found | {one["name"]: one.get("value") for one in container.get("env", ())}


def reaching(name):
    """Workloads that the policies let through to the pods of this one, and labels of namespaces that they let through.

    Both ends must allow it: the policy of the pods that are reached, and one of those that reach out.
    """
    policies = {one["metadata"]["name"]: one["spec"] for one in of_kind("NetworkPolicy")}
    (rule,) = policies[name]["ingress"]
    let_in, strangers = set(), []
    for peer in rule["from"]:
        labels = peer["namespaceSelector"]["matchLabels"] if "namespaceSelector" in peer else None
        namespace = "grader" if labels is None else labels.get("kubernetes.io/metadata.name")
        let_in |= {(namespace, found) for found in selects(namespace, peer.get("podSelector", {}))}
        strangers += [labels] if namespace not in names("Namespace") else []
    let_out = set()
    for policy in of_kind("NetworkPolicy"):
        namespace = policy["metadata"]["namespace"]
        for way in policy["spec"].get("egress", ()):
            ends = [peer["podSelector"] for peer in way.get("to", ()) if "podSelector" in peer]
            if any(name in selects("grader", end) for end in ends):
                let_out |= {(namespace, found) for found in selects(namespace, policy["spec"]["podSelector"])}
    return let_in & let_out, strangers
