"""What a case is: something that somebody hands in or does, and the answers that are right."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tests.corpus.world import World

SUBMISSION = "submission"
"""Target of a case that is decided before any check: the verdict's own status and code."""
NOT_REACHED = "run.not_reached"
"""Code of a check that could not look, because the code ended before it had made what is looked at."""
Content = str | bytes | Callable[[], bytes]
"""A file's text, its bytes, or what makes them (archives)."""
Sandbox = Literal["docker", "forked"]
_OUTSIDE = ('"/tmp', '"/dev/shm')
"""What is written there is another pod's too where pods have no walls."""
_WALLESS = frozenset("VTK")
"""Families of what a submission says and delivers, and of good faith: whether pods have walls changes nothing."""


@dataclass(frozen=True)
class Observed:
    """What came out of a case for its target."""

    outcome: str
    """`passed`, `failed`, `unverified`, `inconclusive`, `skipped`, `rejected`, `error`; for procedures `passed` means
    that the attack got what it wanted."""
    code: str
    detail: str = ""
    others: Mapping[str, str] = field(default_factory=dict)
    """Code of every other check that was graded."""


@dataclass(frozen=True)
class _Named:
    """What all cases have."""

    id: str
    """The attack or the kind of the catalogue (`V01`, `K01` to `K60`), with a suffix where it has several forms
    (`V01-literal`)."""
    title: str
    """What is tried, or what it is, in a few words."""
    deadline_s: float = field(default=120.0, kw_only=True)
    """Wall clock within which the verdict must be there, on two busy cores."""

    @property
    def attack(self) -> str:
        """The catalogue's id."""
        return self.id[:3]


@dataclass(frozen=True, kw_only=True)
class _Submitted(_Named):
    """What cheats and honest submissions have."""

    content: Content
    filename: str = "submission.py"
    steps: tuple[str, ...]
    limits: Mapping[str, object] = field(default_factory=dict)
    """Changes to the lab's limits."""
    plan: Mapping[str, object] = field(default_factory=dict)
    """Changes to the short measurement plan of the corpus."""


@dataclass(frozen=True, kw_only=True)
class Cheat(_Submitted):
    """A submission that must not pass its target, for a reason that is named."""

    target: str
    """Id of the check that is attacked, or `SUBMISSION`."""
    codes: tuple[str, ...]
    """The answers that are right. Several only where chance decides between them (a random image is nobody's, or the
    same again) or where the noise of a busy machine may leave a slow graph undecided."""
    others: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Codes that other checks must give, where the attack must not cost what is honest beside it."""
    threshold: float = 1.1

    def play(self, world: "World") -> Observed:
        """Grades it."""
        return world.observe(self)


@dataclass(frozen=True, kw_only=True)
class Honest(_Submitted):
    """A submission of good faith, which no form may cost a point."""

    codes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Check id → right codes, where it is not a pass: a documented limit, or a rule that is honestly missed. Every
    check that is not named must pass."""
    says: Mapping[str, str] = field(default_factory=dict)
    """Check id → words that its feedback must have: advice that costs nothing."""
    threshold: float = 0.02
    """What is proved is that a form is accepted, not how fast this machine is."""


@dataclass(frozen=True)
class Procedure(_Named):
    """An attack that is no submission alone: messages, frames, repeated attempts, the pod's walls.

    `play` does it and says what came out; `passed` means that the attack got what it wanted.
    """

    play: Callable[["World"], Observed]
    codes: tuple[str, ...]
    target: str = "procedure"


Case = Cheat | Honest | Procedure


def sandbox_of(case: Case) -> Sandbox:
    """The sandbox that a case needs: Docker where its outcome may hang on the walls between pods, else forked pods.

    What measures does not, nor what only says and delivers something; but all that leaves its folder does.
    """
    content = getattr(case, "content", "")
    if isinstance(content, str) and any(place in content for place in _OUTSIDE):
        return "docker"
    return "forked" if case.id[0] in _WALLESS or "benchmark" in getattr(case, "steps", ()) else "docker"
