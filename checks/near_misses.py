"""Finds what a learner may have meant by a missing name: a variable of the right kind, or one almost called so."""

import difflib
from collections.abc import Mapping

from grader_service.model.discovery import Discovery, NameFacts

_KIND: Mapping[str, str] = {
    "dataset_dir": "folder",
    "first_batch": "batch",
    "where_dali_wins": "texts",
    "where_dali_loses": "texts",
    "pytorch_throughput": "number",
    "dali_throughput": "number",
}
_ALIKE = 0.6
"""Share of equal letters from which on a name counts as meant."""
_ALONE = frozenset({"folder", "batch"})
"""Kinds of which a single variable is meant, whatever it is called."""
_SAYS = {
    "folder": "a folder with {count} JPEG files",
    "batch": "a batch of {count} images",
    "texts": "a list of {count} texts",
    "text": "one text, where a list is wanted",
    "number": "the number {shown}",
}


def nearest(discovery: Discovery, wanted: str) -> NameFacts | None:
    """The variable that was probably meant; None where nothing is like it.

    Args:
        discovery: with the variables of the learner's namespace.
        wanted: the missing name, one that the lab `dali-pipelines` asks for.
    """
    kind = _KIND.get(wanted)
    fitting = [facts for facts in discovery.names if facts.kind == kind or (kind == "texts" and facts.kind == "text")]
    likeness = {facts.name: _alike(facts.name, wanted) for facts in fitting}
    best = max(fitting, key=lambda facts: likeness[facts.name], default=None)
    if best is None or not (likeness[best.name] >= _ALIKE or (len(fitting) == 1 and kind in _ALONE)):
        return None
    return best


def said(facts: NameFacts) -> str:
    """What it holds, such as `a folder with 128 JPEG files`."""
    return _SAYS[facts.kind].format(count=facts.count, shown=facts.shown)


def _alike(name: str, wanted: str) -> float:
    plain, other = (text.lower().replace("_", "") for text in (name, wanted))
    return difflib.SequenceMatcher(None, plain, other, autojunk=False).ratio()
