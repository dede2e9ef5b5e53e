"""What a browser sent: urlencoded fields of a bounded body, and the parameters of an address."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qs

from grader_service.model.base import neutralise

MOST_BYTES = 64 * 1024
_MOST_FIELDS = 500
FORM_TYPE = "application/x-www-form-urlencoded"


@dataclass(frozen=True)
class Fields:
    """Names with their values; what is missing is empty."""

    values: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def one(self, name: str, default: str = "") -> str:
        """The last value of this name, without space around it."""
        found = self.values.get(name)
        return found[-1].strip() if found else default

    def many(self, name: str) -> tuple[str, ...]:
        """Every value of this name that is not empty."""
        return tuple(value.strip() for value in self.values.get(name, ()) if value.strip())

    def flat(self) -> list[tuple[str, str]]:
        """Every name with each of its values, in order, as a form carries them on."""
        return [(name, value) for name, values in self.values.items() for value in values]


def parse(body: bytes) -> Fields:
    """The fields of a body or of a query string.

    Raises:
        ValueError: there are more fields than any form of ours has.
    """
    text = body.decode("utf-8", "replace")
    found = parse_qs(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="replace")
    # Browsers send line ends of text areas as CR LF.
    clean = {neutralise(name): [neutralise(one.replace("\r\n", "\n")) for one in of] for name, of in found.items()}
    return Fields(clean)
