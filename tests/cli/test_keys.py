"""Keys are made once, kept from others, and can be changed without making old verdicts doubtful."""

import json
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from grader_service import verdicts
from grader_service.errors import ConfigurationError, UsageError
from grader_service.signing import Signer, retired_keys, signed_by
from tests.command_line import grader, invoked, typed


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
    assert signed_by(old.model_dump(mode="json")) == retired_keys(folder)[0]
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
