"""`compose.control.yaml` and `compose.runner.yaml`, read without an engine: what is where, and who reaches whom."""

import re
from urllib.parse import urlsplit

import pytest
import yaml

from grader_service.runner_hosts.bundle import SERVICES as ON_RUNNER_HOSTS
from grader_service.settings import Settings
from tests.levels.parts import ROOT

BASE = yaml.safe_load((ROOT / "compose.yaml").read_text())
CONTROL = yaml.safe_load((ROOT / "compose.control.yaml").read_text())
RUNNER = yaml.safe_load((ROOT / "compose.runner.yaml").read_text())
ELSEWHERE = [name for name in ON_RUNNER_HOSTS if name in BASE["services"]]


def options(service, option):
    """Values of an option that a command is given several times, by what stands before their `=`."""
    given = [word.partition("=")[2] for word in service["command"] if word.startswith(f"--{option}=")]
    return dict(value.split("=", 1) for value in given)


def test_whoever_has_the_engine_is_on_a_runner_host():
    """And by a profile that nothing chooses not on a control host; `images/up.sh` starts just these there."""
    holders = {name for name, one in BASE["services"].items() if "docker.sock" in str(one.get("volumes"))}
    assert holders <= set(ELSEWHERE)
    assert "runner" in ELSEWHERE
    for name in ELSEWHERE:
        assert CONTROL["services"][name]["profiles"], f"{name} would run on control hosts: compose.control.yaml"
    (started,) = re.findall(r"grep -xE '([a-z|]+)'", (ROOT / "images" / "up.sh").read_text())
    assert set(started.split("|")) == {"link", *ON_RUNNER_HOSTS}
    # Whatever stays does so without them.
    for name in BASE["services"].keys() - set(ELSEWHERE):
        assert not set(ELSEWHERE) & set(BASE["services"][name].get("depends_on", ()))


def test_runner_hosts_reach_three_services():
    """By one port with certificates, on the address that the owner names; both ends agree on their names."""
    control, runner = CONTROL["services"]["link"], RUNNER["services"]["link"]
    assert options(control, "to") == {
        "broker": "redis:6379",
        "database": "postgres:5432",
        "artifacts": "artifacts:8080",
    }
    assert options(runner, "at").keys() == options(control, "to").keys()
    (published,) = control["ports"]
    address = r"\$\{GRADER_CONTROL_ADDRESS:\?[^}]+\}:\$\{GRADER_CONTROL_PORT:-7443\}"  # by no default on all addresses
    assert re.fullmatch(f"{address}:7443", published)
    assert [one for one in runner["command"] if re.fullmatch(f"--control={address}", one)]
    others = [one for file in (CONTROL, RUNNER) for one in file["services"].values() if one is not control]
    assert not any("ports" in one for one in others)


def test_who_is_on_which_network():
    """`link` is on none where answers lie; the runner, and what keeps artifacts, have no way to another host."""
    assert CONTROL["services"]["link"]["networks"] == ["broker", "database", "artifacts", "hosts"]
    assert CONTROL["services"]["artifacts"]["networks"] == ["artifacts"]
    assert CONTROL["networks"] == {"artifacts": {"internal": True}, "hosts": {}}
    assert RUNNER["services"]["link"]["networks"].keys() == {"broker", "database", "hosts"}
    assert "networks" not in RUNNER["services"]["runner"]
    for name, file in (("control", CONTROL), ("runner", RUNNER)):
        header = (ROOT / f"compose.{name}.yaml").read_text().partition("services:")[0]
        assert set(re.findall(r"^#   ([a-z]+)  ", header, re.MULTILINE)) == file["networks"].keys()


@pytest.mark.parametrize("file", [CONTROL, RUNNER], ids=["control", "runner"])
def test_a_new_key_makes_link_anew(file):
    """It reads key and certificates when it starts."""
    assert file["services"]["link"]["environment"] == {"CERTIFICATES": "${GRADER_LINK_CERTIFICATES:-}"}


def test_link_stands_where_the_runner_looks():
    """Under the names and ports of every address that the runner is told, on a network that it is on."""
    told = BASE["services"]["runner"]["environment"] | RUNNER["services"]["runner"]["environment"]
    link = RUNNER["services"]["link"]
    on = {alias: name for name, one in link["networks"].items() for alias in one.get("aliases", ())}
    ports = {int(value.rpartition(":")[2]) for value in options(link, "at").values()}
    store = told["GRADER_ARTIFACT_STORE"].removeprefix("${GRADER_ARTIFACT_STORE:-").removesuffix("}")
    for url in (told["GRADER_DATABASE_URL"], told["GRADER_REDIS_URL"], store):
        found = urlsplit(url)
        assert on[found.hostname] in BASE["services"]["runner"]["networks"]
        assert (found.port or 5432) in ports
    assert store.endswith(options(CONTROL["services"]["link"], "to")["artifacts"])


@pytest.mark.parametrize(
    "service", [*(CONTROL["services"][name] for name in ("link", "artifacts")), RUNNER["services"]["link"]]
)
def test_a_service_of_these_files_has_no_more_rights(service):
    """Than those of compose.yaml have, from which no file takes anything over by itself."""
    for key, value in BASE["x-service"].items():
        assert service[key] == value, key
    assert not {"secrets", "group_add", "privileged"} & service.keys()
    assert service.get("environment", {}).keys() <= {"CERTIFICATES"}
    assert all(volume.endswith(":ro") for volume in service["volumes"])


def test_settings_are_settings():
    """Those that the runner is told otherwise."""
    names = RUNNER["services"]["runner"]["environment"]
    assert {name.removeprefix("GRADER_").lower() for name in names} <= Settings.model_fields.keys()
