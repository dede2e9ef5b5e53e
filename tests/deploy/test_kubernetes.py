"""The manifests below `deploy/kubernetes`, checked without a cluster.

By strict schemas, against each other, and against our own settings, commands and database.
"""

import copy
import re
from collections import Counter
from pathlib import Path

import jsonschema
import kubernetes_validate
import pytest
import typer
from sqlalchemy import make_url

from grader_service import health
from grader_service.cli.app import app
from grader_service.settings import Settings
from grader_service.store.rights import RIGHTS
from sandbox.docker.options import GUEST_UID
from tests.deploy.keda_schema import SCHEMAS
from tests.deploy.manifests import (
    CORE,
    DOCUMENTS,
    FILES,
    FOLDER,
    KEYS,
    OBJECTS,
    ROOT,
    SECRETS,
    containers,
    environment,
    names,
    of_kind,
    the,
    workloads,
)
from tests.kubernetes_api.objects import VERSION
from tests.kubernetes_api.server import _GROUPS, _VERBS


def test_every_file_is_applied():
    """None lies beside, forgotten."""
    assert {path for path in FOLDER.rglob("*.yaml") if path.name != "kustomization.yaml"} == set(FILES)
    assert len(CORE) == len(set(CORE))


@pytest.mark.parametrize(("path", "document"), DOCUMENTS, ids=lambda one: one.name if isinstance(one, Path) else "")
def test_a_document_is_valid(path, document):
    """By the published schemas of the newest Kubernetes, unknown fields refused."""
    if document["apiVersion"].startswith("keda.sh/"):
        jsonschema.Draft202012Validator(SCHEMAS[document["kind"]]).validate(document)
    else:
        kubernetes_validate.validate(document, VERSION, strict=True)


@pytest.mark.parametrize("field", ["metricTyp", "query"])
def test_kedas_schema_is_strict(field):
    """A misspelt field, or a number where KEDA wants text, is found."""
    document = copy.deepcopy(of_kind("ScaledObject")[0])
    (trigger,) = document["spec"]["triggers"]
    (trigger["metadata"] if field == "query" else trigger)[field] = 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(SCHEMAS["ScaledObject"]).validate(document)


def test_nothing_is_there_twice_and_every_namespace_exists():
    """Two objects of one name would overwrite each other."""
    keys = [(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) for one in OBJECTS]
    assert len(keys) == len(set(keys))
    assert {namespace for _, namespace, _ in keys} - {None} == names("Namespace")


def test_what_pods_refer_to_exists():
    """ServiceAccounts, classes, ConfigMaps, Secrets with their keys, volumes."""
    for one, namespace, template in workloads():
        pod = template["spec"]
        assert pod["serviceAccountName"] in names("ServiceAccount", namespace)
        assert pod["priorityClassName"] in names("PriorityClass")
        assert {pod["runtimeClassName"]} <= names("RuntimeClass") if "runtimeClassName" in pod else True
        volumes = {volume["name"] for volume in pod.get("volumes", ())}
        volumes |= {claim["metadata"]["name"] for claim in one["spec"].get("volumeClaimTemplates", ())}
        assert {volume["secret"]["secretName"] for volume in pod["volumes"] if "secret" in volume} <= SECRETS.keys()
        for secret in (
            source["secret"] for volume in pod["volumes"] for source in volume.get("projected", {}).get("sources", ())
        ):
            assert {item["key"] for item in secret["items"]} <= SECRETS[secret["name"]]
        used = set()
        for container in (*pod.get("initContainers", ()), *pod["containers"]):
            used |= {mount["name"] for mount in container.get("volumeMounts", ())}
            for variable in container.get("env", ()):
                reference = variable.get("valueFrom", {}).get("secretKeyRef")
                assert reference is None or reference["key"] in SECRETS[reference["name"]]
            for source in container.get("envFrom", ()):
                assert source["configMapRef"]["name"] in names("ConfigMap", namespace)
        assert used == volumes, one["metadata"]["name"]


def test_secrets_are_told():
    """The page that tells how to begin makes every Secret, and no manifest holds one."""
    page = (ROOT / "docs" / "scaling.md").read_text()
    for name, keys in SECRETS.items():
        of_role = name.startswith("grader-postgres-")
        assert ("grader-postgres-$role" if of_role else name) in page
        assert all(key in page for key in keys)
    assert names("Secret", "grader") | names("Secret", "grader-runners") == set()


def test_a_secret_is_mounted_where_its_settings_say():
    """Password files are below the mount of their Secret, and are keys of it."""
    for _, namespace, pod, container in containers():
        secrets = {volume["name"]: volume["secret"]["secretName"] for volume in pod["volumes"] if "secret" in volume}
        mounts = {m["mountPath"]: secrets[m["name"]] for m in container.get("volumeMounts", ()) if m["name"] in secrets}
        for name, value in environment(namespace, container).items():
            if name.endswith("_FILE") and not (
                name.startswith(("GRADER_REDIS", "GRADER_RESULT"))
                and not any(secret.startswith("grader-redis") for secret in mounts.values())
            ):
                folder, _, key = value.rpartition("/")
                assert key in SECRETS[mounts[folder]], name


def test_each_service_has_its_own_role_of_the_database():
    """And no other one's Secret, but for the operators' where they act; the owner's is where tables are made."""
    for one, namespace, pod, container in containers():
        told = environment(namespace, container)
        if not container["image"].startswith("grader-service") or "GRADER_DATABASE_URL" not in told:
            continue
        name = one["metadata"]["name"]
        users = {make_url(value).username for key, value in told.items() if key.endswith("DATABASE_URL")}
        secrets = {volume["secret"]["secretName"] for volume in pod["volumes"] if "secret" in volume}
        held = {secret.replace("-postgres", "").replace("-", "_") for secret in secrets if "postgres" in secret}
        own = {"grader"} if name == "migrate" else {f"grader_{name}"}
        assert held == users == own | ({"grader_operator"} if name in {"judge", "web"} else set())
    (job,) = of_kind("Job")
    (projected,) = (v["projected"]["sources"] for v in job["spec"]["template"]["spec"]["volumes"] if "projected" in v)
    paths = {source["secret"]["name"]: source["secret"]["items"][0]["path"] for source in projected}
    assert paths == {f"grader-postgres-{role}": f"postgres_{role}" for role in RIGHTS}


def test_signers_alone_have_the_signing_key():
    """As a user of their own, beside who asks them; so it is in the CronJob."""
    pods = [template["spec"] for _, _, template in workloads()]
    pods += [one["spec"]["jobTemplate"]["spec"]["template"]["spec"] for one in of_kind("CronJob")]
    found = 0
    for pod in pods:
        keys = [volume["name"] for volume in pod["volumes"] if volume.get("secret", {}).get("secretName") == KEYS]
        signers = [one for one in pod.get("initContainers", ()) if one["name"] == "signer"]
        assert len(keys) == len(signers)
        assert not {mount["name"] for one in pod["containers"] for mount in one["volumeMounts"]} & set(keys)
        for signer in signers:
            assert signer["securityContext"]["runAsUser"] != pod["securityContext"]["runAsUser"]
            assert "envFrom" not in signer
            told = {variable["name"]: variable.get("value") for variable in pod["containers"][0]["env"]}
            assert told["GRADER_SIGNER"] == signer["args"][-1]
            found += 1
    assert found == 3


def test_variables_are_settings():
    """Every GRADER_ variable is one of ours, and its value is one that we take."""
    for _, namespace, _, container in containers():
        values = {
            name: value for name, value in environment(namespace, container).items() if name.startswith("GRADER_")
        }
        fields = {name.removeprefix("GRADER_").lower(): value for name, value in values.items()}
        assert fields.keys() <= Settings.model_fields.keys()
        Settings(**{name: value for name, value in fields.items() if value is not None})


def test_commands_exist():
    """Arguments of the service image name a command; so do the shell's lines."""
    told = []
    for _, _, _, container in containers():
        if container["image"].startswith("grader-service"):
            words = " ".join((*container.get("command", ()), *container.get("args", ())))
            told += [words.rpartition("-m grader_service ")[2] if "command" in container else words]
    root = typer.main.get_command(app)
    checked = 0
    for line in told:
        if line.startswith("python3 -m sandbox.kubernetes.node"):
            continue
        command = root
        for word in line.split():
            if word.startswith("-"):
                assert any(word in option.opts for option in command.params), line
            elif not word.startswith("/"):
                command = command.commands[word]
        assert not hasattr(command, "commands"), line
        checked += 1
    assert checked >= 6


def test_health_checks_exist():
    """Each worker's probes ask what the health check can answer."""
    asked = []
    for _, _, _, container in containers():
        for kind in ("livenessProbe", "readinessProbe"):
            probe = container.get(kind, {}).get("exec", {}).get("command", ())
            asked += re.findall(r"-m grader_service\.health (.*)", " ".join(probe))
    found = [health.parser().parse_args(words.split()) for words in asked]
    assert Counter((one.question, one.regrade) for one in found) == {
        ("alive", False): 2,
        ("ready", False): 2,
        ("alive", True): 1,
        ("ready", True): 1,
    }


def test_runners_are_on_nodes_of_their_own():
    """On those with this label runners go, and nothing else of ours; by a taint of them nothing else of anybody's."""
    key = "nvidia.com/gpu.present"
    pods = [(namespace, template["spec"]) for _, namespace, template in workloads()]
    (nightly,) = of_kind("CronJob")
    pods.append((nightly["metadata"]["namespace"], nightly["spec"]["jobTemplate"]["spec"]["template"]["spec"]))
    for namespace, pod in pods:
        if namespace == "grader-runners":
            assert pod["nodeSelector"] == {key: "true"}
            assert pod["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
            continue
        (term,) = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        assert term["matchExpressions"] == [{"key": key, "operator": "NotIn", "values": ["true"]}]
        assert "tolerations" not in pod
    page = (ROOT / "docs" / "scaling.md").read_text()
    assert f"kubectl label node NODE {key}=true" in page
    assert "kubectl taint node NODE nvidia.com/gpu=:NoSchedule" in page


def test_a_runner_starts_pods_on_its_own_node_only():
    """Of the account that may make Jobs, all are looked at; what cannot be looked at is refused."""
    (policy,), (binding,) = of_kind("ValidatingAdmissionPolicy"), of_kind("ValidatingAdmissionPolicyBinding")
    assert binding["spec"] == {"policyName": policy["metadata"]["name"], "validationActions": ["Deny"]}
    spec = policy["spec"]
    assert spec["failurePolicy"] == "Fail"
    (bound,) = of_kind("RoleBinding")
    where = bound["metadata"]["namespace"]
    assert spec["matchConstraints"]["namespaceSelector"] == {"matchLabels": {"kubernetes.io/metadata.name": where}}
    (rule,) = spec["matchConstraints"]["resourceRules"]
    assert ("batch" in rule["apiGroups"], "CREATE" in rule["operations"], rule["resources"]) == (True, True, ["jobs"])
    (role,) = of_kind("Role")
    made = {kind for one in role["rules"] if "create" in one["verbs"] for kind in one["resources"]}
    assert made == {"jobs"}
    (subject,) = bound["subjects"]
    (condition,) = spec["matchConditions"]
    account = f"system:serviceaccount:{subject['namespace']}:{subject['name']}"
    assert condition["expression"] == f"request.userInfo.username == '{account}'"
    (validation,) = spec["validations"]
    assert "has(object.spec.template.spec.nodeName)" in validation["expression"]
    # Every Job of ours says its node, so that none is refused.
    runner = the("Deployment", "runner")["spec"]["template"]["spec"]["containers"][0]
    assert {"name": "GRADER_NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}} in runner["env"]


def test_the_runners_role():
    """Is what the fake API server allows, to the letter, and is bound to the runner alone."""
    verbs = {"GET": {"get", "list"}, "POST": {"create"}, "DELETE": {"delete"}}
    groups = {"api/v1": ""} | {group: group.split("/")[1] for group in _GROUPS.values() if group != "api/v1"}
    (role,) = of_kind("Role")
    allowed = {
        (group, kind, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for kind in rule["resources"]
        for verb in rule["verbs"]
    }
    expected = {
        (groups[_GROUPS[kind]], kind, verb) for kind, calls in _VERBS.items() for call in calls for verb in verbs[call]
    }
    expected -= {("networking.k8s.io", "networkpolicies", "get")}
    assert allowed == expected | {("", "pods/log", "get")}
    (binding,) = of_kind("RoleBinding")
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    (subject,) = binding["subjects"]
    assert subject["name"] in names("ServiceAccount", subject["namespace"])
    assert names("ClusterRole") | names("ClusterRoleBinding") == set()


def test_the_service_is_restricted():
    """Pods of its namespace meet the level `restricted` that the namespace enforces."""
    for _, namespace, pod, container in containers():
        if namespace == "grader":
            assert pod["securityContext"]["runAsNonRoot"] is True
            assert pod["securityContext"]["runAsUser"] not in {0, GUEST_UID}
            assert pod["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault"
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert not any("hostPath" in volume for volume in pod["volumes"])


def test_tokens():
    """The runner alone has one."""
    having = {
        one["metadata"]["name"] for one, _, template in workloads() if template["spec"]["automountServiceAccountToken"]
    }
    assert having == {"runner"}


def test_a_runner_finishes_before_it_is_killed():
    """And holds one GPU, the folder of the node under the same path, and mounts that the node sees."""
    pod = the("Deployment", "runner")["spec"]["template"]["spec"]
    (runner,) = pod["containers"]
    values = environment("grader-runners", runner)
    assert pod["terminationGracePeriodSeconds"] > float(values["GRADER_SOFT_SHUTDOWN_S"])
    assert runner["resources"]["limits"]["nvidia.com/gpu"] == "1"
    mounts = {mount["name"]: mount for mount in runner["volumeMounts"]}
    paths = {volume["name"]: volume["hostPath"]["path"] for volume in pod["volumes"] if "hostPath" in volume}
    assert mounts["state"]["mountPath"] == paths["state"]
    assert mounts["state"]["mountPropagation"] == "Bidirectional"
    assert runner["securityContext"]["privileged"] is True
    assert mounts["cgroup"]["mountPath"] == paths["cgroup"] == "/sys/fs/cgroup"
    assert values["GRADER_KUBERNETES_NAMESPACE"] in names("Namespace")
    assert values["GRADER_KUBERNETES_RUNTIME_CLASS"] in names("RuntimeClass")
    assert values["GRADER_KUBERNETES_PRIORITY_CLASS"] in names("PriorityClass")


def test_learners_come_before_re_grades():
    """In the scheduler's eyes, too."""
    assert the("PriorityClass", "grader-live")["value"] > the("PriorityClass", "grader-bulk")["value"]
    for one, _, template in workloads():
        bulk = template["spec"]["priorityClassName"] == "grader-bulk"
        assert bulk == (one["metadata"]["name"] == "regrade")


def test_both_namespaces_have_the_same_configuration():
    """A runner that read another database than the judge would wait for ever."""
    judge, runner = (dict(one["data"]) for one in of_kind("ConfigMap"))
    for name in ("GRADER_REDIS_URL", "GRADER_REDIS_PASSWORD_FILE"):
        assert judge.pop(name).replace("judge", "runner") == runner.pop(name)
    assert [judge.pop(name) for name in list(judge) if name.startswith("GRADER_RESULT")]  # answers are not a runner's
    first = the("Deployment", "runner")["spec"]["template"]["spec"]["initContainers"]
    assert runner.pop("GRADER_LAB_IMAGE") in {container["image"] for container in first}
    assert judge == runner
