"""The codes of a check that is a function: read from the results that its source returns.

Every call of `passed`, `failed`, `unverified`, `inconclusive` and `undecided` in the function, and in the functions of
the same module that it uses, declares the code that it names. Its meaning is the sentence that the learner reads, or
the words of the code where that sentence is computed.
"""

import ast
from collections.abc import Callable, Mapping
from typing import Any

from checks.own_source import parsed, reached, source_of

_MAKERS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "passed": ("passed", ("feedback",)),
    "failed": ("failed", ("code", "feedback")),
    "unverified": ("unverified", ("code", "feedback")),
    "inconclusive": ("inconclusive", ("code", "feedback")),
    "undecided": ("", ("outcome", "code", "feedback")),
    "missing": ("failed", ("found",)),
}
"""Function → outcome of its results, empty where it is an argument, and names of the arguments by position."""
_MODULES = ("checks.api", "checks.results", "checks.stopped")
_LONGEST = 160


def own_codes(function: Callable[..., Any], word: str) -> dict[str, str]:
    """Code → meaning, as `checks.contract.Check.codes` has them.

    Args:
        function: a check.
        word: first word of its codes.

    Raises:
        TypeError: its source cannot be read.
    """
    tree = parsed(source_of(function))
    makers = _makers(tree)
    found: dict[str, set[str]] = {}
    meanings: dict[str, str] = {}
    for node in reached(tree, function.__name__).values():
        for call in ast.walk(node):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in makers:
                said = _said(call, *makers[call.func.id])
                if said is not None:
                    outcome, code, meaning = said
                    whole = code if "." in code else f"{word}.{code}"
                    found.setdefault(whole, set()).add(outcome)
                    meanings.setdefault(whole, meaning)
    return {code: _with_outcomes(code, outcomes, meanings[code]) for code, outcomes in found.items()}


def _with_outcomes(code: str, outcomes: set[str], meaning: str) -> str:
    usual = "passed" if code.endswith(".ok") else "failed"
    return meaning if outcomes == {usual} else f"{' or '.join(sorted(outcomes))}: {meaning}"


def _makers(tree: ast.Module) -> dict[str, tuple[str, tuple[str, ...]]]:
    """The names under which a module has the functions that make results, and what each makes."""
    return {
        alias.asname or alias.name: _MAKERS[alias.name]
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in _MODULES
        for alias in node.names
        if alias.name in _MAKERS
    }


def _said(call: ast.Call, outcome: str, order: tuple[str, ...]) -> tuple[str, str, str] | None:
    """Outcome, code and meaning of one call; None where the code or the outcome is computed."""
    given = dict(zip(order, call.args, strict=False)) | {one.arg: one.value for one in call.keywords}
    code = given.get("code")
    if "found" in given:
        return _missing(given["found"], code)
    if code is None:
        text = "ok" if outcome == "passed" else None
    else:
        text = code.value if isinstance(code, ast.Constant) and isinstance(code.value, str) else None
    if not outcome and isinstance(named := given.get("outcome"), ast.Attribute):  # Outcome.UNVERIFIED
        outcome = named.attr.lower()
    if text is None or not outcome:
        return None
    return outcome, text, _meaning(given.get("feedback")) or _words(text)


def _missing(found: ast.AST, code: ast.AST | None) -> tuple[str, str, str] | None:
    """Of `missing(absent(discovery, name), …)`, which names its code itself or after the name."""
    name = found.args[1] if isinstance(found, ast.Call) and len(found.args) > 1 else None
    written = str(name.value) if isinstance(name, ast.Constant) else ""
    if isinstance(code, ast.Constant):
        return "failed", str(code.value), f"`{written}` is not defined" if written else "a name is not defined"
    return ("failed", f"{written}_missing", f"`{written}` is not defined") if written and code is None else None


def _meaning(node: ast.AST | None) -> str:
    """A sentence as it is written, with `…` for what is computed; empty where all of it is."""
    if isinstance(node, ast.Call):  # Feedback(outcome=…)
        return _meaning(next((one.value for one in node.keywords if one.arg == "outcome"), None))
    text = _written(node)
    if text.strip("… .,:") == "":
        return ""
    return text.rstrip(".").replace("|", "/").replace(": ", ", ")[:_LONGEST]


def _written(node: ast.AST | None) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_written(part) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _written(node.left) + _written(node.right)
    return "…"


def _words(code: str) -> str:
    return code.rpartition(".")[2].replace("_", " ")
