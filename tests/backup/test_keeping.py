"""Which backups, artifacts, keys and entries of the journal are kept, and what is said of those that are lost."""

import hashlib
from dataclasses import replace

import pytest
from sqlalchemy import update

from grader_service.backup import making, restoring, verifying
from grader_service.backup.journal import note_erasure
from grader_service.backup.making import What
from grader_service.backup.place import ANSWERS, ARTIFACTS, PRIVATE_KEY, Place
from grader_service.backup.restoring import Where
from grader_service.errors import ConfigurationError, InfrastructureError
from grader_service.model.evidence import ProbeRef
from grader_service.service.metrics import StoreCollector
from grader_service.signer.key_folder import add, key_list, pem, revoke, rotate
from grader_service.signer.signatures import Signer
from grader_service.store import backups, erasing
from grader_service.store.clock import db_now
from grader_service.store.references import with_artifact
from grader_service.store.retention_tables import BackupRow
from grader_service.store.tables import RunRow, SubmissionRow, VerdictRow
from tests.store.aged import age
from tests.store.factories import PLAN


def files(folder):
    """Names of all files below a folder."""
    return {path.name for path in folder.rglob("*") if path.is_file()}


def digest(data):
    return hashlib.sha256(data).hexdigest()


def test_artifacts_come_back(owned, empty):
    """Those that the new store does not have, whole."""
    owned.grade(1, data=b"one")
    owned.grade(2, data=b"two" * 1_000_000)
    owned.back_up()
    empty.artifacts.put(b"one")
    done = empty.restore()
    assert (done.artifacts, done.lost_artifacts) == (1, ())
    assert empty.artifacts.has(digest(b"two" * 1_000_000))


def test_sources_of_probes_come_back(owned, empty, tmp_path):
    """Runs that wait for them, or judge what they found, need no plugin; those that are over need none."""
    for number, (state, source) in enumerate([("running", b"one"), ("done", b"two"), ("run_queued", b"lost")]):
        owned.artifacts.put(source)
        probe = ProbeRef(id="probe", version="1.0.0", site="graph", sha256=digest(source), budget_s=1.0)
        owned.accept(number, data=b"x", learner=f"l{number}")
        plan = PLAN.model_copy(update={"probes": (probe,)}).model_dump(mode="json")
        with owned.store.transaction() as connection:
            ours = update(RunRow).where(RunRow.submission_id == f"s:{number}")
            connection.execute(ours.values(plan=plan, state=state))
    manifest = owned.back_up()
    lost = digest(b"lost")
    (tmp_path / "backups" / ARTIFACTS / lost[:2] / lost).unlink()
    found = verifying.damaged(owned.place, manifest, lambda _: None)
    assert [name.rsplit("/", 1)[-1] for name in found] == [lost]
    assert empty.restore().lost_artifacts == (lost,)
    assert files(empty.artifacts.folder) == {digest(b"x"), digest(b"one")}


def test_an_artifact_that_is_lost_is_named(owned, empty, tmp_path):
    """It was gone when the backup was made, is gone from the backups, or is damaged there: none is put in place.

    Its submission says so, and no batch of re-grades plans to run it.
    """
    data = [b"gone", b"lost", b"damaged", b"there"]
    for number, one in enumerate(data):
        owned.grade(number, data=one, learner=f"l{number}")
    gone, lost, damaged, there = map(digest, data)
    (owned.artifacts.folder / gone[:2] / gone).unlink()
    manifest = owned.back_up()
    assert manifest.missing_artifacts == (gone,)
    assert verifying.damaged(owned.place, manifest, lambda _: None) == []
    artifacts = tmp_path / "backups" / ARTIFACTS
    (artifacts / lost[:2] / lost).unlink()
    (artifacts / damaged[:2] / damaged).write_bytes(b"other")
    found = verifying.damaged(owned.place, manifest, lambda _: None)
    assert {name.rsplit("/", 1)[-1] for name in found} == {lost, damaged}
    done = empty.restore()
    assert set(done.lost_artifacts) == {gone, lost, damaged}
    assert files(empty.artifacts.folder) == {there}
    assert with_artifact(empty.store, [f"s:{number}" for number in range(4)]) == ["s:3"]


def test_an_artifact_that_came_after_the_backup(owned, empty):
    """Lost with its host, or put where a newer backup or the artifact store has it; nobody else's is missed."""
    owned.grade(1, data=b"saved")
    first = owned.back_up()
    for number, data in enumerate([b"in a newer one", b"in the store", b"lost", b"erased"], 2):
        owned.grade(number, data=data, learner=data.decode())
        if number == 2:
            owned.back_up()
    owned.answer()
    note = erasing.erase(owned.store, "erased", "eve", lambda _: "{}")
    note_erasure(owned.place, erasing.digest_of("erased"), backups.now(owned.store), note)
    empty.artifacts.put(b"in the store")
    done = empty.restore(first.name)
    assert (done.artifacts, done.lost_artifacts) == (2, (digest(b"lost"),))
    assert with_artifact(empty.store, ["s:1", "s:2", "s:3", "s:4"]) == ["s:1", "s:2", "s:3"]


def test_a_backup_without_artifacts_says_nothing_of_them(owned, empty):
    """Their store is safe by itself, and may come back later."""
    owned.grade(1)
    making.make(owned.place, What(owned.store, owned.signer, None))
    done = empty.restore()
    assert (done.artifacts, done.lost_artifacts) == (0, ())
    assert with_artifact(empty.store, ["s:1"]) == ["s:1"]


def test_what_no_backup_needs_goes(owned, tmp_path):
    """Older backups, what broke off before, their artifacts, and the journal up to the oldest that is kept."""
    owned.grade(1, data=b"old")
    owned.answer()
    first = owned.back_up()
    (tmp_path / "backups" / "backups" / f"{first.name}-broken" / "tables").mkdir(parents=True)
    owned.grade(2, data=b"new", learner="bob")
    owned.answer()
    with owned.store.transaction() as connection:
        old = update(SubmissionRow).where(SubmissionRow.submission_id == "s:1")
        connection.execute(old.values(artifact_removed_at=db_now()))
    second, third = owned.back_up(), owned.back_up()
    entry = max(owned.place.files.names(ANSWERS))
    owned.grade(3, data=b"newer", learner="cid")
    owned.answer()
    assert making.prune(owned.place, 2) == [first.name, f"{first.name}-broken"]
    assert [one.name for one in owned.place.manifests()] == [second.name, third.name]
    assert files(tmp_path / "backups" / ARTIFACTS) == {digest(b"new")}
    assert len(owned.place.files.names(ANSWERS)) == 1
    assert entry not in owned.place.files.names(ANSWERS)


def test_the_journal_is_cut_after_what_needs_it(owned, monkeypatch):
    """A backup that could not be removed can still be restored with what came after it."""
    first = owned.back_up()
    owned.grade(1)
    owned.answer()
    owned.back_up()
    monkeypatch.setattr(owned.place.files, "remove_folder", lambda _: (_ for _ in ()).throw(OSError(5, "I/O error")))
    with pytest.raises(InfrastructureError, match="I/O error"):
        making.prune(owned.place, 1)
    assert len(owned.place.files.names(ANSWERS)) == 1
    assert first.name not in [one.name for one in owned.place.manifests()]  # half of it is none


def test_a_full_place_is_not_a_missing_artifact(owned, monkeypatch):
    """The backup fails: it would lack what the artifact store has."""
    owned.grade(1)
    written = owned.place.files.written

    def full(name):
        if name.startswith(ARTIFACTS):
            raise OSError(28, "No space left on device")
        return written(name)

    monkeypatch.setattr(owned.place.files, "written", full)
    with pytest.raises(InfrastructureError, match=r"the backup store .* No space left on device"):
        owned.back_up()
    assert owned.place.manifests() == []


def test_a_key_that_is_not_there_is_told_before_all_else(owned):
    """As what it is."""
    with pytest.raises(ConfigurationError, match="the signing key cannot be read"):
        owned.back_up(private_key=pem(owned.folder / "keys"))
    assert owned.place.broken_off() == []


def test_verdicts_of_a_lost_key_verify(owned, empty):
    """A new one signs on; the private key of the backup is put in place only if it was taken along."""
    owned.grade(1)
    owned.back_up()
    done = empty.restore()
    assert (done.private_key, done.checked.bad) == (False, [])
    assert [one.public_key for one in key_list(empty.folder / "keys").keys] == [owned.signer.public_key]
    assert empty.signer.public_key != owned.signer.public_key


def test_the_list_of_keys_comes_back(owned, empty):
    """With the times in which they signed, and what is revoked."""
    owned.grade(1)
    stolen = owned.signer.public_key
    rotate(owned.folder / "keys")
    revoke(owned.folder / "keys", stolen, "stolen", None)
    owned.back_up()
    done = empty.restore()
    assert done.checked.bad == []
    assert key_list(empty.folder / "keys") == owned.signer.keys()
    assert [one.revoked is not None for one in owned.signer.keys().keys] == [False, True]


def test_keys_of_a_signer_elsewhere_are_left_to_it(owned, empty, tmp_path):
    """What it does not know is named, with the list to tell it; signatures are checked with both."""
    owned.grade(1)
    manifest = owned.back_up()
    signer = Signer.from_folder(tmp_path / "signer")
    where = Where(empty.store, signer, empty.artifacts, "operator:eve")
    done = restoring.restore(owned.place, manifest, where, replace=False, progress=lambda _: None)
    assert (done.unknown_keys, done.private_key, done.checked.bad) == ((owned.signer.public_key,), False, [])
    assert add(tmp_path / "signer", restoring.saved_keys(owned.place, manifest)) == [owned.signer.public_key]
    assert restoring.restore(owned.place, manifest, where, replace=True, progress=lambda _: None).unknown_keys == ()


def test_a_private_key_that_was_taken_along_signs_on(owned, empty):
    """Unless there is one already."""
    owned.grade(1)
    assert PRIVATE_KEY in owned.back_up(private_key=pem(owned.folder / "keys")).files
    assert empty.restore().private_key
    assert empty.signer.public_key == owned.signer.public_key
    assert (empty.folder / "keys" / PRIVATE_KEY).stat().st_mode & 0o777 == 0o600
    other = replace(empty, folder=empty.folder / "other")
    Signer.from_folder(other.folder / "keys")
    assert not other.restore(replace=True).private_key
    assert other.signer.public_key != owned.signer.public_key


def test_a_verdict_that_was_changed_is_named(owned, empty):
    """So is one that another key signed; the others are counted."""
    changed = owned.grade(1)
    owned.grade(2, learner="bob")
    with owned.store.transaction() as connection:
        bad = update(VerdictRow).where(VerdictRow.verdict_id == changed)
        connection.execute(bad.values(document=VerdictRow.document + " "))
    owned.back_up()
    assert empty.restore().checked.bad == []  # a blank changes no JSON
    text = owned.in_force()["s:1"][1].replace("no links", "no limit")
    with owned.store.transaction() as connection:
        connection.execute(bad.values(document=text))
    owned.back_up()
    done = empty.restore(replace=True)
    assert done.checked.bad == [changed]
    assert sum(done.checked.by_key.values()) == 1


def test_the_age_of_the_newest_is_a_figure(owned):
    """None where none was made."""

    def figures():
        families = {family.name: family for family in StoreCollector(owned.store).collect()}
        return [sample.value for sample in families["grader_backup_age_seconds"].samples]

    assert figures() == []
    owned.back_up()
    age(owned.store, BackupRow, "begun_at", 2)
    (found,) = figures()
    assert 2 * 86400 <= found < 2 * 86400 + 60
    owned.back_up()
    assert backups.age_s(owned.store) < 60


def test_an_address_that_nobody_knows_is_refused():
    """With the setting's name."""
    with pytest.raises(ConfigurationError, match="GRADER_BACKUP_STORE=nowhere://x cannot be used"):
        Place("nowhere://x")
