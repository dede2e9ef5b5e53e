"""The client of platforms in Python: what it posts, what it reads, and what it says when something is wrong."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from grader_service import verdicts
from grader_service.canonical_json import canonical_json
from grader_service.client import (
    ArtifactMessage,
    BrokerUnreachable,
    Client,
    InvalidRequest,
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
from grader_service.queue.app import make_app
from grader_service.queue.envelope import open_envelope
from grader_service.queue.letters import deliver
from grader_service.service.message import MAX_INLINE_BYTES, parse_message
from grader_service.settings import Settings
from grader_service.signing import Signer
from grader_service.store.outbox import Letter
from tests.levels.parts import ROOT
from tests.service.harness import QUICK

# The warning is of Celery's backend, in this process.
pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("ignore:Call to deprecated setex")]
LAB = "dali-pipelines"


@pytest.fixture
def signer(tmp_path):
    """The service's."""
    return Signer.from_folder(tmp_path / "keys")


@pytest.fixture
def client(redis, signer):
    """One that accepts that signer's verdicts."""
    with Client(redis.url, public_keys=[signer.public_key]) as made:
        yield made


def answer(redis, verdict):
    """Delivers a verdict as the service does, to the task that has its submission's id."""
    app = make_app(Settings(redis_url=redis.url))
    deliver(app, Letter(1, verdict.submission_id, None, None, verdict.model_dump_json(), 0))


def refusal(signer, code):
    return signer.sign(verdicts.refused("lms:1", LAB, code, f"the reason is {code}"))


def test_intake_reads_what_the_client_posts(client, redis):
    """Every field arrives, under a task id that is the submission's; without an id there is one."""
    posted = client.post(
        QUICK.encode(), filename="s.py", lab=LAB, learner="lea", cohort="2026", submission_id="lms:1",
        steps=["reflection"], queue="regrade", reply_to=ReplyTo(queue="lab-platform", task="lab.ready"),
    )  # fmt: skip
    envelope = open_envelope(redis.client().lindex("regrade", 0))
    message = parse_message(envelope.submission)
    assert (posted, envelope.task_id, message.submission_id) == ("lms:1", "lms:1", "lms:1")
    assert (message.lab, message.learner, message.cohort, message.steps) == (LAB, "lea", "2026", ("reflection",))
    assert (message.artifact.filename, message.artifact.inline_bytes()) == ("s.py", QUICK.encode())
    assert message.reply_to == ReplyTo(queue="lab-platform", task="lab.ready")
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
    with pytest.raises(InvalidRequest, match="Expected redis://"):
        Client("http://127.0.0.1")
    assert not redis.client().exists("live", "regrade")


def test_a_refused_message_is_an_error_and_a_rejected_submission_a_verdict(client, redis, signer):
    """The first is the platform's to mend, or to post again; the second is the learner's."""
    for error, codes in (
        (TryLater, ("queue.full", "queue.rate_limited")),
        (MessageRejected, ("message.malformed", "artifact.not_found", "submission.conflict")),
    ):
        for code in codes:
            answer(redis, refusal(signer, code))
            with pytest.raises(error, match=f"the reason is {code}") as caught:
                client.wait("lms:1", 5)
            assert caught.value.verdict.code == code
    for code in ("archive.link", "submission.empty"):
        answer(redis, refusal(signer, code))
        verdict = client.wait("lms:1", 5)
        assert (verdict.status, verdict.code) == (Status.REJECTED, code)


def test_a_submission_posted_again_has_another_answer(client, redis, signer):
    """Whoever waits is not told of the time when the queue was full."""
    answer(redis, refusal(signer, "queue.full"))
    client.post(b"x = 1", filename="s.py", lab=LAB, submission_id="lms:1")
    with pytest.raises(TimedOut, match="no verdict came within 0 s"):
        client.wait("lms:1", 0)


def test_only_the_services_verdicts_are_taken(client, redis, signer, tmp_path):
    """Not one that was changed, another key's, or something that is none."""
    good = refusal(signer, "archive.link")
    answer(redis, good.model_copy(update={"feedback": "well done"}))
    with pytest.raises(SignatureInvalid, match="does not hold"):
        client.wait("lms:1", 5)
    stranger = Signer.from_folder(tmp_path / "other")
    answer(redis, refusal(stranger, "archive.link"))
    with pytest.raises(SignatureInvalid, match=f"signed by {stranger.public_key}; expected {signer.public_key}"):
        client.wait("lms:1", 5)
    redis.client().set("celery-task-meta-lms:1", '{"status": "FAILURE", "result": {"exc_type": "NotRegistered"}}')
    with pytest.raises(UnexpectedAnswer, match="NotRegistered"):
        client.wait("lms:1", 5)
    answer(redis, good)
    assert client.wait("lms:1", 5).document == good.model_dump(mode="json")


def test_verdicts_of_other_versions_are_read_and_verified(signer):
    """An older one lacks fields of ours, a newer one has others; both are typed, and signed as they came."""
    older = json.loads((ROOT / "docs" / "gpu" / "verdict-h100.json").read_text())
    newer = refusal(signer, "archive.link").model_dump(mode="json", exclude={"signature"}) | {"later": {"of": "ours"}}
    newer["provenance"]["later"] = 1
    newer["signature"] = {
        **refusal(signer, "archive.link").model_dump(mode="json")["signature"],
        "value": signer._key.sign(canonical_json(newer)).hex(),
    }
    for document, key in ((older, older["signature"]["public_key"]), (newer, signer.public_key)):
        verdict = ReceivedVerdict.read(document)
        verify(verdict, [key])
        assert verdict.document == document
        assert verdict.status.value == document["status"]


def test_a_broker_that_does_not_take_it_is_named_without_its_password(redis):
    """Away, or with another password."""
    with (
        Client(redis.url.replace(redis.password, "guess")) as stranger,
        pytest.raises(BrokerUnreachable, match=f"127.0.0.1:{redis.port}") as refused,
    ):
        stranger.wait("lms:1", 60)  # which is not waited for
    redis.kill()
    with Client(redis.url) as client:
        with pytest.raises(BrokerUnreachable, match="did not take submission lms:1") as away:
            client.post(b"x = 1", filename="s.py", lab=LAB, submission_id="lms:1")
        with pytest.raises(BrokerUnreachable, match="did not answer within 0 s"):
            client.wait("lms:1", 0)
    assert "guess" not in str(refused.value)
    assert redis.password not in str(away.value)


def test_waiting_survives_a_broker_that_restarts(client, redis, signer):
    """A moment's absence is passed over."""
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.wait, "lms:1", 120)
        redis.kill()
        redis.start()
        answer(redis, refusal(signer, "archive.link"))
        assert waiting.result().code == "archive.link"
