"""What one item says, as far as words show."""

from dataclasses import dataclass, field
from functools import cached_property

from checks.reflections.lexicon import Hit, all_function_words
from checks.reflections.text import Piece

NEAR, BESIDE = 3.6, 2.6
"""Distances in words: in one phrase, and next to each other but for a word or two."""
_SAID = 3.2
_BEARERS = frozenset({"model", "image", "jpeg", "video", "core", "cpu", "gpu", "storage", "scale", "audio", "server"})
"""What can be large, small, fast or slow."""


@dataclass(frozen=True)
class Reading:
    """One item with the concepts it names and the facts that follow from them."""

    text: str
    """Cleaned."""
    words: list[Piece]
    hits: list[Hit]
    numbers: list[tuple[float, float]]
    """(value, position), percentages excluded."""
    percentages: list[tuple[float, float]]
    facts: frozenset[str] = field(default_factory=frozenset)

    @cached_property
    def concepts(self) -> frozenset[str]:
        """Names of the concepts."""
        return frozenset(hit.concept for hit in self.hits)

    @cached_property
    def all(self) -> frozenset[str]:
        """Concepts and facts."""
        return self.concepts | self.facts

    @cached_property
    def length(self) -> float:
        """Length in words, whatever the script."""
        return sum(piece.width for piece in self.words)

    @cached_property
    def content(self) -> frozenset[str]:
        """Words that are neither function words nor numbers."""
        small = all_function_words()
        return frozenset(
            piece.text
            for piece in self.words
            if piece.kind != "number" and piece.text not in small and piece.kind != "sign"
        )

    @cached_property
    def said(self) -> float:
        """Length in words without the function words."""
        small = all_function_words()
        return sum(piece.width for piece in self.words if piece.text not in small and piece.kind != "sign")

    @cached_property
    def unexplained(self) -> frozenset[str]:
        """Content words without any concept."""
        explained = {number for hit in self.hits for number in range(hit.piece, hit.piece + hit.size)}
        return self.content & {piece.text for number, piece in enumerate(self.words) if number not in explained}

    @cached_property
    def function_count(self) -> int:
        """How many function words it has."""
        small = all_function_words()
        return sum(piece.text in small for piece in self.words if piece.kind != "number")

    def places(self, *names: str) -> list[float]:
        """Positions of concepts."""
        return [hit.at for hit in self.hits if hit.concept in names]

    def near(self, left: tuple[str, ...], right: tuple[str, ...], distance: float = NEAR) -> bool:
        """Whether any of the left concepts stands near any of the right ones (not the very same word)."""
        rights = [hit for hit in self.hits if hit.concept in right]
        return any(
            abs(hit.at - other.at) <= distance and (hit.piece != other.piece or hit.at != other.at)
            for hit in self.hits
            if hit.concept in left
            for other in rights
        )

    def said_of(self, qualities: tuple[str, ...], thing: str) -> bool:
        """Whether a quality stands beside the thing, and nothing else that could have it stands closer."""
        for quality in self.hits:
            if quality.concept not in qualities:
                continue
            gaps = [
                (abs(hit.at - quality.at), hit.concept != thing)
                for hit in self.hits
                if hit.concept in _BEARERS and abs(hit.at - quality.at) <= _SAID
            ]
            if gaps and not min(gaps)[1]:
                return True
        return False
