"""The client of platforms in Python: what it posts, what it reads, and what it says when something is wrong."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from grader_service.client import (
    ArtifactMessage,
    BrokerUnreachable,
    Client,
    InvalidRequest,
    KeyList,
    MessageRejected,
    ReceivedVerdict,
    ReplyTo,
    SignatureInvalid,
    Status,
    TimedOut,
    TryLater,
    UnexpectedAnswer,
    verify,
)
from grader_service.judging import verdicts
from grader_service.model.keys import Revocation
from grader_service.model.progress import ProgressEvent
from grader_service.queue.app import make_answers_app
from grader_service.queue.envelope import open_envelope
from grader_service.service.message import MAX_INLINE_BYTES, parse_message
from grader_service.settings import Settings
from grader_service.signer.canonical_json import canonical_json
from grader_service.signer.signatures import Signer
from tests.command_line import invoked
from tests.levels.parts import ROOT
from tests.platform.platforms import tell
from tests.report import cases
from tests.service.harness import QUICK
from tests.services.redis_server import redis_server
from tests.waiting import wait_for

# The warning is of Celery's backend, in this process.
pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("ignore:Call to deprecated setex")]
LAB = "dali-pipelines"


@pytest.fixture
def signer(tmp_path):
    """The service's."""
    return Signer.from_folder(tmp_path / "keys")


@pytest.fixture(params=["one-redis", "two-redis"])
def results(request, redis):
    """The Redis with the results: the broker itself, or another one."""
    if request.param == "one-redis":
        yield redis
        return
    with redis_server() as other:
        yield other


@pytest.fixture
def client(redis, results, signer):
    """One that accepts that signer's verdicts."""
    result_url = None if results is redis else results.url
    with Client(redis.url, result_url=result_url, public_keys=[signer.public_key]) as made:
        yield made


def answer(results, verdict):
    """Delivers a verdict as the service does, to the task that has its submission's id."""
    tell(results.url, verdict, task_id=verdict.submission_id)


def refusal(signer, code):
    return signer.sign(verdicts.refused("lms:1", LAB, code, f"the reason is {code}"))


def test_intake_reads_what_the_client_posts(client, redis):
    """Every field arrives, under a task id that is the submission's; without an id there is one."""
    posted = client.post(
        QUICK.encode(), filename="s.py", lab=LAB, learner="lea", cohort="2026", submission_id="lms:1",
        steps=["reflection"], queue="regrade", reply_to=ReplyTo(queue="lab-platform", task="lab.ready"),
        progress_to=ReplyTo(queue="lab-progress", task="lab.progress"),
    )  # fmt: skip
    envelope = open_envelope(redis.client().lindex("regrade", 0))
    message = parse_message(envelope.submission)
    assert (posted, envelope.task_id, message.submission_id) == ("lms:1", "lms:1", "lms:1")
    assert (message.lab, message.learner, message.cohort, message.steps) == (LAB, "lea", "2026", ("reflection",))
    assert (message.artifact.filename, message.artifact.inline_bytes()) == ("s.py", QUICK.encode())
    assert message.reply_to == ReplyTo(queue="lab-platform", task="lab.ready")
    assert message.progress_to == ReplyTo(queue="lab-progress", task="lab.progress")
    lying = ArtifactMessage(filename="big.zip", uri="https://files.example/big.zip", sha256="0" * 64)
    names = {client.post(lying, lab=LAB) for _ in range(2)}
    assert {open_envelope(raw).task_id for raw in redis.client().lrange("live", 0, -1)} == names


def test_what_cannot_be_posted_is_said_before_it_is(client, redis, tmp_path):
    """Each problem with what was expected and what came; nothing is on the queues."""
    for arguments, said in (
        ({"submission": b"x"}, "without `filename`"),
        ({"submission": b"x", "filename": "a/b.py"}, "a/b.py"),
        ({"submission": tmp_path / "none.py"}, "none.py cannot be read"),
        ({"submission": b"x" * (MAX_INLINE_BYTES + 1), "filename": "s.py"}, f"at most {MAX_INLINE_BYTES}"),
        ({"submission": b"x", "filename": "s.py", "submission_id": "a b"}, "submission_id.*got 'a b'"),
        ({"submission": b"x", "filename": "s.py", "queue": "lvie"}, "'lvie'.*live or regrade"),
    ):
        with pytest.raises(InvalidRequest, match=said):
            client.post(**{"lab": LAB, "submission_id": "lms:1", **arguments})
    for urls, said in (
        (("http://127.0.0.1", None), "the broker cannot.*Expected redis://"),
        ((redis.url, "http://127.0.0.1"), "the results' Redis cannot.*Expected redis://"),
    ):
        with pytest.raises(InvalidRequest, match=said):
            Client(urls[0], result_url=urls[1])
    assert not redis.client().exists("live", "regrade")


def test_a_refused_message_is_an_error_and_a_rejected_submission_a_verdict(client, results, signer):
    """The first is the platform's to mend, or to post again; the second is the learner's."""
    for error, codes in (
        (TryLater, ("queue.full", "queue.rate_limited")),
        (MessageRejected, ("message.malformed", "artifact.not_found", "submission.conflict")),
    ):
        for code in codes:
            answer(results, refusal(signer, code))
            with pytest.raises(error, match=f"the reason is {code}") as caught:
                client.wait("lms:1", 5)
            assert caught.value.verdict.code == code
    for code in ("archive.link", "submission.empty"):
        answer(results, refusal(signer, code))
        verdict = client.wait("lms:1", 5)
        assert (verdict.status, verdict.code) == (Status.REJECTED, code)


def test_a_submission_posted_again_has_another_answer(client, results, signer):
    """Whoever waits is not told of the time when the queue was full."""
    answer(results, refusal(signer, "queue.full"))
    client.post(b"x = 1", filename="s.py", lab=LAB, submission_id="lms:1")
    with pytest.raises(TimedOut, match=f"no verdict came within 0 s to .*:{results.port}/0;"):
        client.wait("lms:1", 0)


def test_progress_is_heard_while_a_verdict_is_waited_for(client, results, signer):
    """With what a newer service adds left out, and what is no event passed over; nothing is left in Redis."""
    queue = "lms:1.progress"
    event = ProgressEvent(
        submission_id="lms:1", run_id="r", stage="learner", elapsed_s=7.5, limit_s=900.0, line="epoch 1",
        at=datetime.now(UTC),
    )  # fmt: skip
    results.client().lpush(queue, b"junk", b'{"body": "e30="}', b"[]")
    app = make_answers_app(Settings(redis_url=results.url))
    app.send_task("progress", kwargs={"progress": event.model_dump(mode="json") | {"later": 1}}, queue=queue)
    heard = []

    def hear(came):
        heard.append(came)
        answer(results, refusal(signer, "archive.link"))

    verdict = client.wait("lms:1", 20, progress_queue=queue, on_progress=hear)
    assert (heard, verdict.code) == ([event], "archive.link")
    assert not results.client().keys(f"*{queue}")


def test_submissions_go_to_one_redis_and_verdicts_come_from_the_other(redis, signer):
    """Neither has what belongs into the other."""
    verdict = refusal(signer, "archive.link")
    with (
        redis_server() as results,
        Client(redis.url, result_url=results.url, public_keys=[signer.public_key]) as client,
    ):
        client.post(b"x = 1", filename="s.py", lab=LAB, submission_id="lms:1")
        assert (redis.client().keys(), results.client().keys()) == ([b"live"], [])
        answer(redis, verdict)  # where this client does not look
        with pytest.raises(TimedOut):
            client.wait("lms:1", 0)
        answer(results, verdict)
        assert client.wait("lms:1", 5).document == verdict.model_dump(mode="json")


def test_who_gave_the_brokers_address_alone_is_told_of_the_other(redis):
    """No verdict ever comes to the broker where the service keeps results elsewhere; whoever gave both is not."""
    for result_url, told in ((None, True), (redis.url, True), (redis.url.replace("/0", "/1"), False)):
        with Client(redis.url, result_url=result_url) as client, pytest.raises(TimedOut) as late:
            client.wait("lms:1", 0)
        assert ("`result_url`" in str(late.value)) is told


def test_the_command_posts_to_one_redis_and_reads_from_the_other(redis, signer, tmp_path):
    """As the settings name them, each with the password in its file."""
    (tmp_path / "s.py").write_text(QUICK)
    words = ("submit", str(tmp_path / "s.py"), "--submission-id", "lms:1", "--wait", "60")
    with redis_server() as results, ThreadPoolExecutor(1) as pool:
        settings = {"GRADER_STATE_DIR": str(tmp_path)}
        for name, server in (("REDIS", redis), ("RESULT", results)):
            (tmp_path / name).write_text(server.password)
            settings[f"GRADER_{name}_URL"] = f"redis://127.0.0.1:{server.port}/0"
            settings[f"GRADER_{name}_PASSWORD_FILE"] = str(tmp_path / name)
        running = pool.submit(invoked, *words, status=5, **settings)
        wait_for(lambda: redis.client().llen("live") or running.done(), 20)
        answer(results, refusal(signer, "archive.link"))
        assert "archive.link" in running.result().stdout


def test_only_the_services_verdicts_are_taken(client, results, signer, tmp_path):
    """Not one that was changed, another key's, or something that is none."""
    good = refusal(signer, "archive.link")
    answer(results, good.model_copy(update={"feedback": "well done"}))
    with pytest.raises(SignatureInvalid, match="does not hold"):
        client.wait("lms:1", 5)
    stranger = Signer.from_folder(tmp_path / "other")
    answer(results, refusal(stranger, "archive.link"))
    with pytest.raises(SignatureInvalid, match=f"signed by {stranger.public_key}; expected {signer.public_key}"):
        client.wait("lms:1", 5)
    another = signer.sign(good.model_copy(update={"submission_id": "rival:1", "signature": None}))
    tell(results.url, another, task_id="lms:1")
    with pytest.raises(UnexpectedAnswer, match="is a verdict on rival:1; do not record it"):
        client.wait("lms:1", 5)
    unread = signer.sign(verdicts.refused("unknown", "unknown", "message.malformed", "the message cannot be read"))
    tell(results.url, unread, task_id="lms:1")
    with pytest.raises(MessageRejected, match="the message cannot be read"):
        client.wait("lms:1", 5)
    results.client().set("celery-task-meta-lms:1", '{"status": "FAILURE", "result": {"exc_type": "NotRegistered"}}')
    with pytest.raises(UnexpectedAnswer, match="NotRegistered"):
        client.wait("lms:1", 5)
    answer(results, good)
    assert client.wait("lms:1", 5).document == good.model_dump(mode="json")


def test_a_key_is_believed_for_its_time(signer):
    """With the list that the service's owner publishes: not when it is revoked, nor for another time than its own."""
    verdict = refusal(signer, "archive.link")
    (key,) = signer.keys().keys
    verify(verdict, KeyList(keys=(key,)))
    past = datetime(2026, 1, 1, tzinfo=UTC)
    stolen = Revocation(at=past, since=None, reason="stolen")
    for changes, said in (({"revoked": stolen}, "is revoked: stolen"), ({"until": past}, "was not in use at")):
        with pytest.raises(SignatureInvalid, match=f"signed by {signer.public_key}, which {said}"):
            verify(verdict, KeyList(keys=(key.model_copy(update=changes),)))
    with pytest.raises(InvalidRequest, match="64 hexadecimal digits"):
        verify(verdict, ["x"])
    with pytest.raises(SignatureInvalid, match="and none was given"):
        verify(verdict, KeyList(keys=()))


def test_verdicts_of_other_versions_are_read_and_verified(signer):
    """An older one lacks fields of ours, a newer one has others; both are typed, and signed as they came."""
    older = json.loads((ROOT / "docs" / "gpu" / "verdict-h100.json").read_text())
    newer = refusal(signer, "archive.link").model_dump(mode="json", exclude={"signature"}) | {"later": {"of": "ours"}}
    newer["provenance"]["later"] = 1
    newer["signature"] = signer.signature(canonical_json(newer)).model_dump(mode="json")
    for document, key in ((older, older["signature"]["public_key"]), (newer, signer.public_key)):
        verdict = ReceivedVerdict.read(document)
        verify(verdict, [key])
        assert verdict.document == document
        assert verdict.status.value == document["status"]


def test_the_run_and_the_parts_of_feedback_are_typed(signer):
    """What a page for learners needs; of a later version's fields inside them the document tells."""
    for made in (cases.stopped(), cases.told()):
        document = signer.sign(made.model_copy(update={"signature": None})).model_dump(
            mode="json", exclude={"signature"}
        )
        document["run"]["later"] = 1
        document["checks"][0]["parts"]["later"] = {"of": "ours"}
        document["signature"] = signer.signature(canonical_json(document)).model_dump(mode="json")
        verdict = ReceivedVerdict.read(document)
        verify(verdict, [signer.public_key])
        assert verdict.document == document
        assert verdict.run == made.run
        assert [check.told for check in verdict.checks] == [check.parts for check in made.checks]


def test_a_redis_that_refuses_is_named_without_its_password(redis):
    """Whichever of the two asks for another password."""
    wrong = redis.url.replace(redis.password, "guess")
    other = wrong.replace("/0", "/1")
    for client, said in (
        (Client(wrong), f"the broker at redis://127.0.0.1:{redis.port}/0 refuses"),
        (Client(redis.url, result_url=other), f"the results' Redis at redis://127.0.0.1:{redis.port}/1 refuses"),
    ):
        with client, pytest.raises(BrokerUnreachable, match=said) as refused:
            client.wait("lms:1", 60)  # which is not waited for
        assert "guess" not in str(refused.value)


@pytest.mark.parametrize(
    ("separate", "dead", "said"),
    [
        (False, "broker", "the broker .* did not delete .* nothing was posted"),
        (True, "broker", "the broker .* did not accept submission lms:1"),
        (True, "results", "the results' Redis .* did not delete .* nothing was posted"),
    ],
)
def test_a_redis_that_is_away_when_something_is_posted_is_named_without_its_password(separate, dead, said, redis):
    """And nothing is posted whose verdict could not be told from an earlier one."""
    with redis_server() as other, Client(redis.url, result_url=other.url if separate else None) as client:
        away, there = (redis, other) if dead == "broker" else (other, redis)
        away.kill()
        with pytest.raises(BrokerUnreachable, match=said) as unposted:
            client.post(b"x = 1", filename="s.py", lab=LAB, submission_id="lms:1")
        assert not there.client().exists("live")
    for text in (f"redis://127.0.0.1:{away.port}/0", "secrets/redis_password"):
        assert text in str(unposted.value)
    assert away.password not in str(unposted.value)


def test_only_the_redis_that_is_read_must_be_there_while_one_waits(client, redis, results, signer):
    """Without the broker a verdict is read; without the results' Redis the error names that one."""
    name = "the broker" if results is redis else "the results' Redis"
    if results is not redis:
        redis.kill()
    answer(results, refusal(signer, "archive.link"))
    assert client.wait("lms:1", 5).code == "archive.link"
    results.kill()
    with pytest.raises(BrokerUnreachable, match=f"{name} at .*:{results.port}/0 did not answer within 0 s") as away:
        client.wait("lms:1", 0)
    assert results.password not in str(away.value)


def test_waiting_survives_a_redis_that_restarts(client, results, signer):
    """A moment's absence is passed over."""
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.wait, "lms:1", 120)
        results.kill()
        results.start()
        answer(results, refusal(signer, "archive.link"))
        assert waiting.result().code == "archive.link"
