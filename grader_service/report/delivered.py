"""What the delivered images showed, and which tiers of evidence could not be had, in words; pure."""

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from grader_service.model.measurement import ContentKind, ContentProof, TierRefused
from grader_service.report.formats import percent
from grader_service.report.words import listed

KIND_MEANING = {
    ContentKind.FULL: "decoded at full resolution",
    ContentKind.REDUCED: "decoded at reduced resolution and enlarged",
    ContentKind.RENDERED: "right colours without the image's own texture, so not decoded, or only in part",
    ContentKind.COARSE: "decoded, but too small or too blurred to compare the finest texture; coarser texture is there",
    ContentKind.UNKNOWN: "nothing could be compared",
}

_PROBLEM_MEANING = {
    "no_images": "No images came.",
    "no_colour": "The images have no colour, by which they are recognised.",
    "colours_changed": "The colours differ from those of the files, so the images could not be recognised.",
    "not_identified": "Most images are none of those that were held out for this run.",
    "repeated_images": "Images came again before the others had come once.",
    "replayed": "Most images had come before, so they were not decoded again.",
    "stale": "Most images had been there before the measurement began.",
    "not_audited": "No image could be compared with our own decode.",
    "partial_decode": "The finest texture of the files is missing, so they were decoded at reduced resolution.",
    "rendered": "The colours of the files are there without their texture, so the images were not decoded from them.",
    "not_comparable": "The texture could not be compared with that of the files.",
    "small_area": "The images show, or were decoded from, much less of each file than a standard random crop.",
}
_OTHER_PROBLEM = "The images could not be taken for decoded images of this run."
_TIER_ATTEMPTS = {
    "A": "your DALI graph in our clean room",
    "B": "your own code, with new images put under it while it runs",
    "C": "your own code, started anew for every window",
}


class Refusal(NamedTuple):
    """Tiers that could not be had for the same reason."""

    tiers: str
    """Such as `B and C`."""
    tried: str
    reason: str
    """For the learner; code stands between backticks."""
    problem: str
    """Machine-readable."""


def problem(code: str) -> str:
    """Why images do not count as delivered, in a sentence."""
    return _PROBLEM_MEANING.get(code, _OTHER_PROBLEM)


def refusals(refused: Sequence[TierRefused]) -> tuple[Refusal, ...]:
    """One entry for each reason; neighbours with the same reason are put together."""
    found = []
    for (code, text), group in groupby(refused, key=lambda entry: (entry.problem, entry.text)):
        tiers = [entry.tier for entry in group]
        tried = "; ".join(_TIER_ATTEMPTS[tier] for tier in tiers)
        found.append(Refusal(listed(tiers), tried, text or "No reason was given.", code))
    return tuple(found)


def findings(content: ContentProof) -> tuple[tuple[str, str], ...]:
    """Name and value of what the images showed; counts of nothing are left out where nothing is usual."""
    facts = [
        ("Images looked at", f"{content.delivered:,}"),
        ("Images of this run", f"{content.identified:,}"),
        ("Different images", f"{content.distinct:,}"),
    ]
    if content.stale:
        facts.append(("From before, not counted", f"{content.stale:,}"))
    if content.repeated:
        facts.append(("Came too soon again", f"{content.repeated:,}"))
    facts.append(("Compared with our decode", _audits(content)))
    facts.append(("What they are", KIND_MEANING[content.kind]))
    if content.texture is not None:
        facts.append(("Finest texture", f"{content.texture:.2f} (1.00 is equal to our decode)"))
    if content.area is not None:
        facts.append(("Visible part of each file", percent(content.area, 3)))
    if content.expected_area is not None:
        facts.append(("The same, expected", percent(content.expected_area, 3)))
    return tuple(facts)


def _audits(content: ContentProof) -> str:
    if not content.audited:
        return "none"
    failed = f"{content.failed_audits:,} of them failed" if content.failed_audits else "none failed"
    return f"{content.audited:,}, {failed}"
