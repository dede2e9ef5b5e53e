"""The check `pinned_memory`."""

from checks.api import Loaders, Result, check, failed, passed


@check(version="1.0.0")
def pinned_memory(loaders: Loaders, *, least_workers: int = 2) -> Result:
    """A DataLoader pins its memory and has at least `least_workers` workers.

    Points: all or nothing. Cannot detect: a loader that is never used."""
    write = f"loader = DataLoader(dataset, pin_memory=True, num_workers={least_workers})"
    if not loaders:
        return failed("no_loader", "No variable holds a DataLoader.", next="Keep one in a variable:", write=write)
    best = max(loaders, key=lambda loader: (loader.pin_memory, loader.num_workers))
    said = f"Your code says that `{best.name}` has pin_memory={best.pin_memory} and num_workers={best.num_workers}."
    if not best.pin_memory:
        return failed("not_pinned", said, next="Pin its memory:", write=write)
    if best.num_workers < least_workers:
        return failed("too_few", said, wanted=f"At least {least_workers} workers.", next="Raise it:", write=write)
    return passed(said)
