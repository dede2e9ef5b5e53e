"""The entry points of one group, by name: who declares what, from metadata alone."""

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points

from grader_service.errors import ConfigurationError
from grader_service.model.near import instead


class Declared:
    """The entry points of a group; listing and naming them imports nothing."""

    def __init__(self, group: str, points: Iterable[EntryPoint] | None = None) -> None:
        """Takes the entry points of the group; those that are installed if none are given."""
        self._points: dict[str, list[EntryPoint]] = {}
        for point in entry_points(group=group) if points is None else points:
            self._points.setdefault(point.name, []).append(point)

    def names(self) -> list[str]:
        """Every name that is declared, sorted."""
        return sorted(self._points)

    def of(self, name: str) -> list[EntryPoint]:
        """The entry points of this name; more than one where distributions contradict each other."""
        return self._points.get(name, [])

    def origin(self, name: str) -> str:
        """Distributions and versions that declare this name."""
        return ", ".join(map(origin, self.of(name)))

    def only(self, kind: str, name: str) -> EntryPoint:
        """The one entry point of this name; messages call it a `kind`, such as `check`.

        Raises:
            ConfigurationError: it is not installed, or installed twice.
        """
        points = self.of(name)
        if not points:
            raise ConfigurationError(
                f"no {kind} {name!r} is installed{instead(name, self.names(), f'installed {kind}s')}"
            )
        if len(points) > 1:
            raise ConfigurationError(
                f"{kind} {name!r} is declared by {self.origin(name)}; uninstall all of them but one"
            )
        return points[0]


def origin(point: EntryPoint) -> str:
    """The distribution and version that an entry point came with."""
    return f"{point.dist.name} {point.dist.version}" if point.dist else f"an unknown distribution ({point.value})"
