"""From audits and identities of one arm to the proof of what it delivered."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from grader_service.held_out.audit import Audit
from grader_service.model.measurement import ContentKind, ContentProof

LEAST_MEAN = 0.75
"""Mean texture of a sample whose images were all decoded."""
LEAST_SHARE = 0.95
"""Share of a sample that must pass one by one, and of delivered images that must be known."""
LEAST_AREA = 0.8
"""What is visible, compared with the standard job's."""
LOWEST = 1 / 3
"""Part of an image that a decoder reads only if it reads the file nearly to its end."""
_FEWEST_AREAS = 8
_AREA_ERRORS = 3.0
_DELIVERED = (ContentKind.FULL, ContentKind.COARSE)


@dataclass(frozen=True)
class Figures:
    """Of the images delivered in timed windows."""

    delivered: int
    identified: int
    """Of them, those that are an image of the current shard."""
    distinct: int
    stale: int
    """Those that belong to another part of the plan."""
    problem: str | None = None
    """Why identities could not be told; the counts are 0 then."""


def prove(audits: Sequence[Audit], figures: Figures, *, expected: tuple[float, float] | None = None) -> ContentProof:
    """Whether the images of an arm count as delivered, and if not, why (`problem`).

    Problems, in this order: `no_images`; `no_colour`, `colours_changed`, `not_identified` (which images came cannot be
    told); `not_audited`; `partial_decode` (reduced), `rendered`, `not_comparable` (unknown);
    `small_area`.

    Args:
        audits: of images chosen at random among those delivered in timed windows.
        expected: of the standard job, mean visible share of the source, and share of images that show its lowest third.
    """
    failed = [audit for audit in audits if audit.kind not in _DELIVERED]
    texture = fmean(audit.texture for audit in audits) if audits else None
    known = [audit for audit in audits if audit.kind is not ContentKind.UNKNOWN]
    areas = [audit.area for audit in known]
    reaching = [float(audit.bottom > 1 - LOWEST) for audit in known]
    expected_area, expected_low = expected or (None, None)
    enough = texture is not None and texture >= LEAST_MEAN and len(failed) <= (1 - LEAST_SHARE) * len(audits)
    kind = _kind(audits, failed, enough=enough)
    return ContentProof(
        delivered=figures.delivered,
        identified=figures.identified,
        distinct=figures.distinct,
        stale=figures.stale,
        audited=len(audits),
        failed_audits=len(failed),
        texture=texture,
        area=fmean(areas) if areas else None,
        expected_area=expected_area,
        low=fmean(reaching) if reaching else None,
        expected_low=expected_low,
        kind=kind,
        problem=_figures_problem(figures)
        or _audit_problem(audits, kind, enough=enough)
        or _area_problem(areas, expected_area)
        or _area_problem(reaching, expected_low),
        note=_note(audits),
    )


def _kind(audits: Sequence[Audit], failed: Sequence[Audit], *, enough: bool) -> ContentKind:
    """What most failed audits say when too many failed; what most audits say otherwise."""
    counted = Counter(audit.kind for audit in (audits if enough or not failed else failed))
    return counted.most_common(1)[0][0] if counted else ContentKind.UNKNOWN


def _figures_problem(figures: Figures) -> str | None:
    if not figures.delivered:
        return "no_images"
    if figures.problem is not None:
        return figures.problem
    if figures.identified + figures.stale < LEAST_SHARE * figures.delivered:
        return "not_identified"
    return None


def _audit_problem(audits: Sequence[Audit], kind: ContentKind, *, enough: bool) -> str | None:
    if not audits:
        return "not_audited"
    if enough:
        return None
    return {ContentKind.REDUCED: "partial_decode", ContentKind.RENDERED: "rendered"}.get(kind, "not_comparable")


def _area_problem(areas: Sequence[float], expected: float | None) -> str | None:
    """Windows are random, so a small mean proves something only when it is small beyond the error of a sample."""
    if expected is None or len(areas) < _FEWEST_AREAS:
        return None
    error = stdev(areas) / math.sqrt(len(areas))
    return "small_area" if fmean(areas) + _AREA_ERRORS * error < LEAST_AREA * expected else None


def _note(audits: Sequence[Audit]) -> str:
    if not audits:
        return ""
    textures = [audit.texture for audit in audits]
    blocks = min(audit.worst_block for audit in audits)
    kinds = Counter(audit.kind.value for audit in audits)
    told = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    return f"{told}; texture {min(textures):.2f} to {max(textures):.2f}, worst block {blocks:.2f}"
