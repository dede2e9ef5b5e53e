"""Whether a verdict is the service's own: whoever can write to Redis can write there what looks like one."""

from collections.abc import Iterable, Mapping

from grader_service.client.errors import SignatureInvalid
from grader_service.client.received import ReceivedVerdict
from grader_service.model.verdict import Verdict
from grader_service.signing import signed_by


def verify(verdict: Verdict | Mapping[str, object], public_keys: Iterable[str]) -> None:
    """Returns when one of these keys signed the verdict.

    Args:
        verdict: as received, or its JSON document.
        public_keys: 64 hexadecimal digits each, as `grader keys show` prints them where the service runs; never taken
            from a verdict.

    Raises:
        SignatureInvalid: none of them did.
    """
    known = list(public_keys)
    document = _document(verdict)
    name = f"verdict {document.get('verdict_id')} on submission {document.get('submission_id')}"
    actual = signed_by(document)
    if actual is None:
        raise SignatureInvalid(
            f"the signature of {name} does not hold: it was changed, or was never signed. Expected the document as the "
            "service sent it. Do not record it; post the submission again with the same id to have it sent again"
        )
    if actual not in known:
        raise SignatureInvalid(
            f"{name} is signed by {actual}; expected {' or '.join(known) or 'a key, and none was given'}. Do not "
            "record it before `grader keys show`, run where the service is, names that key"
        )


def _document(verdict: Verdict | Mapping[str, object]) -> Mapping[str, object]:
    if isinstance(verdict, ReceivedVerdict):
        return verdict.document
    return verdict.model_dump(mode="json") if isinstance(verdict, Verdict) else verdict
