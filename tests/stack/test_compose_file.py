"""What `compose.yaml` says, read without an engine: which service is on which network, and how each Redis is kept."""

import os
import re
import shutil
import subprocess
import textwrap

import pytest
import yaml
from sqlalchemy import make_url

from grader_service.settings import Settings
from grader_service.store.rights import RIGHTS
from tests.levels.parts import ROOT

FILE = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES = FILE["services"]
NETWORKS = {
    "redis": {"broker", "platform"},
    "results": {"results", "platform"},
    "postgres": {"database"},
    "migrate": {"database"},
    "signer": set(),
    "judge": {"broker", "results", "database"},
    "regrade": {"database"},
    "pods": set(),
    "runner": {"broker", "database"},
    "metrics": {"database", "monitoring"},
    "web": {"database", "monitoring"},
    "backup": {"database"},
    "restore": {"database"},
    "platforms": {"broker", "results", "database"},
}
"""Of each service."""


def test_networks():
    """The judge alone of our workers reaches the Redis of the answers; networks of what is stored have no way out."""
    assert {name: set(service.get("networks", ())) for name, service in SERVICES.items()} == NETWORKS
    assert SERVICES["pods"]["network_mode"] == "none"
    assert {name for name, network in FILE["networks"].items() if network.get("internal")} == {
        "broker", "results", "database"
    }  # fmt: skip
    header = (ROOT / "compose.yaml").read_text().partition("x-service:")[0]
    assert set(re.findall(r"^#   ([a-z]+)  ", header, re.MULTILINE)) == set(FILE["networks"])


@pytest.mark.parametrize(
    ("name", "server", "variable", "port"), [("redis", "broker", "REDIS", 6379), ("results", "results", "RESULT", 6380)]
)
def test_an_instance_of_redis(name, server, variable, port):
    """The script for both starts it, with a limit, a volume and a port of its own."""
    service = SERVICES[name]
    assert service["entrypoint"] == ["/bin/sh", "/opt/redis-start.sh", server]
    assert service["environment"]["MAXMEMORY"] == f"${{GRADER_{variable}_MEMORY:-512mb}}"
    assert service["volumes"] == [f"{name}-data:/data", "./deploy/kubernetes/redis-start.sh:/opt/redis-start.sh:ro"]
    assert service["ports"] == [f"127.0.0.1:${{GRADER_{variable}_PORT:-{port}}}:6379"]


def test_both_instances_of_redis_are_alike():
    """But for what the test above says of each, their networks and their passwords."""
    own = {"entrypoint", "environment", "volumes", "ports", "networks", "secrets"}
    first, second = (
        {key: value for key, value in SERVICES[name].items() if key not in own} for name in ("redis", "results")
    )
    assert first == second


def test_a_worker_has_the_password_of_its_own_user_alone():
    """Each Redis knows all that speak with it; nobody else has those of others, or the administrator's."""
    found = {
        name: {secret for secret in service.get("secrets", ()) if secret.startswith("redis")}
        for name, service in SERVICES.items()
    }
    known = {"redis_password", "redis_admin_password", "redis_judge_password", "redis_runner_password"}
    assert {name: secrets for name, secrets in found.items() if secrets} == {
        "redis": known,
        "results": known - {"redis_runner_password"},
        "judge": {"redis_judge_password"},
        "runner": {"redis_runner_password"},
        "platforms": {"redis_admin_password"},
    }
    for name in ("judge", "runner"):
        environment = SERVICES[name]["environment"]
        assert environment["GRADER_REDIS_URL"] == f"redis://{name}@redis:6379/0"
        assert environment["GRADER_REDIS_PASSWORD_FILE"] == f"/run/secrets/redis_{name}_password"


@pytest.mark.parametrize(
    ("variable", "file"),
    [
        ("GRADER_REDIS_USERS", "deploy/kubernetes/redis-start.sh"),
        ("GRADER_LINK_CERTIFICATES", "secrets/hosts/control.pem"),
        ("GRADER_LINK_CERTIFICATES", "secrets/hosts/host.pem"),
    ],
)
def test_new_files_make_containers_anew(tmp_path, variable, file):
    """A file that is mounted would not: `images/compose.sh` names what is in it, and compose sees another container."""
    said = []
    (tmp_path / "docker-compose").write_text(f'#!/bin/sh\necho "${variable}"\n')
    (tmp_path / "docker").write_text("#!/bin/sh\nexit 1\n")
    shutil.copytree(ROOT / "images", tmp_path / "images", ignore=lambda _, names: {*names} - {"compose.sh", "role.sh"})
    for name in ("docker", "docker-compose"):
        (tmp_path / name).chmod(0o755)
    for name in {"deploy/kubernetes/redis-start.sh", file}:
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    outside = {name: value for name, value in os.environ.items() if not name.startswith("GRADER_")}
    for text in ("one", "one", "two"):
        (tmp_path / file).write_text(text)
        environment = {**outside, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
        said.append(subprocess.check_output([tmp_path / "images" / "compose.sh", "up"], env=environment, text=True))
    assert said[0] == said[1] != said[2]


def test_both_instances_of_redis_know_the_users():
    """By what `images/compose.sh` says of them."""
    for name in ("redis", "results"):
        assert SERVICES[name]["environment"]["USERS"] == "${GRADER_REDIS_USERS:-}"


def test_labs_of_a_folder_are_read_where_labs_are():
    """In one place of each container; without a folder an empty volume is there."""
    readers = {name for name, service in SERVICES.items() if service["environment"].get("GRADER_LABS_DIR") == "/labs"}
    assert readers == {"judge", "pods", "runner", "web"}
    for name in readers:
        assert "${GRADER_LABS_DIR:-labs}:/labs:ro" in SERVICES[name]["volumes"]


def test_volumes_are_used_and_declared():
    """A volume of one service only, but for artifacts, what judges share, and the signer's socket."""
    named = [
        volume.partition(":")[0]
        for service in SERVICES.values()
        for volume in service.get("volumes", ())
        if re.match("[a-z]", volume)
    ]
    assert set(named) == set(FILE["volumes"]) - {"labs"}
    assert {name for name in named if named.count(name) > 1} == {"judge-state", "artifacts", "signer-socket"}


def test_the_signer_alone_has_the_keys():
    """As a user of its own, on no network, and with no password; judges reach its socket, and cannot replace it."""
    signer = SERVICES["signer"]
    assert (signer["user"], signer["network_mode"]) == ("10002:10001", "none")
    assert signer["user"].partition(":")[0] != SERVICES["judge"]["user"].partition(":")[0]
    assert "secrets" not in signer
    socket = signer["command"][-1]
    mounts = {name: service.get("volumes", ()) for name, service in SERVICES.items()}
    assert {name for name, found in mounts.items() if any("signer-keys:" in one for one in found)} == {"signer"}
    asked = {name for name, service in SERVICES.items() if "GRADER_SIGNER" in service.get("environment", {})}
    assert asked == {"judge", "regrade", "backup", "restore"}
    for name in asked:
        assert SERVICES[name]["environment"]["GRADER_SIGNER"] == socket
        assert f"signer-socket:{socket.rpartition('/')[0]}:ro" in mounts[name]
        assert SERVICES[name]["depends_on"]["signer"] == {"condition": "service_healthy"}


def test_the_judge_alone_knows_where_answers_go():
    """Of the workers; with the password's file among its secrets, and not before that Redis answers."""
    told = {name for name, service in SERVICES.items() if "GRADER_RESULT_URL" in service.get("environment", {})}
    assert told == {"judge", "platforms"}
    judge = SERVICES["judge"]
    assert judge["environment"]["GRADER_RESULT_URL"] == "redis://judge@results:6379/0"
    folder, _, secret = judge["environment"]["GRADER_RESULT_PASSWORD_FILE"].rpartition("/")
    assert (folder, secret in judge["secrets"]) == ("/run/secrets", True)
    assert judge["depends_on"]["results"] == {"condition": "service_healthy"}
    for name in ("judge", "runner"):
        assert SERVICES[name]["depends_on"].keys() >= {"redis", "postgres", "migrate"}


def test_each_service_has_its_own_role_of_the_database():
    """And no other one's password, but for the operators' where they act; the owner's is where tables are made."""
    roles = {}
    for name, service in SERVICES.items():
        told = service.get("environment", {})
        for kind in ("DATABASE", "OPERATOR_DATABASE"):
            if (url := told.get(f"GRADER_{kind}_URL")) is None:
                continue
            user = make_url(url).username
            roles.setdefault(name, set()).add(user)
            secret = "postgres_password" if user == "grader" else user.replace("grader", "postgres")
            assert told[f"GRADER_{kind}_PASSWORD_FILE"] == f"/run/secrets/{secret}"
    owners, of_all = {"migrate", "restore"}, {f"postgres_{role}" for role in RIGHTS}
    assert roles.pop("platforms") == {"grader_operator"}  # of the trail alone; it needs no other rights
    for name in roles.keys() - owners:
        assert roles[name] == {f"grader_{name}"} | ({"grader_operator"} if name in {"judge", "web"} else set())
        mounted = {secret for secret in SERVICES[name]["secrets"] if secret.startswith("postgres")}
        assert mounted == {role.replace("grader", "postgres") for role in roles[name]}
    for name in owners:
        assert roles[name] == {"grader"}
        assert set(SERVICES[name]["secrets"]) == of_all | {"postgres_password"}
        assert SERVICES[name]["environment"]["GRADER_DATABASE_ROLES_DIR"] == "/run/secrets"
    assert set().union(*roles.values()) == {"grader", *(f"grader_{role}" for role in RIGHTS)}
    made = re.search(r"^roles=\((.*)\)$", (ROOT / "images" / "up.sh").read_text(), re.MULTILINE)
    assert set(made[1].split()) == set(RIGHTS)


def test_the_engine_is_the_pod_brokers_alone():
    """Its socket and its group; runner and broker share a folder, a group, the image and the GPU, and no user."""
    for name, service in SERVICES.items():
        text = repr(service)
        assert ("docker.sock" in text, "GRADER_DOCKER_GID" in text) == (name == "pods", name == "pods"), name
    pods, runner = SERVICES["pods"], SERVICES["runner"]
    assert runner["group_add"] == [pods["user"].partition(":")[2]]
    assert pods["user"] != runner["user"]
    own = "${GRADER_RUNNER_UID:-10004}"
    assert runner["user"] == f"{own}:{own}"
    assert pods["environment"]["GRADER_POD_RUNNER_UID"] == own
    assert not any("10004" in service.get("user", "") for name, service in SERVICES.items() if name != "runner")
    for variable in ("GRADER_POD_BROKER", "GRADER_LAB_IMAGE", "GRADER_GPU"):
        assert pods["environment"][variable] == runner["environment"][variable]
    folder = pods["environment"]["GRADER_STATE_DIR"]
    assert pods["environment"]["GRADER_POD_BROKER"] == f"{folder}/broker.sock"
    assert all(f"{folder}:{folder}" in service["volumes"] for service in (pods, runner))
    assert not pods.get("secrets")
    assert runner["depends_on"]["pods"] == {"condition": "service_healthy"}


def test_settings_of_services_are_settings():
    """Every GRADER_ variable of a service of ours is one that the service reads."""
    for service in SERVICES.values():
        names = {name for name in service.get("environment", {}) if name.startswith("GRADER_")}
        assert {name.removeprefix("GRADER_").lower() for name in names} <= Settings.model_fields.keys()


def test_the_example_for_an_openid_provider_fits():
    """docs/web.md: variables that are settings, in files that are mounted, and a network that is there."""
    found = re.search(r"\n\n((?:    .*\n)*    services:\n(?:    .*\n)*)", (ROOT / "docs" / "web.md").read_text())
    example = yaml.safe_load(textwrap.dedent(found[1]))
    web = example["services"]["web"]
    names = {name.removeprefix("GRADER_").lower() for name in web["environment"]}
    assert names <= Settings.model_fields.keys()
    assert {name for name in Settings.model_fields if name.endswith(("_issuer", "_client_id", "_secret_file"))} <= names
    assert web["environment"]["GRADER_WEB_OIDC_CLIENT_SECRET_FILE"] == f"/run/secrets/{web['secrets'][0]}"
    assert web["secrets"] == list(example["secrets"])
    assert example["networks"].keys() <= set(SERVICES["web"]["networks"])
    assert not (FILE["networks"]["monitoring"] or {}).get("internal")


def test_the_file_for_a_gpu_changes_runner_and_pods_alone():
    """And neither their networks nor what they are told of the other services."""
    changed = yaml.safe_load((ROOT / "compose.gpu.yaml").read_text())["services"]
    assert changed.keys() == {"runner", "pods"}
    for added in changed.values():
        assert not {"networks", "environment", "depends_on", "secrets"} & added.keys()
    assert changed["runner"]["deploy"] == changed["pods"]["deploy"]


@pytest.mark.parametrize("path", ["compose.yaml", "images/prove.sh"])
def test_defaults_agree_with_the_page(path):
    """Ports and memory: the same default here and in the table of docs/operations.md."""
    page = (ROOT / "docs" / "operations.md").read_text()
    shown = dict(re.findall(r"^\| `(GRADER_\w+)` \| `([^`]+)` \|", page, re.MULTILINE))
    found = re.findall(r"\$\{(GRADER_\w+_(?:PORT|MEMORY)):-(\w+)\}", (ROOT / path).read_text())
    assert {name for name, _ in found} >= {"GRADER_REDIS_PORT", "GRADER_RESULT_PORT"}
    for name, default in found:
        assert shown[name] == default
