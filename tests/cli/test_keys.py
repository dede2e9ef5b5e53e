"""Keys are made once, kept from others, and can be changed without making old verdicts doubtful."""

import json
import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from grader_service import wiring
from grader_service.errors import ConfigurationError, UsageError
from grader_service.judging import verdicts
from grader_service.model.keys import KeyList, PublicKey, key_id
from grader_service.settings import Settings
from grader_service.signer import key_folder
from grader_service.signer.key_folder import private_key
from grader_service.signer.signatures import KeySigner, Signer, doubt, signed_by
from grader_service.store import leases, results
from tests.command_line import grader, invoked, typed
from tests.store.factories import a_submission, a_verdict, accept


def test_a_key_is_made_once_and_is_its_owners(tmp_path):
    """However many ask at once; nobody else may read it."""
    with ThreadPoolExecutor(8) as pool:
        keys = {signer.public_key for signer in pool.map(Signer.from_folder, [tmp_path] * 8)}
    assert len(keys) == 1
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.glob("*.pem")} == {0o600}


def test_after_a_rotation_both_keys_are_accepted(tmp_path):
    """`grader verify` knows the retired key, and a stranger's is still refused."""
    folder = tmp_path / "keys"
    old = Signer.from_folder(folder).sign(verdicts.refused("s:1", "lab", "archive.link", "no"))
    assert grader("keys", "rotate", state_dir=tmp_path).returncode == 0
    new = Signer.from_folder(folder).sign(verdicts.refused("s:2", "lab", "archive.link", "no"))
    stranger = Signer.from_folder(tmp_path / "other").sign(verdicts.refused("s:3", "lab", "archive.link", "no"))
    assert [one.public_key for one in key_folder.key_list(folder).keys] == [
        new.signature.public_key,
        signed_by(old.model_dump(mode="json")),
    ]
    for name, verdict, expected in (("old", old, 0), ("new", new, 0), ("stranger", stranger, 1)):
        path = tmp_path / f"{name}.json"
        path.write_text(verdict.model_dump_json())
        assert grader("verify", str(path), state_dir=tmp_path).returncode == expected, name
    shown = grader("keys", "show", state_dir=tmp_path).stdout.splitlines()
    assert [line.split()[-1] for line in shown] == ["use", "retired"]
    bare = typed("keys", "show", "--hex", GRADER_STATE_DIR=str(tmp_path))
    assert bare == [f"{new.signature.public_key} {old.signature.public_key}"]


def test_a_key_that_is_none_is_a_mistake_of_the_call(tmp_path):
    """And not a verdict that another key signed; capitals are digits too."""
    signed = Signer.from_folder(tmp_path).sign(verdicts.refused("s:1", "lab", "archive.link", "no"))
    path = tmp_path / "verdict.json"
    path.write_text(signed.model_dump_json())
    with pytest.raises(UsageError, match="expected a public key of 64 hexadecimal digits, got 'hello'"):
        invoked("verify", str(path), "--key", "hello")
    invoked("verify", str(path), "--key", signed.signature.public_key.upper())


@pytest.mark.parametrize("content", [b"", b"-----BEGIN PRIVATE KEY-----\n", b"\xff\xfe"])
def test_a_broken_key_stops_the_grader(tmp_path, content):
    """Verdicts are not signed with something else in silence."""
    (tmp_path / "verdict-signing.pem").write_bytes(content)
    with pytest.raises(ConfigurationError, match="private key"):
        Signer.from_folder(tmp_path)


def test_a_signature_survives_another_language(tmp_path):
    """Reading and writing it again with JavaScript's numbers and order of keys changes nothing that was signed."""
    verdict = verdicts.refused("s:1", "lab", "archive.link", "ü: 1.0 is 1, and \u2028 is one character")
    signed = Signer.from_folder(tmp_path).sign(verdict.model_copy(update={"score": 100.0}))
    text = json.dumps(signed.model_dump(mode="json")).replace("100.0", "100")
    shuffled = json.loads(text, object_pairs_hook=lambda pairs: dict(reversed(pairs)))
    assert signed_by(shuffled) is not None
    assert signed_by({**shuffled, "score": 99}) is None


def listed(state_dir):
    """The list as JSON has it."""
    return json.loads(grader("keys", "list", "--json", state_dir=state_dir).stdout)["keys"]


def test_a_key_has_a_time_in_which_it_signs(tmp_path):
    """From when it is made until it is rotated; one that came without a list has no beginning."""
    folder = tmp_path / "keys"
    first = Signer.from_folder(folder).public_key
    (folder / "public-keys.json").unlink()
    assert [(one["public_key"], one["from"], one["until"]) for one in listed(tmp_path)] == [(first, None, None)]
    began = datetime.now(UTC).replace(microsecond=0)
    assert grader("keys", "rotate", state_dir=tmp_path).returncode == 0
    second, old = listed(tmp_path)
    assert old["public_key"] == first
    assert began <= datetime.fromisoformat(second["from"]) == datetime.fromisoformat(old["until"])
    assert second["until"] is None


def test_a_revoked_key_is_not_believed(tmp_path):
    """Nothing of it, or nothing that is dated since; the database confirms what it holds unchanged."""
    settings = Settings(state_dir=tmp_path)
    key = Signer.from_folder(settings.key_dir).public_key
    store = wiring.ready_store(settings)
    accept(store, a_submission(1))
    results.store_evidence(store, leases.claim(store, "run", "r", 60), "rejection", b"{}", {})
    claim = leases.claim(store, "judge", "j", 60)
    verdict = Signer.from_folder(settings.key_dir).sign(a_verdict(claim.submission_id))
    assert results.store_verdict(store, claim, verdict)
    store.close()
    path = tmp_path / "verdict.json"
    path.write_text(verdict.model_dump_json(indent=2))
    environment = {"GRADER_STATE_DIR": str(tmp_path)}
    with pytest.raises(UsageError, match="is the key that signs: `grader keys rotate` first"):
        invoked("keys", "revoke", key, "--reason", "stolen", **environment)
    invoked("keys", "rotate", **environment)
    invoked("keys", "revoke", key_id(key), "--reason", "stolen", "--since", "2999-01-01T00:00:00Z", **environment)
    assert invoked("verify", str(path), **environment).stdout.endswith(f"signed by {key}\n")
    invoked("keys", "revoke", key.upper(), "--reason", "stolen", **environment)
    assert "which is revoked: stolen" in invoked("verify", str(path), status=1, **environment).stdout
    assert key not in invoked("keys", "show", "--hex", **environment).stdout
    assert "revoked: stolen" in invoked("keys", "show", **environment).stdout
    published = tmp_path / "published.json"
    published.write_text(invoked("keys", "list", "--json", **environment).stdout)
    invoked("verify", str(path), "--keys", str(published), status=1, GRADER_STATE_DIR=str(tmp_path / "nobody"))
    assert "stored in the database unchanged" in invoked("verify", str(path), "--stored", **environment).stdout
    with pytest.raises(UsageError, match="is no key of this service"):
        invoked("keys", "revoke", "0" * 16, "--reason", "x", **environment)


def test_what_a_stolen_key_forges_is_not_in_the_database(tmp_path):
    """However it is dated."""
    settings = Settings(state_dir=tmp_path)
    thief = Signer.from_folder(settings.key_dir)
    stolen = KeySigner(private_key(settings.key_dir))
    wiring.ready_store(settings).close()
    path = tmp_path / "verdict.json"
    path.write_text(stolen.sign(verdicts.refused("s:1", "lab", "archive.link", "no")).model_dump_json())
    environment = {"GRADER_STATE_DIR": str(tmp_path)}
    key = thief.public_key
    invoked("keys", "rotate", **environment)
    invoked("keys", "revoke", key, "--reason", "stolen", **environment)
    invoked("verify", str(path), "--stored", status=1, **environment)


def test_a_first_key_is_made_once_and_may_be_given(tmp_path):
    """From where its owner keeps secrets; it is not put in the place of another one in silence."""
    other = tmp_path / "other"
    assert grader("keys", "make", state_dir=other).returncode == 0
    pem = (other / "keys" / "verdict-signing.pem").read_text()
    assert grader("keys", "make", "--key", "-", state_dir=tmp_path, text_in=pem).returncode == 0
    assert Signer.from_folder(tmp_path / "keys").public_key == Signer.from_folder(other / "keys").public_key
    done = grader("keys", "make", state_dir=tmp_path)
    assert (done.returncode, "`grader keys rotate` puts another in its place" in done.stderr) == (2, True)
    done = grader("keys", "rotate", "--key", "-", state_dir=tmp_path, text_in="nonsense")
    assert (done.returncode, "not a private key in PEM form" in done.stderr) == (2, True)


def test_keys_of_before_are_added(tmp_path):
    """With their times, and with what was revoked, which is not taken back and does not sign again."""
    other = tmp_path / "other"
    stolen = Signer.from_folder(other / "keys").public_key
    pem = (other / "keys" / "verdict-signing.pem").read_bytes()
    (tmp_path / "stolen.pem").write_bytes(pem)
    for words in (["rotate"], ["revoke", stolen, "--reason", "stolen"]):
        invoked("keys", *words, GRADER_STATE_DIR=str(other))
    (tmp_path / "list.json").write_text(grader("keys", "list", "--json", state_dir=other).stdout)
    environment = {"GRADER_STATE_DIR": str(tmp_path)}
    invoked("keys", "make", **environment)
    assert len(invoked("keys", "add", str(tmp_path / "list.json"), **environment).stdout.splitlines()) == 2
    assert invoked("keys", "add", str(tmp_path / "list.json"), **environment).stdout == ""
    assert listed(tmp_path)[1:] == listed(other)
    with pytest.raises(UsageError, match="is revoked: stolen; it must not sign again"):
        invoked("keys", "rotate", "--key", str(tmp_path / "stolen.pem"), **environment)


@pytest.mark.parametrize("words", [["make"], ["rotate"]])
def test_what_a_key_that_was_given_signed_before_is_believed(tmp_path, words):
    """As in a restore: in a folder that does not know it yet, and with the list of the backup, its verdicts verify."""
    folder, environment = tmp_path / "keys", {"GRADER_STATE_DIR": str(tmp_path)}
    signer = Signer.from_folder(tmp_path / "lost")
    old = signer.sign_document({"created_at": (datetime.now(UTC) - timedelta(days=30)).isoformat()})
    if words == ["rotate"]:
        invoked("keys", "make", **environment)
    invoked("keys", *words, "--key", str(tmp_path / "lost" / "verdict-signing.pem"), **environment)
    assert doubt(old, signed_by(old), key_folder.key_list(folder)) is None
    assert key_folder.add(folder, signer.keys()) == []
    assert doubt(old, signed_by(old), key_folder.key_list(folder)) is None


def test_times_of_a_known_key_widen(tmp_path):
    """By a list that has earlier or later ones, or none; the key that signs has no end, whatever the list says."""

    def at(day):
        return None if day is None else datetime(2026, 11, day, tzinfo=UTC)

    def known(key):
        found = key_folder.key_list(tmp_path).get(key)
        return found.from_, found.until

    def add(key, begin, end):
        key_folder.add(tmp_path, KeyList(keys=(PublicKey(public_key=key, from_=at(begin), until=at(end)),)))
        return known(key)

    signing = Signer.from_folder(tmp_path).public_key
    old = "ab" * 32
    assert add(old, 10, None) == (at(10), None)
    assert add(old, 12, 14) == (at(10), at(14))
    assert add(old, 9, None) == (at(9), at(14))
    assert add(old, 10, 12) == (at(9), at(14))
    assert add(old, None, 20) == (None, at(20))
    assert add(old, 10, 12) == (None, at(20))
    assert add(signing, 1, 2) == (at(1), None)
