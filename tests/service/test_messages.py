"""Whatever comes on the queue is answered or kept, and the next message is graded all the same."""

import base64
import hashlib
import json

import pytest
from redis.exceptions import ConnectionError as BrokerGone

from grader_service.errors import InfrastructureError
from grader_service.queue import intake_loop
from grader_service.queue.envelope import MAX_BYTES, Unreadable, open_envelope
from grader_service.queue.intake_loop import IntakeLoop
from grader_service.retry_policy import RetryPolicy
from grader_service.service.message import MAX_INLINE_BYTES
from grader_service.signer.signatures import signed_by
from grader_service.store.tables import DeadLetterRow, EventRow, SubmissionRow
from tests.service.faults import body, envelope, explained, push
from tests.service.harness import QUICK, SLOW, a_message
from tests.waiting import wait_for

pytestmark = pytest.mark.integration

INLINE = a_message(source="x = 1")["artifact"]
DEEP = json.loads("[" * 900 + "]" * 900)


def refused_messages():
    """Name, and message in Redis. Every one has a task id somewhere."""
    good = body(submission=a_message())
    yield "another task", envelope(good, task="os.system")
    yield "no task name", envelope(good, task=None)
    yield "a task name of another type", envelope(good, task=DEEP)
    yield "pickle", envelope(good, **{"content-type": "application/x-python-serialize"})
    yield "no content type", envelope(good, **{"content-type": None})
    yield "a body that is not Base64", envelope("%%%")
    yield "a body that is not JSON", envelope(base64.b64encode(b"\xff\xfe{").decode())
    yield "a body too deep", envelope(base64.b64encode(b"[" * 50_000).decode())
    yield "no body", envelope(None)
    yield "a body that is no list", envelope(base64.b64encode(b'{"args": []}').decode())
    yield "no headers", envelope(good, headers=None)
    yield "headers of another type", envelope(good, headers=[1])
    yield "an id that no database can hold", envelope(good, headers={"task": "grader.grade", "id": "a\x00b"})
    yield "half a character as id", envelope(good, headers={"task": "grader.grade", "id": "\ud800"})
    compressed = {"task": "grader.grade", "id": "compressed", "compression": "gzip"}
    yield "compressed", envelope(good, headers=compressed, task_id="compressed")
    yield "too large", envelope(good, filler="x" * MAX_BYTES)
    yield "two arguments", envelope(body(a_message(), DEEP))
    yield "another argument", envelope(body(submission=a_message(), user="root"))
    yield "no argument", envelope(body())
    for name, value in {"null": None, "a number": 7, "a text": "x" * 100_000, "a list": [1], "nested": DEEP}.items():
        yield f"{name} as submission", envelope(body(submission=value))
    wrong = {
        "an unknown field": {"x" * 20_000: 1},
        "an unknown field, deep": {"extra": DEEP},
        "a deep learner": {"learner": DEEP},
        "an id with spaces": {"submission_id": "a b"},
        "an id with a line break": {"submission_id": "a\n"},
        "an id too long": {"submission_id": "a" * 129},
        "an empty learner": {"learner": ""},
        "a time without zone": {"submitted_at": "2026-01-01T00:00:00"},
        "no artifact": {"artifact": None},
        "both sources": {"artifact": {**INLINE, "uri": "file:///x", "sha256": "0" * 64}},
        "neither source": {"artifact": {"filename": "s.py"}},
        "an address without digest": {"artifact": {"filename": "s.py", "uri": "file:///x"}},
        "inline not Base64": {"artifact": {"filename": "s.py", "inline": "?"}},
        "inline too large": {"artifact": {**INLINE, "inline": "A" * (MAX_INLINE_BYTES // 3 * 4 + 4)}},
        "a path as filename": {"artifact": {**INLINE, "filename": "../s.py"}},
        "half a character as filename": {"artifact": {**INLINE, "filename": "\udc80.py"}},
        "an unknown lab": {"lab": "no-such-lab"},
        "an unknown step": {"steps": ["reflection", "no-such-step"]},
        "our own queue to reply to": {"reply_to": {"queue": "live", "task": "grader.grade"}},
        "our own list to reply to": {"reply_to": {"queue": "grader:intake:work:x", "task": "t"}},
        "a reply task with spaces": {"reply_to": {"queue": "platform", "task": "a b"}},
        "our own queue for progress": {"progress_to": {"queue": "grader.judge.progress", "task": "t"}},
        "progress without a task": {"progress_to": {"queue": "platform"}},
    }
    for name, change in wrong.items():
        yield name, envelope(body(submission=a_message(**change)))


def test_what_cannot_be_graded_is_rejected_and_the_next_is_graded(graded):
    """Each malformed message is answered with a `rejected` verdict, stored nowhere, and delays nobody (C8)."""
    refused = dict(refused_messages())
    for message in refused.values():
        push(graded, message)
    submission_id, good = graded.post()
    for name, message in refused.items():
        answer = graded.result(message["properties"]["correlation_id"], 20)
        assert (answer["status"], answer["code"]) == ("rejected", "message.malformed"), name
        assert answer["score"] is None, name
        assert len(answer["feedback"]) < 3000, name
        assert graded.rows(SubmissionRow, SubmissionRow.submission_id == answer["submission_id"]) == [], name
    assert graded.result(good)["status"] == "passed"
    explained(graded, submission_id)


def test_a_message_without_any_task_id_is_kept_and_counted(graded):
    """Nobody can be answered, so the bytes are kept for the operator and the audit trail says so (C8)."""
    client = graded.redis.client()
    nameless = [b"", b"\xff\xfe\x00", b"[]", b"null", b"{", b"[" * 100_000, b'{"headers": {}}', b'{"body": "x"}']
    before = len(graded.rows(EventRow, EventRow.kind == "refused"))
    for raw in nameless:
        push(graded, raw, "regrade")
    wait_for(lambda: len(graded.rows(EventRow, EventRow.kind == "refused")) == before + len(nameless), 20)
    kept = graded.rows(DeadLetterRow)
    assert sorted((row["data"], row["queue"]) for row in kept) == [(raw, "regrade") for raw in sorted(nameless)]
    assert wait_for(lambda: not client.exists("regrade") and not client.keys("grader:intake:work:*"), 10)
    with pytest.raises(Unreadable, match="bytes; expected at most") as caught:
        open_envelope(b"x" * ((64 << 20) + 1))
    assert caught.value.task_id is None


def test_odd_wake_ups_are_dropped_and_workers_go_on(graded):
    """A wake-up of ours that names no run, no task, or nothing at all ends no worker (C8)."""
    for stage in ("run", "judge"):
        queue = f"grader.{stage}.live"
        graded.app.send_task(f"grader.{stage}", args=("f" * 32,), queue=queue)
        graded.app.send_task(f"grader.{stage}", args=(), queue=queue)
        graded.app.send_task(f"grader.{stage}", kwargs={"what": 1}, queue=queue)
        graded.app.send_task("no.such.task", queue=queue)
        push(graded, envelope("%%%", task=f"grader.{stage}"), queue)
        push(graded, envelope(body(), **{"content-type": "application/x-python-serialize"}), queue)
        push(graded, b"\xff not JSON", queue)
        push(graded, b'{"body": 1}', queue)
    _, task_id = graded.post()
    assert graded.result(task_id, 20)["status"] == "passed"
    assert all(worker.process.poll() is None for worker in graded.workers)


def test_arguments_may_be_given_by_position(graded):
    """`args` in place of `kwargs` means the same, and a message with a Celery priority is taken too."""
    message = graded.message()
    by_position = graded.app.send_task("grader.grade", args=(message,), queue="live")
    urgent = graded.app.send_task("grader.grade", kwargs={"submission": message}, queue="live", priority=6)
    verdicts = [graded.result(sent.id) for sent in (by_position, urgent)]
    assert verdicts[0] == verdicts[1]
    assert (verdicts[0]["submission_id"], verdicts[0]["status"]) == (message["submission_id"], "passed")
    assert [step["id"] for step in verdicts[0]["steps"]] == ["reflection"]


def test_everybody_who_asks_for_a_submission_gets_the_same_verdict(graded):
    """Before it is done and after, by result and by message, for one run (B8)."""
    client = graded.redis.client()
    message = graded.message(source=SLOW.format(seconds=0.5))
    early = [
        graded.post({**message, "reply_to": {"queue": f"inbox-{n}", "task": "lab.ready"}}, task_id=task_id)[1]
        for n, task_id in enumerate(["asked-1", "asked-2", "asked-2"])
    ]
    verdict = graded.result(early[0])
    assert signed_by(verdict) is not None
    late = graded.post({**message, "reply_to": {"queue": "inbox-late", "task": "lab.ready"}})[1]
    assert [graded.result(task_id) for task_id in (early[1], late)] == [verdict, verdict]
    for queue in ("inbox-0", "inbox-1", "inbox-2", "inbox-late"):
        wait_for(lambda queue=queue: client.llen(queue), 10)
        told = json.loads(client.lindex(queue, 0))
        assert told["headers"]["task"] == "lab.ready"
        assert f"verdict-{verdict['verdict_id']}" in told["headers"]["id"]
        assert json.loads(base64.b64decode(told["body"]))[1]["verdict"] == verdict
    submission_id = message["submission_id"]
    assert graded.one_verdict(submission_id) == verdict
    assert [run["fence"] for run in graded.runs(submission_id)] == [2]
    assert explained(graded, submission_id).count("repeated") == 3
    assert wait_for(lambda: not graded.undelivered(), 10)
    assert [client.llen(f"inbox-{n}") for n in range(3)] == [1, 1, 1]


def test_an_id_means_one_content_for_ever(graded):
    """Other bytes, or other steps, under an id that was used are rejected; the first verdict stands."""
    message = graded.message()
    submission_id, task_id = graded.post(message)
    first = graded.result(task_id)
    other_bytes = graded.message(submission_id, source=f"{QUICK}# changed\n", learner=message["learner"])
    for changed, differs in ((other_bytes, "SHA-256 was"), ({**message, "steps": ["baseline"]}, "now baseline")):
        answer = graded.result(graded.post(changed)[1])
        assert (answer["status"], answer["code"]) == ("rejected", "submission.conflict")
        assert differs in answer["feedback"]
        assert "stands" in answer["feedback"]
    assert graded.one_verdict(submission_id) == first
    same_bytes = {**message, "submission_id": f"{submission_id}:again"}
    again = graded.result(graded.post(same_bytes)[1])
    assert again["status"] == "passed"
    assert again["verdict_id"] != first["verdict_id"]


def test_artifacts_are_fetched_from_permitted_places_only(graded):
    """By address and digest; wrong bytes, nothing there, or a place that is not ours to read are said in words."""
    outbox = graded.state_dir / "outbox"
    outbox.mkdir()
    (outbox / "s.py").write_text(QUICK)
    (graded.state_dir / "secret.py").write_text(QUICK)
    digest = hashlib.sha256(QUICK.encode()).hexdigest()
    other = hashlib.sha256(b"other").hexdigest()
    root = f"file://{graded.state_dir}"
    cases = {
        f"{root}/outbox/s.py": (other, "artifact.digest_mismatch"),
        f"{root}/outbox/none.py": (other, "artifact.not_found"),
        f"{root}/outbox/": (other, "artifact.not_found"),
        f"{root}/secret.py": (digest, "artifact.source_not_allowed"),
        f"{root}/outbox/../secret.py": (digest, "artifact.source_not_allowed"),
        f"{root}/outbox/%2e%2e/secret.py": (digest, "artifact.source_not_allowed"),
        f"{root}/outboxes/s.py": (digest, "artifact.source_not_allowed"),
        "https://example.invalid/s.py": (digest, "artifact.source_not_allowed"),
        "simplecache::file:///etc/passwd": (digest, "artifact.source_not_allowed"),
        "/etc/passwd": (digest, "artifact.source_not_allowed"),
    }
    for uri, (sha256, code) in cases.items():
        artifact = {"filename": "s.py", "uri": uri, "sha256": sha256}
        answer = graded.result(graded.post(graded.message(artifact=artifact))[1], 20)
        assert (answer["status"], answer["code"]) == ("rejected", code), uri
    inline = graded.message()["artifact"]
    answer = graded.result(graded.post(graded.message(artifact={**inline, "sha256": other}))[1])
    assert answer["code"] == "artifact.digest_mismatch"
    fetched = graded.message(artifact={"filename": "s.py", "uri": f"{root}/outbox/s.py", "sha256": digest})
    checked = graded.message(artifact={**inline, "sha256": digest})
    for task_id in [graded.post(message)[1] for message in (fetched, checked)]:
        assert graded.result(task_id)["provenance"]["submission_sha256"] == digest


def test_a_message_on_which_we_fail_is_kept_and_answered(redis):
    """What intake itself fails on is kept for the operator; the message behind it is taken."""
    client = redis.client()
    handled, refused, kept = [], [], []

    def handle(messages, purpose):
        if "bad" in [message.task_id for message in messages]:
            raise ZeroDivisionError
        handled.extend((message.task_id, purpose) for message in messages)
        return [True] * len(messages)

    loop = IntakeLoop(client, handle, refused.append, lambda *what: kept.append(what))
    for task_id in ("bad", "good"):
        client.lpush("regrade", json.dumps(envelope(body(submission={}), task_id=task_id)))
    assert [loop.take(), loop.take()] == [True, False]
    assert handled == [("good", "regrade")]
    assert [problem.task_id for problem in refused] == ["bad"]
    (raw, *what), reason = kept[0][:3], kept[0][3]
    assert (json.loads(raw)["headers"]["id"], *what) == ("bad", "regrade", "bad")
    assert reason.endswith("ZeroDivisionError")
    assert client.keys("grader:intake:work:*") == []


def test_what_our_side_is_not_ready_for_holds_up_nobody(redis, monkeypatch):
    """A message for which our side is not ready goes to the end of its queue, again and again, and is never dropped."""
    monkeypatch.setattr(intake_loop, "MESSAGES", RetryPolicy(max_attempts=1))
    client = redis.client()
    seen = []

    def handle(messages, _):
        names = [message.task_id for message in messages]
        seen.append(names)
        if "slow" in names and len(seen) < 4:
            raise InfrastructureError("the store is away")
        return [True] * len(messages)

    loop = IntakeLoop(client, handle, pytest.fail, pytest.fail)
    for task_id in ("slow", "quick"):
        client.lpush("live", json.dumps(envelope(body(submission={}), task_id=task_id)))
    assert [loop.take() for _ in range(3)] == [True, True, False]
    assert seen == [["slow", "quick"], ["slow"], ["quick"], ["slow"]]
    assert client.keys("live") + client.keys("grader:intake:work:*") == []


def test_what_a_consumer_had_in_hand_goes_back_to_the_head(redis):
    """At once when it was told to stop, and after a while when it died; nobody takes from the living."""
    client = redis.client()
    messages = [json.dumps(envelope(body(submission={}), task_id=str(number))) for number in range(3)]
    client.lpush("live", *messages)

    def die(*_):
        raise BrokerGone("killed here")

    dead = IntakeLoop(client, die, die, die, alive_s=60, name="dead")
    dead._beat()
    with pytest.raises(BrokerGone):
        dead.take()
    other = IntakeLoop(client, die, die, die, name="other")
    assert other.recover() == 0
    assert client.llen("grader:intake:work:dead:live") == 3
    assert client.delete("grader:intake:alive:dead") == 1  # as if its time had run out
    assert other.recover() == 3
    with pytest.raises(BrokerGone):
        other.take()
    other.stop()
    other.run()
    assert [json.loads(raw)["headers"]["id"] for raw in client.lrange("live", 0, -1)] == ["2", "1", "0"]
