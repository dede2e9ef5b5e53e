"""The script that starts both Redis, and the users of platforms that it must not lose."""

import hashlib
import json
import subprocess
import time

import pytest
import redis
from redis.exceptions import NoPermissionError
from redis.lock import Lock

from grader_service.errors import ConfigurationError, InfrastructureError, UsageError
from grader_service.queue.app import make_app
from grader_service.queue.platform_users import PlatformUsers
from grader_service.queue.redis_check import require_answer
from grader_service.queue.wake_ups import announce
from grader_service.settings import Settings
from grader_service.store.sweep import WakeUp
from tests.services.redis_server import START, redis_server, ruled_servers
from tests.waiting import wait_for

pytestmark = pytest.mark.integration


@pytest.fixture
def servers():
    """The broker, and the Redis of the answers."""
    with ruled_servers() as made:
        yield made


@pytest.fixture
def users(servers):
    """The administrator's hands."""
    return PlatformUsers(*(server.client() for server in servers))


def restarted(server):
    """The same server in its next life."""
    server.kill()
    server.start()


def test_it_keeps_what_it_is_given(servers):
    """On disk before it answers, and nothing is thrown away."""
    for server in servers:
        server.options = ()  # but the test's own, which does not wait for the disk
        restarted(server)
        wanted = {"appendonly": "yes", "appendfsync": "always", "save": "", "maxmemory-policy": "noeviction"}
        assert {name: server.client().config_get(name)[name] for name in wanted} == wanted
        assert server.client().config_get("maxmemory")["maxmemory"] == str(512 << 20)


def test_users_of_platforms_outlive_a_start_and_get_its_commands(servers, users):
    """What an older version let them do, or did not, is not what counts; passwords and names stay."""
    password = users.add("lms", ["lab-platform"])
    before = users.platforms()
    for server in servers:
        server.client().execute_command("ACL", "SETUSER", "platform-lms", "-lpush", "+flushall")
        server.client().execute_command("ACL", "SETUSER", "judge", "+flushall")
        server.client().execute_command("ACL", "SAVE")
        restarted(server)
        url = f"redis://platform-lms:{password}@127.0.0.1:{server.port}/0"
        with redis.Redis.from_url(url) as platform, redis.Redis.from_url(server.url_of("judge")) as judge:
            assert platform.lpush("live" if server.role == "broker" else "lab-platform", "x") == 1
            for one in (platform, judge):
                with pytest.raises(NoPermissionError):
                    one.flushall()
    users = PlatformUsers(*(server.client() for server in servers))
    assert users.platforms() == before
    users.remove("lms")
    for server in servers:
        restarted(server)
        assert "platform-lms" not in server.client().acl_users()


def test_the_platform_without_a_name_stays_away_when_it_was_removed(servers, users):
    """Over starts, and a health check is not its business; let in again, it has its password of before."""
    with redis.Redis.from_url(servers[0].url, single_connection_client=True) as client:
        assert client.ping()
        users.remove("default")
        with pytest.raises(redis.ConnectionError):
            client.llen("live")
    for server in servers:
        restarted(server)
        with redis.Redis.from_url(server.url) as client, pytest.raises(redis.AuthenticationError):
            client.ping()
    users = PlatformUsers(*(server.client() for server in servers))
    assert [one.on for one in users.platforms()] == [False]
    assert users.add("default") is None
    for server in servers:
        with redis.Redis.from_url(server.url) as client:
            assert client.ping()


def test_a_new_password_is_taken_at_the_next_start(servers):
    """Of a file that changed; nobody without one is let in, and no password lies in the server."""
    broker, _ = servers
    (broker.folder / "redis_judge_password").write_text("another\n")
    restarted(broker)
    with redis.Redis.from_url(broker.url_of("judge")) as client, pytest.raises(redis.AuthenticationError):
        client.ping()
    with redis.Redis.from_url(f"redis://judge:another@127.0.0.1:{broker.port}/0") as client:
        assert client.ping()
    with redis.Redis(port=broker.port) as client, pytest.raises(redis.AuthenticationError):
        client.ping()
    assert broker.password not in (broker.folder / "users.acl").read_text()


def test_a_lock_is_released_by_the_script_that_is_there(servers, users):
    """The one of redis-py, which a platform's Celery worker calls, loaded at each start; with its caller's rights."""
    _, results = servers
    password = users.add("lms")
    for _ in range(2):
        wait_for(lambda: results.client().script_exists(_sha(Lock.LUA_RELEASE_SCRIPT)) == [True], 5)
        with redis.Redis.from_url(f"redis://platform-lms:{password}@127.0.0.1:{results.port}/0") as platform:
            lock = platform.lock("lms:unacked_mutex", timeout=300)
            assert lock.acquire(blocking=False)
            lock.release()
            assert not results.client().exists("lms:unacked_mutex")
            results.client().set("celery-task-meta-other:1", "x")
            with pytest.raises(redis.ResponseError, match=r"(?i)permission"):
                platform.evalsha(_sha(Lock.LUA_RELEASE_SCRIPT), 1, "celery-task-meta-other:1", "x")
        restarted(results)


def _sha(script):
    """By which Redis knows a script."""
    return hashlib.sha1(script.encode(), usedforsecurity=False).hexdigest()


def test_a_runner_restores_wake_ups_without_a_script(servers, tmp_path):
    """What a dead worker had in hand comes back, as the user `runner`, whom no script is allowed."""
    broker, _ = servers
    app = make_app(Settings(redis_url=broker.url_of("runner"), state_dir=tmp_path))
    assert announce(app, WakeUp("a-run", "run", "live"))
    raw = json.loads(broker.client().lindex("grader.run.live", 0))
    with app.connection_for_read() as connection:
        channel = connection.default_channel
        taken = []
        channel.basic_consume("grader.run.live", no_ack=False, callback=taken.append, consumer_tag="t")
        wait_for(lambda: taken or connection.drain_events(timeout=5), 5)
        assert broker.client().llen("grader.run.live") == 0
        tag = raw["properties"]["delivery_tag"]
        broker.client().zadd("unacked_index", {tag: time.time() - 3600})
        channel.qos._vrestore_count = 0
        channel.qos.restore_visible(interval=1)
        assert broker.client().llen("grader.run.live") == 1
        assert 0 < broker.client().ttl("unacked_mutex") <= 5
    assert broker.refused() == []


@pytest.mark.parametrize(
    ("name", "queues", "said"),
    [
        ("LMS", [], "'LMS'; expected at most 32 of a-z"),
        ("l s", [], "'l s'"),
        ("", [], "''"),
        ("-lms", [], "'-lms'"),
        ("lms", ["a b"], "'a b'; expected 1 to 128"),
        ("lms", ["*"], r"'\*'"),
        ("grader", [], "grader belongs to the service"),
        ("lms", ["grader.run.live"], "grader.run.live cannot be lms's: grader belongs to the service"),
        ("celery", [], "belongs to the service"),
        ("lms", ["celery-task-meta-x"], "belongs to the service"),
        ("lms", ["live"], "belongs to the service"),
        ("lms", ["unacked_index"], "belongs to the service"),
        ("lms", ["_kombu.binding.x"], "belongs to the service"),
        ("first", [], "there is a platform first already"),
        ("first-two", [], "first-two cannot be first-two's: first belongs to first"),
        ("lms", ["theirs:more"], "theirs belongs to first"),
        ("th", ["theirs"], "theirs belongs to first"),
    ],
)
def test_a_name_that_cannot_be_given(users, name, queues, said):
    """Is refused with what was expected, and no user is made."""
    users.add("first", ["theirs"])
    with pytest.raises(UsageError, match=said):
        users.add(name, queues)
    assert [one.name for one in users.platforms()] == ["default", "first"]


def test_names_that_only_look_alike_are_two(users):
    users.add("lms")
    users.add("lmsx", ["lab_platform"])
    assert [one.owned for one in users.platforms()] == [(), ("lms",), ("lmsx", "lab_platform")]


@pytest.mark.parametrize("user", ["judge", "runner", "default"])
def test_a_worker_with_another_user_is_not_ready(servers, user):
    """One that was started as a platform says what it needs, in place of waiting for work that it may not take."""
    broker, _ = servers
    url = broker.url if user == "default" else broker.url_of(user)
    with redis.Redis.from_url(url) as client:
        if user != "default":
            require_answer(client)
            return
        with pytest.raises(InfrastructureError, match="expected its own user in GRADER_REDIS_URL"):
            require_answer(client)


def test_an_unknown_platform_cannot_be_removed(users):
    with pytest.raises(UsageError, match="no platform lms; `grader platforms list`"):
        users.remove("lms")


def test_a_server_without_the_users_of_the_service_is_refused(users):
    """There a platform would be given every right, or none."""
    with redis_server() as stranger, pytest.raises(ConfigurationError, match=r"redis-start\.sh"):
        PlatformUsers(stranger.client(), stranger.client()).add("lms")


def test_the_rules_are_shown_for_a_redis_of_somebody_else(servers):
    """A user a line, as `ACL SETUSER` and a file of users take it; a server that it does not know is refused."""
    broker, _ = servers
    for server in servers:
        environment = server._environment()
        shown = subprocess.check_output([START, server.role, "--print"], env=environment, text=True).splitlines()
        runner = ["runner"] if server is broker else []
        assert [line.split()[1] for line in shown] == ["admin", "judge", *runner, "default", "platform"]
        for line in shown:
            server.client().execute_command("ACL", "SETUSER", line.split()[1], *line.split()[2:])
    done = subprocess.run([START, "both"], env=environment, check=False, capture_output=True, text=True)
    assert (done.returncode, "broker or results; got 'both'" in done.stderr) == (2, True)


@pytest.mark.parametrize("content", [None, "", "\n", " \nsecond line\n"])
def test_an_empty_password_is_none(servers, content):
    """Nothing starts with a user whom anybody could be; the file that is missing is named."""
    broker, _ = servers
    file = broker.folder / "redis_admin_password"
    before = (broker.folder / "users.acl").read_text()
    file.unlink() if content is None else file.write_text(content)
    done = subprocess.run(
        broker._command(), env=broker._environment(), check=False, capture_output=True, text=True, timeout=20
    )
    assert (done.returncode, f"the first line of {file}" in done.stderr) == (2, True)
    assert (broker.folder / "users.acl").read_text() == before
