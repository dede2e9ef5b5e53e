"""Users in Redis: each program of the service, and each platform, works as its own, and can do no more."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
import redis
from celery import Celery
from redis.exceptions import NoPermissionError

from grader_service.client import Client, InvalidRequest
from grader_service.queue.platform_users import PlatformUsers
from grader_service.signer.signatures import Signer
from tests.conftest import fresh_database
from tests.platform.platforms import PLATFORMS, node_platform, php_platform, python_platform  # noqa: F401 - fixtures
from tests.service.harness import QUICK, Service, a_message, served
from tests.services.redis_server import ruled_servers
from tests.waiting import wait_for

pytestmark = pytest.mark.integration
QUEUES = ("lab-platform", "node-platform")
"""Names of queues that are in the examples."""


@pytest.fixture(scope="module")
def ruled(postgres, tmp_path_factory):
    """A service on two servers with users, each worker as its own, and a platform `lms` beside that without a name."""
    logs = tmp_path_factory.mktemp("logs")
    with (
        fresh_database(postgres) as url,
        ruled_servers() as (broker, results),
        served(broker, url, logs, kind=Service, GRADER_LEASE_S="60") as service,
    ):
        service.judge(GRADER_REDIS_URL=broker.url_of("judge"), GRADER_RESULT_URL=results.url_of("judge"))
        service.runner(GRADER_REDIS_URL=broker.url_of("runner"))
        users = PlatformUsers(broker.client(), results.client())
        password = users.add("lms", QUEUES)
        key = Signer.from_folder(service.state_dir / "keys").public_key
        yield SimpleNamespace(broker=broker, results=results, service=service, users=users, password=password, key=key)


def urls(ruled, who):
    """Of both servers, for `default`, the platform `lms` or one of our own."""
    servers = (ruled.broker, ruled.results)
    if who == "default":
        return tuple(server.url for server in servers)
    if who == "lms":
        return tuple(f"redis://platform-lms:{ruled.password}@127.0.0.1:{server.port}/0" for server in servers)
    return tuple(server.url_of(who) for server in servers)


@pytest.fixture
def nothing_refused(ruled):
    """What is asked for in the test is within the rights of whoever asks: of clients, of judge and of runner."""
    servers = (ruled.broker.client(), ruled.results.client())
    for server in servers:
        server.acl_log_reset()
    yield
    assert [server.acl_log() for server in servers] == [[], []]


@pytest.mark.usefixtures("nothing_refused")
@pytest.mark.parametrize("who", ["default", "lms"])
@pytest.mark.parametrize("language", ["python", "node", "php"])
def test_a_platform_posts_and_is_answered(ruled, who, language, request, tmp_path):
    """With a name and without."""
    platform = request.getfixturevalue(f"{language}_platform")
    (tmp_path / "s.py").write_text(QUICK)
    broker, results = urls(ruled, who)
    posted = (ruled.key, str(tmp_path / "s.py"), f"lms:{who}-{language}", "reflection")
    assert platform.grade(broker, *posted, result_url=results)["status"] == "passed"


@pytest.mark.usefixtures("nothing_refused")
@pytest.mark.parametrize(
    ("who", "options"),
    [("default", ()), ("lms", ("--without-gossip", "--without-mingle", "--without-heartbeat"))],
    ids=["default", "lms"],
)
def test_a_platform_with_celery_is_told(ruled, who, options, tmp_path):
    """By its worker, whose messages in hand are nobody else's; the platform without a name may gossip, too."""
    broker, results = urls(ruled, who)
    environment = {**os.environ, "GRADER_REDIS_URL": broker, "GRADER_RESULT_URL": results}
    environment |= {"GRADER_PUBLIC_KEYS": ruled.key}
    environment["PYTHONPATH"] = os.pathsep.join([str(PLATFORMS), os.environ.get("PYTHONPATH", "")])
    (tmp_path / "s.py").write_text(QUICK)
    worker = [sys.executable, "-m", "celery", "-A", "celery_platform", "worker", "-Q", "lab-platform", "-P", "solo"]
    with (tmp_path / "worker.log").open("wb") as log:
        listening = subprocess.Popen([*worker, *options], cwd=tmp_path, env=environment, stdout=log, stderr=log)
    try:
        subprocess.run(
            [sys.executable, PLATFORMS / "celery_platform.py", "s.py", f"lms:{who}-celery", "reflection"],
            cwd=tmp_path, env=environment, check=True, timeout=60,
        )  # fmt: skip
        stored = tmp_path / "verdicts" / f"lms:{who}-celery.json"
        wait_for(lambda: stored.exists() or listening.poll() is not None, 60)
        assert json.loads(stored.read_text())["status"] == "passed", (tmp_path / "worker.log").read_text()
    finally:
        listening.terminate()
        listening.wait(30)


@pytest.mark.usefixtures("nothing_refused")
@pytest.mark.parametrize("who", ["default", "lms"])
def test_the_result_of_a_celery_task_can_be_waited_for(ruled, who):
    """As any Celery client does: it listens on the result's channel, and reads it."""
    broker, results = urls(ruled, who)
    submission = a_message(f"lms:{who}-result")
    with Celery("lms", broker=broker, backend=results) as app:
        sent = app.send_task(
            "grader.grade", kwargs={"submission": submission}, queue="live", task_id=f"lms:{who}-result"
        )
        assert sent.get(timeout=120)["status"] == "passed"
        sent.forget()


ADMINISTRATION = """
ACL LIST;ACL SETUSER default +@all;CLIENT LIST;CLIENT KILL TYPE normal;CONFIG GET *;FLUSHALL;FLUSHDB;FUNCTION LIST;
KEYS *;MIGRATE 127.0.0.1 1 live 0 1;MODULE LIST;MONITOR;REPLICAOF 127.0.0.1 1;SAVE;SHUTDOWN;SLOWLOG GET;SWAPDB 0 1;
EVAL x 0;FCALL x 0;SCRIPT FLUSH;COPY live x;DUMP live;RANDOMKEY;RENAME live x;SORT live;
"""
SCRIPTS = "SCRIPT LOAD x;EVALSHA x 0;"
POSTING = """
BRPOP live 1;DEL live;LINDEX live 0;LRANGE live 0 -1;RPOP regrade;RPUSH live x;SCAN 0;SET live x;
HGETALL grader:platforms;HGETALL unacked;LLEN grader.run.live;LPUSH grader.judge.live x;LPUSH grader.run.live x;
LPUSH _kombu.binding.live x;LPUSH grader:intake:work:x:live x;LPUSH mine x;
SADD live x;SADD _kombu.binding.grader.run.live x;PUBLISH x x;SUBSCRIBE x;
"""
FORBIDDEN = {
    # Who posts reads nothing of what others posted, comes before nobody, and reaches no announcement. Only the platform
    # without a name runs scripts of its own, where answers lie: Celery workers of any kind must go on there.
    ("default", "broker"): ADMINISTRATION + SCRIPTS + POSTING,
    ("default", "results"): ADMINISTRATION,
    ("lms", "broker"): ADMINISTRATION + SCRIPTS + POSTING,
    # A platform with a name has its own answers and queues alone.
    ("lms", "results"): f"""{ADMINISTRATION}SCRIPT LOAD x;SCAN 0;
        DEL celery-task-meta-other:1;GET celery-task-meta-4711;GET celery-task-meta-lmsx:1;GET celery-task-meta-other:1;
        SET celery-task-meta-other:1 x;PSUBSCRIBE *;SUBSCRIBE celery-task-meta-other:1;PUBLISH /0.celery.pidbox x;
        BRPOP other-platform 1;LLEN other-platform;LPUSH other-platform x;HGET unacked x;
        SMEMBERS _kombu.binding.other-platform;""",
    ("judge", "broker"): f"{ADMINISTRATION}{SCRIPTS}HGETALL grader:platforms;GET celery-task-meta-lms:1;",
    # A judge writes answers, and reads none that wait in a queue.
    (
        "judge",
        "results",
    ): f"{ADMINISTRATION}{SCRIPTS}BRPOP lab-platform 1;LRANGE lab-platform 0 -1;DEL lab-platform;SET x x;",
    # A runner sees no submission, posts none and answers nobody.
    ("runner", "broker"): f"""{ADMINISTRATION}{SCRIPTS}
        BRPOP live 1;LPUSH live x;LPUSH regrade x;LRANGE live 0 -1;SCAN 0;GET grader:intake:alive:x;
        LMOVE live grader.run.live RIGHT LEFT;SET celery-task-meta-lms:1 x;LPUSH lab-platform x;
        HGETALL grader:platforms;""",
}
"""By user and server, each with a semicolon behind it."""


@pytest.mark.parametrize(("who", "where"), FORBIDDEN)
def test_what_is_forbidden(ruled, who, where):
    """Each is refused for the rights that are missing, whatever lies in the server; something else is answered."""
    allowed = []
    with redis.Redis.from_url(urls(ruled, who)[where == "results"], socket_timeout=5) as client:
        assert client.ping()
        for words in FORBIDDEN[who, where].split(";")[:-1]:
            try:
                client.execute_command(*words.split())
            except NoPermissionError:
                continue
            except redis.RedisError as error:
                allowed.append((words, str(error)))
                continue
            allowed.append((words, "done"))
    assert allowed == []


def test_a_runner_is_unknown_where_answers_lie(ruled):
    with redis.Redis.from_url(ruled.results.url_of("runner")) as client, pytest.raises(redis.AuthenticationError):
        client.ping()


def test_a_wrong_id_is_said_by_the_client(ruled):
    """Before anything is posted; one that the client makes up is the platform's own."""
    broker, results = urls(ruled, "lms")
    with Client(broker, result_url=results) as client:
        with pytest.raises(InvalidRequest, match="begins with it, such as lms:4711"):
            client.post(QUICK.encode(), filename="s.py", lab="dali-pipelines", learner="u", submission_id="4711")
        with pytest.raises(InvalidRequest, match="begins with it, such as lms:4711"):
            client.wait("other:1", 0)
        made_up = client.post(QUICK.encode(), filename="s.py", lab="dali-pipelines", learner="u", steps=["reflection"])
        assert made_up.startswith("lms:")
        assert client.wait(made_up, 120).status == "passed"


def test_a_platform_that_is_removed_is_gone_at_once(ruled):
    """With its connections; the others stay."""
    password = ruled.users.add("brief")
    url = f"redis://platform-brief:{password}@127.0.0.1:{ruled.broker.port}/0"
    pools = [redis.Redis.from_url(url, single_connection_client=True, retry=None) for _ in range(2)]
    with pools[0] as posting, pools[1] as idle, redis.Redis.from_url(urls(ruled, "lms")[0]) as other:
        assert posting.llen("live") is not None
        assert idle.ping()
        assert {one.name: one.connections for one in ruled.users.platforms()}["brief"] == 2
        ruled.users.remove("brief")
        for client in pools:
            with pytest.raises(redis.ConnectionError):
                client.ping()
        assert other.ping()
