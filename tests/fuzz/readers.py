"""The table of readers: who reads hostile bytes, what it may raise, and how large its input is.

A reader is a function from bytes that gives a value or raises what it is documented to raise. Anything else is a crash:
another exception, more than `MOST_SECONDS` of processor time for one input, more than `MOST_MIB` of memory beyond what
was there before.
The limits that each reader itself enforces stand in `docs/hostile-bytes.md`.
"""

import importlib
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SEEDS = Path(__file__).parent / "seeds"
MOST_SECONDS = 5.0
MOST_MIB = 256


class Crash(Exception):
    """A reader used more time or memory than any input may cost."""


@dataclass(frozen=True)
class Reader:
    """One reader of hostile bytes."""

    name: str
    place: str
    """`module:function`, below `tests.fuzz`; imported when it is used."""
    refuses: tuple[str, ...] = ()
    """The exceptions that it is documented to raise, as `module:class`."""
    is_json: bool = False
    """Whether its bytes are JSON, so that a mutation of the value beats one of the bytes."""
    most_bytes: int = 16384
    """Longest input that a fuzzer makes."""

    def load(self) -> Callable[[bytes], object]:
        """The function, with documented exceptions turned into values and the limits watched."""
        read: Callable[[bytes], object] = _named(f"tests.fuzz.{self.place}")
        documented = tuple(_named(place) for place in self.refuses)

        def played(data: bytes) -> object:
            memory, started = _peak_mib(), time.process_time()
            try:
                answer = read(data)
            except documented as refusal:
                answer = refusal
            seconds, grown = time.process_time() - started, _peak_mib() - memory
            if seconds > MOST_SECONDS:
                raise Crash(f"{self.name} took {seconds:.1f} s")
            if grown > MOST_MIB:
                raise Crash(f"{self.name} took {grown} MiB")
            return answer

        return played

    def seeds(self) -> list[Path]:
        """Its files, those that once crashed it among them (`crash-*`)."""
        return sorted(path for path in (SEEDS / self.name).glob("*") if path.is_file())


def _named(place: str) -> Callable[[bytes], object] | type[BaseException]:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def _peak_mib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


_REJECTED = "grader_service.errors:SubmissionRejected"
READERS = {
    reader.name: reader
    for reader in (
        Reader("frames", "pods:frames", ("sandbox.frames:FrameError",), most_bytes=65536),
        Reader("discovery", "pods:discovery", is_json=True),
        Reader("dialogue", "pods:dialogue", ("grader_service.errors:SandboxUnavailable",), is_json=True),
        Reader("pixels", "pixels:pixels", most_bytes=65536),
        Reader("means", "pixels:means"),
        Reader("opener", "files:opener", (_REJECTED, "grader_service.errors:InfrastructureError"), is_json=True),
        Reader("notebook", "files:notebook", (_REJECTED, "builtins:MemoryError"), is_json=True),
        Reader("zip", "files:zip_archive", (_REJECTED,)),
        Reader("tar", "files:tar_archive", (_REJECTED,)),
        Reader("envelope", "messages:envelope", ("grader_service.queue.envelope:Unreadable",), is_json=True),
        Reader("intake", "messages:intake", is_json=True),
        Reader("uri", "messages:uri", (_REJECTED,), most_bytes=4096),
        Reader("form", "messages:form", ("builtins:ValueError",), most_bytes=65536),
        Reader("page", "pages:page", is_json=True),
        Reader("evidence", "stored:evidence", ("grader_service.errors:InfrastructureError",), is_json=True),
        Reader("signature", "stored:signature", ("builtins:ValueError",), is_json=True),
        Reader("verdict", "stored:verdict", ("builtins:ValueError",), is_json=True),
        Reader("judges", "judges:judges", ("pydantic:ValidationError",), is_json=True),
        Reader("reflections", "judges:reflections"),
        Reader("diagnosis", "judges:diagnosis", ("pydantic:ValidationError",), is_json=True),
        Reader(
            "graph",
            "graphs:graph",
            ("sandbox.guest.graph.wire:WireError", "sandbox.guest.graph.model:GraphRefused"),
        ),
        Reader("lab_toml", "stored:lab_toml"),
        Reader("lab_yaml", "stored:lab_yaml"),
    )
}
