"""The codes of a check that is a function: read from the results that its source returns.

Every call of `passed`, `failed`, `unverified`, `inconclusive` and `undecided` in the function, and in the functions of
its package and of the grader's own checks that it uses, declares the code that it names. Its meaning is that of
`checks.codes.COMMON`, or the sentence that the learner reads, or the words of the code where that sentence is computed.
"""

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from checks.codes import COMMON, outcomes_of
from checks.own_source import reached_from

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
"""What makes results; how they do it says nothing of a check."""
_LEAST_WORDS, _MOST_WORDS = 3, 20


def own_codes(function: Callable[..., Any], word: str) -> tuple[dict[str, str], list[str]]:
    """What a check's source says of its codes.

    Args:
        function: a check.
        word: first word of its codes.

    Returns:
        Code → meaning, as `checks.contract.Check.codes` has them; and the calls, as source, that make results whose
        codes are computed, which the check has to name.

    Raises:
        TypeError: its source cannot be read.
    """
    answers, computed = answers_of(function)
    found: dict[str, str] = {}
    for code, (outcomes, meaning) in answers.items():
        whole = code if "." in code else f"{word}.{code}"
        shared = outcomes_of(code, COMMON[code]) if code in COMMON else frozenset()
        usual = "passed" if code == "ok" or code.endswith(".ok") else "failed"
        if code in COMMON and outcomes <= shared:
            found[whole] = COMMON[code]
        else:
            told = "" if outcomes | shared == {usual} else f"{' or '.join(sorted(outcomes | shared))}: "
            found[whole] = f"{told}{meaning}"
    return found, computed


def answers_of(function: Callable[..., Any]) -> tuple[dict[str, tuple[set[str], str]], list[str]]:
    """Code as it is written, mostly a last word → the outcomes with which it comes, and what it means.

    Returns:
        That, and the calls whose codes are computed, as source.

    Raises:
        TypeError: its source cannot be read.
    """
    found: dict[str, tuple[set[str], str]] = {}
    computed = []
    for module, node in reached_from(function, _MODULES):
        makers = _makers(module)
        for call in ast.walk(node):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in makers):
                continue
            said = list(_said(call, *makers[call.func.id], _texts_before(node, call)))
            if not said:
                computed.append(ast.unparse(call))
            for outcome, code, meaning in said:
                found.setdefault(code, (set(), meaning))[0].add(outcome)
    return found, computed


def _makers(tree: ast.Module) -> dict[str, tuple[str, tuple[str, ...]]]:
    """The names under which a module has the functions that make results, and what each makes."""
    return {
        alias.asname or alias.name: _MAKERS[alias.name]
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in _MODULES
        for alias in node.names
        if alias.name in _MAKERS
    }


def _texts_before(node: ast.AST, call: ast.Call) -> dict[str, ast.AST]:
    """Name → what was assigned to it last before a call: the sentences that a function writes before it returns."""
    assigned = [one for one in ast.walk(node) if isinstance(one, ast.Assign) and one.lineno <= call.lineno]
    return {
        name.id: value
        for one in sorted(assigned, key=lambda one: one.lineno)
        for target in one.targets
        for name, value in zip(*map(_parts, (target, one.value)), strict=False)
        if isinstance(name, ast.Name)
    }


def _parts(node: ast.AST) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [cast(ast.expr, node)]


def _said(
    call: ast.Call, outcome: str, order: tuple[str, ...], texts: Mapping[str, ast.AST]
) -> Iterator[tuple[str, str, str]]:
    """Outcome, code and meaning of one call; nothing where the code or the outcome is computed."""
    given = dict(zip(order, call.args, strict=False)) | {one.arg: one.value for one in call.keywords}
    code = given.get("code")
    if "found" in given:
        yield from _missing(given["found"], code)
        return
    if not outcome and isinstance(named := given.get("outcome"), ast.Attribute):  # Outcome.UNVERIFIED
        outcome = named.attr.lower()
    if code is None and outcome == "passed":
        code = ast.Constant("ok")
    told = given.get("feedback")
    meaning = _meaning(texts.get(told.id) if isinstance(told, ast.Name) else told)
    for one in _codes(code) if outcome else ():
        yield outcome, one, meaning or _words(one)


def _codes(code: ast.AST | None) -> list[str]:
    """What a code is, or may be: a text, or one of two by a condition."""
    if isinstance(code, ast.IfExp):
        return [*_codes(code.body), *_codes(code.orelse)]
    return [code.value] if isinstance(code, ast.Constant) and isinstance(code.value, str) else []


def _missing(found: ast.AST, code: ast.AST | None) -> Iterator[tuple[str, str, str]]:
    """Of `missing(absent(discovery, name), …)`, which names its code itself or after the name."""
    name = found.args[1] if isinstance(found, ast.Call) and len(found.args) > 1 else None
    written = str(name.value) if isinstance(name, ast.Constant) else ""
    meaning = f"`{written}` is not defined" if written else "a name that it needs is not defined"
    if isinstance(code, ast.Constant):
        yield "failed", str(code.value), meaning
    elif written and code is None:
        yield "failed", f"{written}_missing", meaning


def _meaning(node: ast.AST | None) -> str:
    """A sentence as it is written, with `…` for what is computed; empty where nearly all of it is."""
    if isinstance(node, ast.Call):  # Feedback(outcome=…)
        return _meaning(next((one.value for one in node.keywords if one.arg == "outcome"), None))
    text = _written(node)
    if "…" in text and len([word for word in text.split() if word.strip("`….,:;")]) < _LEAST_WORDS:
        return ""
    if text[1:2].islower() or text.startswith("A "):
        text = text[0].lower() + text[1:]
    words = text.rstrip(".").replace("|", "/").replace(": ", ", ").split()
    return " ".join(words[:_MOST_WORDS]) + ("" if len(words) <= _MOST_WORDS else " …")


def _written(node: ast.AST | None) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_written(part) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _written(node.left) + _written(node.right)
    return "…"


def _words(code: str) -> str:
    last = code.rpartition(".")[2]
    return "what was asked for is there" if last == "ok" else last.replace("_", " ")
