"""The example platforms, in three languages, against the service: what docs/platforms.md promises."""

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis
import rfc8785

from grader_service.judging import verdicts
from grader_service.model.verdict import Provenance
from grader_service.signer.signatures import Signer
from tests.conftest import fresh_database, missing
from tests.platform.platforms import PLATFORMS, node_platform, php_platform, python_platform, tell  # noqa: F401 - fixtures
from tests.service.harness import QUICK, Service, served
from tests.services.kept_port import kept_port
from tests.services.redis_server import redis_server
from tests.waiting import wait_for

pytestmark = pytest.mark.integration
CHECKERS = {
    "node": (
        *("node", "--input-type=module", "-e"),
        "import { readFileSync } from 'node:fs'; import { canonical, checkSignature } from './signature.js';"
        "const verdict = JSON.parse(readFileSync(0, 'utf8')); checkSignature(verdict, process.argv.slice(1));"
        "process.stdout.write(canonical(verdict));",
    ),
    "php": (
        *("php", "-r"),
        "require 'signature.php'; $verdict = json_decode(stream_get_contents(STDIN));"
        "check_signature($verdict, array_slice($argv, 1)); echo canonical($verdict);",
    ),
}
ODD = {
    "numbers": [
        *(0.0, -0.0, 1.0, -2.5, 0.1, 100.0, 1e-6, 1e-7, 1.5e-9, 5e-324, 1e20, 1e21, 1.25e25, 1.7976931348623157e308),
        *(333333333.33333329, 123456789012345680000.0, -9007199254740991, 10),
    ],
    "texts": '/ \u2028 \x7f \x01 \x1f \b\t\n\f\r " \\ ü 漢 \U0001f600',
    "names": {"10": 1, "9": 2, "": 3, "ä": 4, "\ue000": 5, "\U0001f600": 6, "a\nb": 7},
    "empty": [{}, [], None, True],
}


# The warning is of Celery's backend, in this process.
delivers = pytest.mark.filterwarnings("ignore:Call to deprecated setex")


@pytest.fixture(params=["python", "node", "php"])
def platform(request):
    """Each in turn."""
    return request.getfixturevalue(f"{request.param}_platform")


@pytest.fixture(scope="module", params=["one-redis", "two-redis"])
def results(request):
    """The Redis with the answers of `graded` where it is not the broker; else None."""
    if shutil.which("redis-server") is None:
        missing("Redis is not installed (apt-get install redis-server)")
    if request.param == "one-redis":
        yield None
        return
    with redis_server() as server:
        yield server


@pytest.fixture(scope="module")
def graded(postgres, results, tmp_path_factory):
    """A service with a judge and a runner, for all tests of this module."""
    logs = tmp_path_factory.mktemp("logs")
    changes = {"GRADER_LEASE_S": "60"}  # nobody waits for the end of one; a lost one would be a try more
    if results is not None:
        changes["GRADER_RESULT_URL"] = results.url
    with (
        fresh_database(postgres) as url,
        redis_server() as broker,
        served(broker, url, logs, kind=Service, **changes) as made,
    ):
        made.both()
        yield made


@pytest.fixture
def result_url(results):
    """What a platform is given as GRADER_RESULT_URL."""
    return None if results is None else results.url


@pytest.fixture
def key(graded):
    """The service's public key."""
    return Signer.from_folder(graded.state_dir / "keys").public_key


def a_verdict(folder, submission_id="other:1"):
    """Signed with the key of this folder."""
    return Signer.from_folder(folder).sign(verdicts.refused(submission_id, "lab", "archive.link", "no links"))


def test_a_platform_posts_and_reads_its_verdict(platform, graded, result_url, key, tmp_path, request):
    """As a result or as a message, signed with a key that it knows; asked again, it has the same."""
    (tmp_path / "submission.py").write_text(QUICK)
    language = request.node.callspec.params["platform"]
    submission_id = f"{language}:1"
    posted = (str(tmp_path / "submission.py"), submission_id, "reflection")
    done = platform.run(graded.redis.url, f"{'0' * 64} \n{key}", *posted, result_url=result_url)
    verdict = json.loads(done.stdout)
    assert graded.one_verdict(submission_id) == verdict
    assert (verdict["learner"], verdict["cohort"]) == (f"u-{language}", "2026-fall")
    points = f"{verdict['score']:g} of {verdict['max_score']:g}"
    assert (done.returncode, done.stderr) == (0, f"{submission_id} passed: {points}\n")
    stranger = platform.run(graded.redis.url, "0" * 64, *posted, result_url=result_url)
    assert stranger.returncode != 0
    assert "sign" in stranger.stderr
    assert stranger.stdout == ""
    assert graded.one_verdict(submission_id) == verdict


def test_a_refusal_is_said_with_its_reason(platform, graded, result_url, key, tmp_path, request):
    """In one line on standard error, with status 1."""
    (tmp_path / "submission.py").write_text(QUICK)
    submission_id = f"{request.node.callspec.params['platform']}:refused"
    posted = (str(tmp_path / "submission.py"), submission_id, "no-such-step")
    done = platform.run(graded.redis.url, key, *posted, result_url=result_url)
    assert done.returncode == 1, done.stderr
    (said,) = done.stderr.splitlines()
    assert all(word in said for word in (submission_id, "rejected", "message.malformed", "no-such-step"))


def test_nothing_is_posted_where_something_is_missing(platform, redis, tmp_path):
    """A variable, an argument, a file or the form of an id: said in three lines at most, with status 2."""
    (tmp_path / "submission.py").write_text(QUICK)
    path, key = str(tmp_path / "submission.py"), "0" * 64
    for arguments, said in (
        ((None, key, path, "lms:1"), "GRADER_REDIS_URL"),
        ((redis.url, None, path, "lms:1"), "GRADER_PUBLIC_KEYS"),
        ((redis.url, " ", path, "lms:1"), "GRADER_PUBLIC_KEYS"),
        ((redis.url, key, path), "SUBMISSION_ID"),
        ((redis.url, key, path, "lms 1"), "A-Za-z0-9._:-"),
        ((redis.url, key, str(tmp_path / "none.py"), "lms:1"), "none.py"),
        ((redis.url, key, str(tmp_path), "lms:1"), str(tmp_path)),
    ):
        done = platform.run(*arguments)
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
        assert said in done.stderr
        assert len(done.stderr.splitlines()) <= 3
    assert not redis.client().exists("live")


@pytest.mark.parametrize("dead", ["both in one", "broker", "results"])
def test_without_a_redis_one_line_says_so(platform, redis, dead, tmp_path):
    """With its address and status 1, and no trace of the program; nothing was posted."""
    (tmp_path / "submission.py").write_text(QUICK)
    with redis_server() as results:
        away, there = (results, redis) if dead == "results" else (redis, results)
        away.kill()
        result_url = None if dead == "both in one" else results.url
        done = platform.run(redis.url, "0" * 64, str(tmp_path / "submission.py"), "lms:1", result_url=result_url)
        assert not there.client().exists("live")
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 1), done.stderr
    assert "refused" in done.stderr.lower()
    assert f"127.0.0.1:{away.port}" in done.stderr
    assert away.password not in done.stderr


def test_a_full_broker_takes_nothing(platform, redis, tmp_path):
    """It refuses everything; one line says so at once, and nobody waits for a verdict that cannot come."""
    (tmp_path / "submission.py").write_text(QUICK)
    with redis_server() as results, redis.full():
        posted = ("0" * 64, str(tmp_path / "submission.py"), "lms:1")
        done = platform.run(redis.url, *posted, result_url=results.url, timeout_s=30)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 1), done.stderr
    assert "maxmemory" in done.stderr
    assert redis.client().keys() == []


@delivers
def test_a_platform_posts_to_one_redis_and_is_answered_in_the_other(platform, redis, tmp_path):
    """What lies in the wrong one, or is left of an earlier post, is not read."""
    (tmp_path / "submission.py").write_text(QUICK)
    verdict = a_verdict(tmp_path, "lms:1")
    with redis_server() as results, ThreadPoolExecutor(1) as pool:
        tell(results.url, a_verdict(tmp_path / "stranger", "lms:1"), task_id="lms:1")
        posted = (verdict.signature.public_key, str(tmp_path / "submission.py"), "lms:1")
        running = pool.submit(platform.run, redis.url, *posted, result_url=results.url, timeout_s=30)
        wait_for(lambda: redis.client().llen("live") or running.done(), 20)
        # In JavaScript the task has an id of its own, since its verdict is read from the queue.
        assert results.client().exists("celery-task-meta-lms:1") == (platform.command[0] == "node")
        assert redis.client().keys() == [b"live"]
        tell(results.url, verdict, task_id="lms:1", queue="node-platform")
        done = running.result()
    assert done.stderr == "lms:1 rejected: archive.link: no links\n"
    assert (done.returncode, json.loads(done.stdout)) == (1, verdict.model_dump(mode="json"))


@delivers
def test_a_verdict_on_another_submission_is_not_taken_for_ones_own(node_platform, graded, result_url, key, tmp_path):  # noqa: F811
    """One that lies in the queue of a platform in JavaScript, since that was ended while it waited."""
    (tmp_path / "submission.py").write_text(QUICK)
    tell(result_url or graded.redis.url, a_verdict(graded.state_dir / "keys"), queue="node-platform")
    posted = (str(tmp_path / "submission.py"), "node:own", "reflection")
    done = node_platform.run(graded.redis.url, key, *posted, result_url=result_url)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["submission_id"] == "node:own"
    assert done.stderr.startswith("other:1 was answered, which is not waited for here")


@delivers
def test_php_goes_through_tls_to_the_database_of_its_address(php_platform, tmp_path, monkeypatch):  # noqa: F811
    """Where the address says `rediss://…/3`."""
    (tmp_path / "submission.py").write_text(QUICK)
    certificate, secret = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost", "-keyout", secret, "-out", certificate),
        ],
        check=True, capture_output=True,
    )  # fmt: skip
    monkeypatch.setenv("SSL_CERT_FILE", certificate)
    verdict = a_verdict(tmp_path, "php:1")
    tls = ("--tls-cert-file", certificate, "--tls-key-file", secret, "--tls-auth-clients", "no")
    with kept_port() as port, redis_server("--tls-port", str(port), *tls) as server, ThreadPoolExecutor(1) as pool:
        url = f"rediss://:{server.password}@localhost:{port}/3"
        posted = (str(tmp_path / "submission.py"), "php:1")
        running = pool.submit(php_platform.run, url, verdict.signature.public_key, *posted, timeout_s=30)
        inside = server.url.removesuffix("0") + "3"
        wait_for(lambda: redis.Redis.from_url(inside).llen("live") or running.done(), 20)
        tell(inside, verdict, task_id="php:1")
        done = running.result()
    assert done.stderr == "php:1 rejected: archive.link: no links\n"
    assert (done.returncode, json.loads(done.stdout)) == (1, verdict.model_dump(mode="json"))


@pytest.mark.filterwarnings("ignore:Call to deprecated setex")
def test_a_verdict_in_the_place_of_ones_own_is_not_taken(php_platform, tmp_path):  # noqa: F811
    """A genuine one on another submission, where a platform in PHP looks for the result of its task."""
    (tmp_path / "submission.py").write_text(QUICK)
    verdict = a_verdict(tmp_path, "rival:1")
    with redis_server() as server, ThreadPoolExecutor(1) as pool:
        posted = (str(tmp_path / "submission.py"), "php:1")
        running = pool.submit(php_platform.run, server.url, verdict.signature.public_key, *posted, timeout_s=30)
        wait_for(lambda: server.client().llen("live") or running.done(), 20)
        tell(server.url, verdict, task_id="php:1")
        done = running.result()
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "the answer is a verdict on rival:1, not on php:1\n"


@delivers
def test_a_platform_with_celery_is_told_by_a_task(graded, result_url, key, tmp_path):
    """Its worker stores the verdict that comes to its queue; one that another key signed it keeps aside."""
    (tmp_path / "submission.py").write_text(QUICK)
    program = PLATFORMS / "celery_platform.py"
    environment = {**os.environ, "GRADER_REDIS_URL": graded.redis.url, "GRADER_PUBLIC_KEYS": key}
    if result_url is not None:
        environment["GRADER_RESULT_URL"] = result_url
    environment["PYTHONPATH"] = os.pathsep.join([str(PLATFORMS), os.environ.get("PYTHONPATH", "")])
    worker = [sys.executable, "-m", "celery", "-A", "celery_platform", "worker", "-Q", "lab-platform", "-P", "solo"]
    with (tmp_path / "worker.log").open("wb") as log:
        listening = subprocess.Popen(worker, cwd=tmp_path, env=environment, stdout=log, stderr=log)
    try:
        subprocess.run(
            [sys.executable, program, "submission.py", "celery:1", "reflection"],
            cwd=tmp_path, env=environment, check=True, timeout=60,
        )  # fmt: skip
        stored = tmp_path / "verdicts" / "celery:1.json"
        wait_for(lambda: stored.exists() or listening.poll() is not None, 60)
        assert json.loads(stored.read_text()) == graded.one_verdict("celery:1"), (tmp_path / "worker.log").read_text()
        stranger = a_verdict(tmp_path / "other", "celery:2")
        tell(result_url or graded.redis.url, stranger, queue="lab-platform")
        wait_for(lambda: "is not among GRADER_PUBLIC_KEYS" in (tmp_path / "worker.log").read_text(), 30)
        kept = (tmp_path / "unverified" / "celery:2.json").read_text()
        assert json.loads(kept) == stranger.model_dump(mode="json")
        assert [path.name for path in (tmp_path / "verdicts").iterdir()] == ["celery:1.json"]
    finally:
        listening.kill()
        listening.wait()


@pytest.mark.parametrize("language", CHECKERS)
@pytest.mark.usefixtures("php_platform")
def test_signatures_hold_in_every_language(language, tmp_path):
    """Whatever numbers, texts and names a verdict holds; one that was changed by a digit is refused."""
    signer = Signer.from_folder(tmp_path)
    verdict = verdicts.refused("s:1", "lab", "archive.link", "no")
    verdict = verdict.model_copy(update={"provenance": Provenance(grader_version="1", host=ODD)})
    document = signer.sign(verdict).model_dump(mode="json")

    def checked(document):
        return subprocess.run(
            [*CHECKERS[language], signer.public_key],
            cwd=PLATFORMS / language, input=json.dumps(document).encode(), check=False, capture_output=True, timeout=60,
        )  # fmt: skip

    done = checked(document)
    assert (done.returncode, done.stdout) == (0, rfc8785.dumps(document)), done.stderr.decode()
    changed = checked({**document, "score": 100.0})
    assert changed.returncode != 0
    assert b"does not hold" in changed.stderr + changed.stdout
