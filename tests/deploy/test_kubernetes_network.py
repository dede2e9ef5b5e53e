"""Who reaches whom in the cluster: services and their pods, network policies, and the users of Redis."""

import json
import re

import yaml

from sandbox.kubernetes.runner import denies_all
from tests.deploy.manifests import (
    FILES,
    FOLDER,
    OBJECTS,
    containers,
    environment,
    labelled,
    names,
    of_kind,
    reaching,
    selects,
    the,
    workloads,
)


def test_services_find_their_pods():
    """A selector that matches nothing, or a port that no container names, is a service that answers nobody."""
    for one in of_kind("Service"):
        (name,) = labelled(one["metadata"]["namespace"], one["spec"]["selector"])
        ports = {
            port["name"]: port["containerPort"]
            for owner, _, _, container in containers()
            if owner["metadata"]["name"] == name
            for port in container.get("ports", ())
        }
        for port in one["spec"]["ports"]:
            assert ports[port["targetPort"]] == port["port"]
        assert name == one["metadata"]["name"]


def test_addresses_name_services():
    """Database, broker, the Redis of the answers and KEDA's triggers go to services that exist."""
    text = "\n".join(path.read_text() for path in FILES)
    for name, namespace in re.findall(r"\b([a-z]+)\.(grader[a-z-]*)\.svc\b", text):
        assert name in names("Service", namespace)


def test_selectors_find_their_pods():
    """Those of controllers, disruption budgets and policies."""
    for one in OBJECTS:
        namespace = one["metadata"].get("namespace")
        if one["kind"] in {"Deployment", "StatefulSet", "PodDisruptionBudget"}:
            assert selects(namespace, one["spec"]["selector"]) == {one["metadata"]["name"]}
        if one["kind"] == "NetworkPolicy" and one["metadata"]["name"] != "deny-all":
            assert selects(namespace, one["spec"]["podSelector"])


def test_all_is_denied_first():
    """In each namespace; in that of learners' pods there is no other policy."""
    for namespace in names("Namespace"):
        policies = [one for one in of_kind("NetworkPolicy") if one["metadata"]["namespace"] == namespace]
        assert any(denies_all(policy) for policy in policies)
        assert namespace != "grader-sandbox" or len(policies) == 1


def test_who_reaches_which_redis():
    """Runners hear of runs; only judges, and platforms, reach where answers lie."""
    platforms = [{"grader/platform": "true"}]
    assert reaching("redis") == ({("grader", "judge"), ("grader-runners", "runner")}, platforms)
    assert reaching("results") == ({("grader", "judge")}, platforms)
    (judge,) = the("Deployment", "judge")["spec"]["template"]["spec"]["containers"]
    values = environment("grader", judge)
    assert [values[f"GRADER_{name}_URL"] for name in ("REDIS", "RESULT")] == [
        f"redis://judge@{name}.grader.svc:6379/0" for name in ("redis", "results")
    ]


def test_both_instances_of_redis_are_alike_and_apart():
    """The same but for name and users, each with its own volume and limit of memory, below what the pod may have."""
    broker, results = (json.dumps(the("StatefulSet", name)) for name in ("redis", "results"))
    renamed = broker.replace('redis-start.sh", "broker"', 'redis-start.sh", "results"')
    for old in ('"name": "redis"', '"app": "redis"', '"serviceName": "redis"'):
        renamed = renamed.replace(old, old.replace('"redis"', '"results"'))
    runner = {"name": "grader-redis-runner", "items": [{"key": "password", "path": "redis_runner_password"}]}
    renamed = renamed.replace(f", {json.dumps({'secret': runner})}", "")
    # The port's name is not the instance's.
    assert renamed.replace('"name": "results", "containerPort"', '"name": "redis", "containerPort"') == results
    for name in ("redis", "results"):
        one = the("StatefulSet", name)
        (container,) = one["spec"]["template"]["spec"]["containers"]
        (limit,) = re.findall(r"([0-9]+)mb", environment("grader", container)["MAXMEMORY"])
        assert int(limit) < int(container["resources"]["limits"]["memory"].removesuffix("Mi"))
        assert [claim["metadata"]["name"] for claim in one["spec"]["volumeClaimTemplates"]] == ["data"]


def test_each_redis_starts_with_its_users():
    """The script is in the ConfigMap that is mounted, and every password that it reads beside it."""
    (made,) = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())["configMapGenerator"]
    assert (made["namespace"], made["files"]) == ("grader", ["redis-start.sh"])
    for name, server in (("redis", "broker"), ("results", "results")):
        pod = the("StatefulSet", name)["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        assert volumes["start"]["configMap"] == {"name": made["name"]}
        assert container["command"] == ["/bin/sh", f"{mounts['start']}/redis-start.sh", server]
        assert environment("grader", container)["SECRETS"] == mounts["redis-passwords"]
        sources = volumes["redis-passwords"]["projected"]["sources"]
        there = {item["path"] for source in sources for item in source["secret"]["items"]}
        wanted = {"redis_password", "redis_admin_password", "redis_judge_password"}
        assert there == wanted | ({"redis_runner_password"} if server == "broker" else set())


def test_no_worker_has_anothers_user_of_redis():
    """Nor that of platforms, nor the administrator's."""
    found = {}
    for one, _, template in workloads():
        names = {volume["secret"]["secretName"] for volume in template["spec"]["volumes"] if "secret" in volume}
        if ours := {name for name in names if name.startswith("grader-redis")}:
            found[one["metadata"]["name"]] = ours
    assert found == {"judge": {"grader-redis-judge"}, "runner": {"grader-redis-runner"}}
