"""Whether a verdict is the service's own: whoever can write to Redis can write there what looks like one."""

from collections.abc import Iterable, Mapping

from grader_service.client.errors import InvalidRequest, SignatureInvalid
from grader_service.client.received import ReceivedVerdict
from grader_service.errors import UsageError
from grader_service.model.keys import KeyList
from grader_service.model.verdict import Verdict
from grader_service.signer.signatures import doubt, signed_by


def verify(verdict: Verdict | Mapping[str, object], public_keys: Iterable[str] | KeyList) -> None:
    """Returns when one of these keys signed the verdict, and is believed for its time.

    Args:
        verdict: as received, or its JSON document.
        public_keys: 64 hexadecimal digits each, as `grader keys show` prints them where the service runs, or the list
            that `grader keys list --json` prints, which also says when each key signed and which are revoked; never
            taken from a verdict.

    Raises:
        SignatureInvalid: none of them did, or the one that did is revoked or was not in use then.
        InvalidRequest: a key is none.
    """
    known = known_keys(public_keys)
    document = verdict.document if isinstance(verdict, ReceivedVerdict) else verdict
    if isinstance(document, Verdict):
        document = document.model_dump(mode="json")
    name = f"verdict {document.get('verdict_id')} on submission {document.get('submission_id')}"
    actual = signed_by(document)
    if actual is None:
        raise SignatureInvalid(
            f"the signature of {name} does not hold: it was changed, or was never signed. Expected the document as the "
            "service sent it. Do not record it; post the submission again with the same id to have it sent again"
        )
    if known.get(actual) is None:
        expected = " or ".join(one.public_key for one in known.keys) or "a key, and none was given"
        raise SignatureInvalid(
            f"{name} is signed by {actual}; expected {expected}. Do not "
            "record it before `grader keys show`, run where the service is, names that key"
        )
    if (reason := doubt(document, actual, known)) is not None:
        raise SignatureInvalid(
            f"{name} is signed by {actual}, which {reason}. Do not record it before the owner of the service says that "
            "it is theirs"
        )


def known_keys(public_keys: Iterable[str] | KeyList) -> KeyList:
    """The list, or one of keys without bounds.

    Raises:
        InvalidRequest: a key is none.
    """
    try:
        return public_keys if isinstance(public_keys, KeyList) else KeyList.of(public_keys)
    except UsageError as error:
        raise InvalidRequest(str(error)) from None
