"""What a graph was seen to do, what delivered images showed, and which tiers could not be had, in words; pure."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from grader_service.model.measurement import ContentKind, ContentProof, GraphProof, TierRefused
from grader_service.report.formats import percent, seconds
from grader_service.report.words import listed, title

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
    "replayed": "Most images had come before, so they were not decoded again.",
    "stale": "Most images had been there before the measurement began.",
    "not_audited": "No image could be compared with our own decode.",
    "partial_decode": "The finest texture of the files is missing, so they were decoded at reduced resolution.",
    "rendered": "The colours of the files are there without their texture, so the images were not decoded from them.",
    "not_comparable": "The texture could not be compared with that of the files.",
    "small_area": "The images show much less of each file than a standard random crop does, or seldom its lower end.",
}
_OTHER_PROBLEM = "The images could not be taken for decoded images of this run."
_GRAPH_PROBLEM_MEANING = {
    "not_examined": "It could not be told what your graph does, so it was not timed, and nothing is held against it.",
    "independent": "Most images do not depend on the files that they should be decoded from.",
    "unlike": "Most images differ from what your graph makes of the whole decoded files.",
    "unclear": "More than one image in twenty does not follow its own file, or is not made of the whole decoded file.",
    "lesser": "Your graph decodes less of each file, or of its lower part, than the standard random crop does.",
}
_OTHER_GRAPH_PROBLEM = "Your graph was not seen to do the work that it would be timed for."
_WORK = {"turn": "rotation", "colour": "colour changes", "blur": "blurring"}
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
    if content.low is not None and content.expected_low is not None:
        low = f"{percent(content.low)} (expected: {percent(content.expected_low)})"
        facts.append(("Parts that reach the lowest third", low))
    return tuple(facts)


def graph_problem(code: str) -> str:
    """Why a graph was not timed, in a sentence."""
    return _GRAPH_PROBLEM_MEANING.get(code, _OTHER_GRAPH_PROBLEM)


def graph_findings(proof: GraphProof) -> tuple[tuple[str, str], ...]:
    """Name and value of what a graph was seen to do; nothing for one that could not be tried out."""
    if proof.problem == "not_examined":
        return ()
    facts = [
        ("Images tried", f"{proof.samples:,}"),
        ("Follow their own file", f"{proof.own:,} of {proof.samples:,}"),
        ("Equal on lossless copies of the files", f"{proof.alike:,} of {proof.samples:,}"),
    ]
    if proof.on_gpu is not None:
        facts.append(("On the GPU like on the CPU", f"{proof.on_gpu:,} of {proof.samples:,}"))
    if proof.problem != "independent":
        facts.append(("Decoded of each file", _decoded(proof)))
    if proof.windows:
        low, standard = percent(proof.low, 3), percent(proof.standard_low, 3)
        facts.append(("Windows that reach the lowest third of the rows", f"{low} (of the standard ones {standard})"))
        facts.append(("Images of which less than a sixteenth is decoded", percent(proof.scant, 3)))
    if proof.problem is None or proof.credits:
        name = "The references did as well" if proof.problem is None else "Augmentation seen"
        facts.append((name, _credits(proof.credits)))
    facts.append(("Trying it out took", seconds(proof.seconds)))
    return tuple(facts)


def _decoded(proof: GraphProof) -> str:
    share = f"{percent(proof.area, 3)} on average" if proof.windows else "all of it"
    return f"{share} (the standard random crop shows {percent(proof.standard_area, 3)})"


def _credits(shares: Mapping[str, float]) -> str:
    if not shares:
        return "no rotation, colour changes or blurring: none were seen"
    parts = [f"{_WORK.get(work, title(work))} of {percent(share, 3)} of the images" for work, share in shares.items()]
    return listed(parts)


def _audits(content: ContentProof) -> str:
    if not content.audited:
        return "none"
    failed = f"{content.failed_audits:,} of them failed" if content.failed_audits else "none failed"
    return f"{content.audited:,}, {failed}"
