"""What anybody may put on the queue, and what a browser sends: envelopes, submissions, addresses and forms."""

import atexit
import functools
import hashlib
import json
import shutil
from urllib.parse import urlsplit

from sqlalchemy import delete, select

from checks.registry import Registry
from grader_service.model.verdict import Verdict
from grader_service.queue.envelope import open_envelope
from grader_service.service.intake import IntakeDeps
from grader_service.service.message import Malformed, parse_message, reply_of, salvage
from grader_service.signer.signatures import Signer, signed_by
from grader_service.store.admission import IntakeLimits
from grader_service.store.artifacts import ArtifactStore
from grader_service.store.engine import Store
from grader_service.store.tables import EventRow, OutboxRow, table_of
from grader_service.web import forms
from tests.fuzz.files import folder
from tests.receiving import receive

KEPT = b"print('a submission')\n"
DIGEST = hashlib.sha256(KEPT).hexdigest()
_HOST = "lms.example"
_EACH = 500
"""Messages that one database takes; then it is emptied."""


def envelope(data: bytes) -> object:
    """A raw message of the broker, down to its validated argument or to what its answer needs."""
    opened = open_envelope(data)
    opened.task_id.encode()
    try:
        return parse_message(opened.submission)
    except Malformed as error:
        why = str(error)
    assert len(why) < 8192, "a refusal longer than its verdict takes"
    why.encode()
    salvage(opened.submission, "submission_id", "unknown").encode()
    return reply_of(opened.submission)


def form(data: bytes) -> object:
    """The fields of a form's body or of an address."""
    fields = forms.parse(data)
    for name, value in fields.flat():
        (name + value).encode()
    return fields.one("batch_id"), fields.many("steps")


def uri(data: bytes) -> object:
    """An artifact's address; `{sent}` stands for the folder from which files are taken."""
    store = _place().artifacts
    text = _decoded(data).replace("{sent}", str(_place().folder / "sent"))
    if text.startswith("https://"):
        store._check_source(text)
        assert urlsplit(text).hostname == _HOST, "another host would be asked"
        return text
    _place().forget()
    return store.fetch(text, DIGEST)


def intake(data: bytes) -> object:
    """A submission's message on a real store: it is stored or answered with a signed verdict, whatever it holds."""
    try:
        body = json.loads(data.replace(b"{sent}", str(_place().folder / "sent").encode()))
    except (ValueError, RecursionError):
        return None
    place = _place()
    place.tidy()
    taken = receive(place.deps, body, "live", "task")
    if taken.kind != "refused":
        return taken
    with place.store.transaction() as connection:
        letter = connection.execute(select(OutboxRow.document).order_by(OutboxRow.id.desc()).limit(1)).scalar_one()
        detail = connection.execute(select(EventRow.detail).order_by(EventRow.id.desc()).limit(1)).scalar_one()
    Verdict.model_validate_json(letter)
    assert signed_by(json.loads(letter)) == place.deps.signer.public_key
    # PostgreSQL takes neither in a text.
    told = json.dumps(detail, ensure_ascii=False)
    told.encode()
    assert "\\u0000" not in told, "a NUL would reach the database"
    return taken


class _Place:
    """A store, artifacts and intake dependencies of their own."""

    def __init__(self) -> None:
        self.folder = folder("deps")
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        sent = self.folder / "sent"
        (sent / "folder").mkdir(parents=True)
        (sent / "submission.py").write_bytes(KEPT)
        (self.folder / "secret.py").write_bytes(KEPT)
        sources = (f"file://{sent}/", f"https://{_HOST}/artifacts/")
        self.artifacts = ArtifactStore(f"file://{self.folder}/kept", sources)
        self.store = Store(f"sqlite:///{self.folder}/grader.db")
        self.store.migrate()
        self.deps = IntakeDeps(
            self.store, self.artifacts, Registry(), Signer.from_folder(self.folder / "keys"), IntakeLimits()
        )
        self._messages = 0

    def forget(self) -> None:
        """Lets the next address be read, and not what the last one brought."""
        (self.folder / "kept" / DIGEST[:2] / DIGEST).unlink(missing_ok=True)

    def tidy(self) -> None:
        """Keeps the database small."""
        self.forget()
        self._messages += 1
        if self._messages % _EACH == 0:
            with self.store.transaction() as connection:
                for row in (OutboxRow, EventRow):
                    connection.execute(delete(table_of(row)))


_place = functools.cache(_Place)


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8", "surrogatepass")  # JSON can carry half a character
    except UnicodeDecodeError:
        return data.decode("latin-1")
