"""Lets a model's opinion move a result: from undecided to passed, or from passed to undecided, and never to failed."""

import hashlib
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import structlog

from checks.api import Result, passed, undecided
from grader_service.judging.checks import Judged
from grader_service.model.review import subject_of
from grader_service.model.verdict import Outcome
from grader_service.service.patience import patiently
from grader_service.service.review_model import ModelAddress, NoOpinion, Opinion, ReviewModel
from grader_service.settings import Settings, secret
from grader_service.store import opinions
from grader_service.store.engine import Store
from grader_service.store.opinions import Asked

log = structlog.get_logger(__name__)

# Fixed texts: what a model writes may be what a learner told it to write.
_COUNTS = "A second look found that this counts: what you wrote is concrete, and it is what was asked for."
_WAITS = (
    "A second look raised a question about this answer, so that a person of the course's staff will read it and "
    "decide. Nothing is lost, and there is nothing that you have to do."
)


@dataclass(frozen=True)
class SecondOpinions:
    """Asks about results that want it, and remembers what was answered."""

    store: Store
    model: ReviewModel
    owner: str
    asks: bool = True
    """Whether it asks where no opinion is kept."""

    def kept_ones(self) -> "SecondOpinions":
        """The same, which asks nobody."""
        return replace(self, asks=False)

    def on(
        self, submission_id: str, run_id: str, judged: Sequence[Judged], decided: Collection[str] = ()
    ) -> list[Judged]:
        """The same results, as the model's opinion moves them; call it outside of transactions.

        Args:
            decided: subjects about which a person decided, see `subject_of`: no opinion is wanted on these.

        Raises:
            StoreUnavailable: the database has been away for ten minutes.
        """
        return [self._on(submission_id, run_id, one, decided) for one in judged]

    def _on(self, submission_id: str, run_id: str, one: Judged, decided: Collection[str]) -> Judged:
        seen, question = one.seen, one.question
        if seen is None or question is None or subject_of(one.check.id, one.check.params, seen) in decided:
            return one
        told = json.dumps([one.check.id, one.version, question, seen])
        subject = hashlib.sha256(told.encode()).hexdigest()
        asked = Asked(submission_id, run_id, one.check.id, subject, self.model.name)
        kept = patiently(lambda: opinions.find(self.store, asked))
        document = self._ask(asked, one.result, seen, question) if kept is None and self.asks else kept
        if document is None:
            return one
        return replace(one, result=_weighed(one.result, Opinion.model_validate_json(document), self.model.name))

    def _ask(self, asked: Asked, result: Result, seen: str, question: str) -> str | None:
        """The opinion that is kept from now on; None where the model gives none."""
        try:
            said = self.model.ask(question, seen)
        except NoOpinion as error:
            log.warning("no_second_opinion", check=asked.check_id, model=asked.model, error=str(error))
            why = error.cause.value
            patiently(lambda: opinions.note_none(self.store, asked, self.owner, why))
            return None
        document, moved = said.model_dump_json(), _moved(result, said)
        came_of_it = "unchanged" if moved is None else moved.value
        return patiently(lambda: opinions.keep(self.store, asked, document, self.owner, came_of_it))


def second_opinions_of(settings: Settings, store: Store, owner: str) -> SecondOpinions | None:
    """What asks the model that the settings name; None where they name none.

    Raises:
        ConfigurationError: the file with the key cannot be read.
    """
    if settings.review_model_url is None or settings.review_model is None:
        return None
    key, timeout_s = secret(settings.review_model_key_file), settings.review_model_timeout_s
    address = ModelAddress(settings.review_model_url, settings.review_model, key, timeout_s)
    return SecondOpinions(store, ReviewModel(address), owner)


def _moved(result: Result, said: Opinion) -> Outcome | None:
    """What becomes of the outcome; None where it stays."""
    if said.opinion == "good" and result.outcome is Outcome.INCONCLUSIVE:
        return Outcome.PASSED
    if said.opinion == "bad" and result.outcome is Outcome.PASSED:
        return Outcome.INCONCLUSIVE
    return None


def _weighed(result: Result, said: Opinion, model: str) -> Result:
    moved = _moved(result, said)
    details = dict(result.details) | {
        "second_opinion": {
            "model": model,
            "opinion": said.opinion,
            "why": said.why,
            "items": [item.model_dump() for item in said.items],
            "from": result.code,
        }
    }
    word = result.code.rpartition(".")[0]
    if moved is Outcome.PASSED:
        return passed(_COUNTS, code=f"{word}.ok", tier=result.tier, details=details)
    if moved is Outcome.INCONCLUSIVE:
        return undecided(moved, f"{word}.needs_review", _WAITS, tier=result.tier, details=details)
    return result.model_copy(update={"details": details})
