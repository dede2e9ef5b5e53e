"""`grader platforms`: who may post is listed, let in and shown out, and the audit trail tells of it."""

import json

import pytest
import redis

from grader_service.errors import ConfigurationError, InfrastructureError
from grader_service.store.engine import Store
from tests import command_line
from tests.services.redis_server import ruled_servers


@pytest.fixture(scope="module")
def servers():
    """The broker, and the Redis of the answers."""
    with ruled_servers() as made:
        yield made


@pytest.fixture
def typed(servers, tmp_path):
    """What came of a command."""
    broker, results = servers
    usual = {
        "GRADER_STATE_DIR": str(tmp_path),
        "GRADER_OPERATOR": "ann",
        "COLUMNS": "200",
        "GRADER_REDIS_URL": f"redis://127.0.0.1:{broker.port}/0",
        "GRADER_RESULT_URL": f"redis://127.0.0.1:{results.port}/0",
        "GRADER_REDIS_ADMIN_PASSWORD_FILE": str(broker.folder / "redis_admin_password"),
    }
    return lambda *words, **changes: command_line.invoked("platforms", *words, **usual | changes)


def happened(folder):
    """The audit trail: kind, who, and which platform."""
    store = Store(f"sqlite:///{folder / 'grader.db'}")
    with store.transaction() as connection:
        rows = connection.exec_driver_sql("select kind, actor, detail from event order by id").all()
    store.close()
    return [(kind, actor, json.loads(detail)) for kind, actor, detail in rows]


@pytest.mark.integration
def test_added_listed_and_removed(servers, typed, tmp_path):
    """Both addresses are printed, with a password that is nowhere else."""
    said = typed("add", "lms", "--queue", "lab-platform").stdout
    shown = dict(line.split("=", 1) for line in said.splitlines())
    assert set(shown) == {"GRADER_REDIS_URL", "GRADER_RESULT_URL"}
    for url, server in zip(shown.values(), servers, strict=True):
        assert url.endswith(f"@127.0.0.1:{server.port}/0")
        with redis.Redis.from_url(url) as client:
            assert client.ping()
            listed = typed("list").stdout.splitlines()
        password = url.partition("platform-lms:")[2].partition("@")[0]
        assert len(password) >= 32
        assert password not in (server.folder / "users.acl").read_text() + json.dumps(happened(tmp_path))
    assert listed[0].split() == ["platform", "own", "names", "added", "connections", "state"]
    assert listed[1].split() == ["default", "0", "on"]
    name, *owned, added, connections, state = listed[2].split()
    assert (name, owned, connections, state) == ("lms", ["lms", "lab-platform"], "1", "on")
    assert added.startswith("20")
    typed("remove", "lms")
    assert len(typed("list").stdout.splitlines()) == 2
    assert happened(tmp_path) == [
        ("platform_added", "operator:ann", {"platform": "lms"}),
        ("platform_removed", "operator:ann", {"platform": "lms"}),
    ]


@pytest.mark.integration
def test_platforms_may_reach_the_servers_elsewhere(typed):
    """As with compose: addresses are those at which platforms reach them, as JSON too."""
    elsewhere = {
        "GRADER_PLATFORM_REDIS_URL": "rediss://lab.example/0",
        "GRADER_PLATFORM_RESULT_URL": "rediss://lab.example:6380/0",
    }
    told = json.loads(typed("add", "far", "--json", **elsewhere).stdout)
    assert told["name"] == "far"
    assert told["redis_url"].startswith("rediss://platform-far:")
    assert told["redis_url"].endswith("@lab.example/0")
    assert told["result_url"].endswith("@lab.example:6380/0")
    typed("remove", "far")


@pytest.mark.integration
def test_the_platform_without_a_name(typed):
    """Is switched off, and on again without a new password."""
    typed("remove", "default")
    assert typed("list").stdout.splitlines()[1].split() == ["default", "0", "off"]
    assert typed("add", "default").stdout == ""
    assert typed("list").stdout.splitlines()[1].split() == ["default", "0", "on"]


@pytest.mark.integration
def test_nothing_is_done_without_rights(servers, typed, tmp_path):
    """A wrong password, or that of another user: no platform, and no word in the audit trail."""
    (tmp_path / "guess").write_text("guess\n")
    with pytest.raises(InfrastructureError, match=r"cannot be administered.*invalid username-password"):
        typed("add", "lms", GRADER_REDIS_ADMIN_PASSWORD_FILE=str(tmp_path / "guess"))
    assert happened(tmp_path) == []
    assert servers[0].client().acl_getuser("platform-lms") is None


@pytest.mark.parametrize("missing", ["GRADER_RESULT_URL", "GRADER_REDIS_ADMIN_PASSWORD_FILE"])
def test_what_is_missing_is_said(missing, tmp_path):
    """A server for answers, and the file with the administrator's password."""
    given = {
        "GRADER_STATE_DIR": str(tmp_path),
        "GRADER_RESULT_URL": "redis://127.0.0.1:1/0",
        "GRADER_REDIS_ADMIN_PASSWORD_FILE": str(tmp_path / "password"),
    }
    with pytest.raises(ConfigurationError, match=f"{missing}.*images/compose.sh run --rm platforms"):
        command_line.invoked("platforms", "list", **{name: value for name, value in given.items() if name != missing})
