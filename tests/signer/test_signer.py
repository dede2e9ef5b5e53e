"""`grader signer` as a process of its own: what it signs, what it refuses, and what happens while it is away."""

import json
import signal
import stat
from datetime import UTC, datetime, timedelta

import pytest

from grader_service.errors import ConfigurationError, InfrastructureError
from grader_service.judging import verdicts
from grader_service.model.erasure import ErasureNote
from grader_service.model.keys import NEAR
from grader_service.settings import Settings
from grader_service.signer import key_folder
from grader_service.signer.asking import SocketSigner
from grader_service.signer.canonical_json import canonical_json
from grader_service.signer.chosen import signer_of
from grader_service.signer.serving import RequestHandler
from grader_service.signer.signatures import Signer, SignerAway, signed_by
from tests.command_line import grader, invoked
from tests.signer.process import a_signer


def a_verdict():
    """One that is dated now."""
    return verdicts.refused("s:1", "lab", "archive.link", "no")


def a_note():
    now = datetime.now(UTC).replace(microsecond=0)
    return ErasureNote(
        erasure_id="er-1",
        learner_sha256="0" * 64,
        begun_at=now,
        finished_at=now,
        removed={"runs": 1},
        by="operator:ann",
    )


@pytest.fixture
def process(tmp_path):
    with a_signer(tmp_path) as made:
        yield made


@pytest.fixture
def asking(process, tmp_path):
    return SocketSigner(tmp_path / "socket")


def ended(process):
    """Its log, one object a line, after it was told to stop."""
    process.send_signal(signal.SIGTERM)
    lines = process.communicate(timeout=20)[0].splitlines()
    assert process.returncode == 0
    return [json.loads(line) for line in lines]


def test_it_signs_verdicts_and_notes_and_says_which(asking, process, tmp_path):
    """With the key that lies beside it; each is in its log, and the socket is for its user and group."""
    made = a_verdict()
    for _ in range(2):
        verdict = asking.sign(made)
    note = asking.sign_document(a_note().model_dump(mode="json", exclude={"signature"}))
    key = key_folder.public_hex(key_folder.private_key(tmp_path / "keys"))
    assert signed_by(verdict.model_dump(mode="json")) == signed_by(note) == key == asking.public_key
    assert stat.S_IMODE((tmp_path / "socket").stat().st_mode) == 0o660
    signed = [line for line in ended(process) if line["event"] == "signed"]
    assert [(line["kind"], line["id"], line["number"]) for line in signed] == [
        ("verdict", made.verdict_id, 1), ("verdict", made.verdict_id, 2), ("erasure", "er-1", 1)
    ]  # fmt: skip
    assert {line["key_id"] for line in signed} == {verdict.signature.key_id}
    assert not (tmp_path / "socket").exists()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (-NEAR - timedelta(seconds=5), "set the clocks"),
        (NEAR + timedelta(minutes=5), "set the clocks"),
        ({"created_at": "2026-11-28T10:00:00"}, "set the clocks"),
        ({"grade": 1}, "Extra inputs"),
        ({"score": -1}, "greater than or equal to 0"),
        ({"schema": "grader.backup/v1"}, "does not match any of the expected tags"),
        ({"schema": "grader.erasure/v1"}, "expected a verdict or a note"),
    ],
)
def test_it_signs_nothing_else(tmp_path, changes, said):
    """Not what is dated at another time than now, and no document of another form."""
    handler = RequestHandler(Signer.from_folder(tmp_path))
    document = a_verdict().model_dump(mode="json", exclude={"signature"})
    if isinstance(changes, timedelta):
        changes = {"created_at": (datetime.now(UTC) + changes).isoformat()}
    answer = json.loads(handler.answer(b"sign\n" + canonical_json(document | changes)))
    assert said in answer["refused"]
    assert handler.signed == {}


@pytest.mark.parametrize("request_", [b"", b"sign\n", b"sign\n\xff", b"sign\n[]", b"export\n", b"keys"])
def test_what_is_no_request_is_refused(tmp_path, request_):
    """And who asked may ask again."""
    assert "expected" in json.loads(RequestHandler(Signer.from_folder(tmp_path)).answer(request_))["refused"]


def test_a_refusal_reaches_who_asked(asking):
    """As an infrastructure failure that tells the reason; the next document is signed."""
    with pytest.raises(InfrastructureError, match="the signer refuses: expected a verdict"):
        asking.sign_document({"schema": "grader.verdict/v1"})
    assert asking.sign(a_verdict()).signature is not None


def test_what_is_not_canonical_is_signed_for_nobody(tmp_path):
    """The signature is over the bytes that came: it holds for no document but the one that was looked at."""
    handler = RequestHandler(Signer.from_folder(tmp_path))
    document = a_verdict().model_dump(mode="json", exclude={"signature"})
    twice = json.dumps(document).replace('"s:1"', '"s:1", "submission_id": "s:2"')
    signature = json.loads(handler.answer(b"sign\n" + twice.encode()))["signature"]
    for name in ("s:1", "s:2"):
        assert signed_by({**document, "submission_id": name, "signature": signature}) is None


def test_it_may_be_away_and_come_back(tmp_path):
    """Who asks meanwhile is told; the same client goes on afterwards."""
    asking = SocketSigner(tmp_path / "socket")
    with pytest.raises(SignerAway, match=f"does not answer at {tmp_path}/socket .* `grader signer`"):
        asking.keys()
    for _ in range(2):  # the second one finds the socket of a signer that was killed
        with a_signer(tmp_path) as process:
            assert asking.sign(a_verdict()).signature is not None
            process.kill()
            process.wait()
            with pytest.raises(SignerAway):
                asking.sign(a_verdict())


def test_a_rotation_is_followed_at_once(asking, tmp_path):
    """Nothing is restarted, and the list that it gives names both keys, the new one first."""
    before = asking.public_key
    assert grader("keys", "rotate", state_dir=tmp_path).returncode == 0
    after = asking.sign(a_verdict()).signature.public_key
    assert [one.public_key for one in asking.keys().keys] == [after, before]
    assert before != after


@pytest.mark.usefixtures("process")
def test_two_signers_do_not_share_a_socket(tmp_path):
    """The second one says so, and the first one goes on."""
    done = grader("signer", "--socket", str(tmp_path / "socket"), state_dir=tmp_path)
    assert (done.returncode, "another signer listens" in done.stderr) == (2, True)
    assert SocketSigner(tmp_path / "socket").keys().keys


def test_no_key_is_made_in_silence_in_production(tmp_path):
    """It is said how to make one; then it signs."""
    for words in (("signer", "--socket", str(tmp_path / "socket")), ("keys", "show")):
        done = grader(*words, state_dir=tmp_path, GRADER_PRODUCTION="true")
        assert (done.returncode, "`grader keys make` makes the first one" in done.stderr) == (2, True)
    assert not key_folder.has_key(tmp_path / "keys")
    assert grader("keys", "make", state_dir=tmp_path, GRADER_PRODUCTION="true").returncode == 0
    with a_signer(tmp_path, GRADER_PRODUCTION="true"):
        assert SocketSigner(tmp_path / "socket").sign(a_verdict()).signature is not None


@pytest.mark.usefixtures("process")
def test_keys_are_changed_where_they_lie(tmp_path):
    """With a signer elsewhere they can be listed, and nothing else."""
    told = {"GRADER_SIGNER": str(tmp_path / "socket"), "GRADER_STATE_DIR": str(tmp_path / "other")}
    key = Signer.from_folder(tmp_path / "keys").public_key
    assert invoked("keys", "show", "--hex", **told).stdout.split() == [key]
    for words in (["make"], ["rotate"], ["revoke", key, "--reason", "x"], ["add", "-"]):
        with pytest.raises(ConfigurationError, match="where the signer runs"):
            invoked("keys", *words, **told)
    assert not (tmp_path / "other").exists()
    assert isinstance(signer_of(Settings(signer=tmp_path / "socket")), SocketSigner)
