"""Verdicts as they come: typed, with the document that was signed."""

import json
from collections.abc import Mapping
from typing import Self

from pydantic import PrivateAttr

from grader_service.model.verdict import Verdict


class ReceivedVerdict(Verdict):
    """A verdict, and its JSON document with all that came.

    The service may be newer than this model: fields that the model does not know are in `document` alone, and the
    signature covers them.
    """

    _document: dict[str, object] = PrivateAttr(default_factory=dict)

    @classmethod
    def read(cls, document: Mapping[str, object]) -> Self:
        """The verdict in a JSON document, such as the argument `verdict` of a message to `reply_to`.

        Raises:
            ValueError: it is none; the text names each problem.
        """
        made = cls.model_validate_json(json.dumps(document), extra="ignore")
        made._document = dict(document)  # noqa: SLF001 - of its own class
        return made

    @property
    def document(self) -> dict[str, object]:
        """What came, to be stored as it is."""
        return self._document
