"""Reads out of the source of checks which codes they can answer with, and with which outcomes, without running them.

An expression in the place of a code is followed to every text that it may be: through names, tuples, conditions,
tables and functions of the same package. Where that is not possible `Unknown` says so.
"""

import ast
import contextlib
import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

WORD = "<word>"
"""Stands for the first word of a code in a function that is given it."""
_MAKERS = {"passed": None, "failed": 0, "undecided": 1}
"""Functions of `checks.api` that make results, and the place of the code among their arguments; a pass is `ok`."""
_FIRST_WORDS = ("word", "check")
_BY_NAME = "missing"
"""Helper that makes a code of a name, unless it is given one."""

Found = dict[str, set[str]]
"""Code → outcomes."""


class Unknown(Exception):
    """What an expression may be cannot be read from the source."""


class _Module:
    """One file's functions, constants and fields of classes."""

    def __init__(self, path: Path) -> None:
        self.tree = ast.parse(path.read_text())
        nodes = list(ast.walk(self.tree))
        self.functions = {node.name: node for node in nodes if isinstance(node, ast.FunctionDef)}
        self.classes = {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}
        self.constants = dict(_bindings(self.tree.body))

    def fields(self, name: str) -> list[str]:
        """Names of a class's fields, in order."""
        body = self.classes[name].body
        return [one.target.id for one in body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)]


class Source:
    """The modules of one check, or one that answers for several."""

    def __init__(self, paths: Sequence[Path], given: Mapping[str, set[str]] | None = None) -> None:
        """Reads the modules; `given` says what expressions may be that the source alone does not tell."""
        self.given = dict(given or {})
        self.used: set[str] = set()
        self._modules = [_Module(path) for path in paths]

    def made(self, *names: str) -> Found:
        """Codes of the results that functions (all of them without names) make themselves."""
        found: Found = defaultdict(set)
        for scope, call in self._calls():
            name = _plain(call.func)
            if name not in _MAKERS or (names and scope.function.name not in names):
                continue
            outcome = call.args[0].attr.lower() if name == "undecided" else name
            place = _MAKERS[name]
            codes = {f"{WORD}.ok"} if place is None else scope.values(call.args[place])
            for code in codes:
                found[code].add(outcome)
        return found

    def asked(self, helpers: Mapping[str, tuple[int, Mapping[str, set[str]]]]) -> Found:
        """Codes of the results that others make for these modules: helper → place of the first word, its last words."""
        found: Found = defaultdict(set)
        for scope, call in self._calls():
            name = _plain(call.func)
            for code in _of_name(scope, call) if name == _BY_NAME else ():
                found[code].add("failed")
            if name not in helpers:
                continue
            place, last_words = helpers[name]
            for word in scope.values(call.args[place]) - {WORD}:
                for last, outcomes in last_words.items():
                    found[f"{word}.{last}"] |= outcomes
        return found

    def literals(self, word: str) -> set[str]:
        """Texts that look like codes of this first word, wherever they stand but in `codes`."""
        found = set()
        for module in self._modules:
            left_out = {id(inner) for one in ast.walk(module.tree) if _is_codes(one) for inner in ast.walk(one)}
            for node in ast.walk(module.tree):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in left_out:
                    first, dot, last = node.value.partition(".")
                    if first == word and dot and last.isidentifier():
                        found.add(node.value)
        return found

    def made_otherwise(self) -> list[str]:
        """Results that are made or changed in a way that is not looked at here."""
        return [
            ast.unparse(call)
            for _, call in self._calls()
            if _name(call.func) == "Result" or (_name(call.func) == "model_copy" and "'code'" in ast.unparse(call))
        ]

    def _calls(self) -> Iterator[tuple["_Scope", ast.Call]]:
        for module in self._modules:
            for function in module.functions.values():
                for node in ast.walk(function):
                    if isinstance(node, ast.Call):
                        yield _Scope(self, module, function), node

    def nearest(self, module: _Module) -> list[_Module]:
        """All modules, this one first."""
        return [module, *(other for other in self._modules if other is not module)]


class _Scope:
    """The inside of one function, in which names mean something."""

    def __init__(self, source: Source, module: _Module, function: ast.FunctionDef) -> None:
        self.source, self.module, self.function = source, module, function
        self._bound: dict[str, list[ast.expr]] = defaultdict(list)
        for name, value in _bindings(function.body):
            self._bound[name].append(value)

    def values(self, node: ast.expr, place: int | None = None) -> set[str]:
        """Every text that an expression, or its part at this place, may be."""
        text = ast.unparse(node)
        if place is None and text in self.source.given:
            self.source.used.add(text)
            return self.source.given[text]
        match node:
            case ast.Constant(value=None | ""):
                return set()
            case ast.Constant(value=str(value)) if place is None:
                return {value}
            case ast.Tuple(elts=parts) if place is not None:
                return self.values(parts[place])
            case ast.JoinedStr(values=parts):
                return {"".join(one) for one in itertools.product(*map(self.values, parts))}
            case ast.FormattedValue(value=inner):
                return self.values(inner)
            case ast.IfExp(body=one, orelse=other):
                return self._any([one, other], place)
            case ast.BoolOp(values=parts):
                return self._any(parts, place)
            case ast.Subscript() | ast.Attribute():
                return self._part(node, place)
            case ast.Name(id=name):
                return self._narrowed(node, self._named(name, place))
            case ast.Call():
                return self._called(node, place)
        raise Unknown(text)

    def _part(self, node: ast.Subscript | ast.Attribute, place: int | None) -> set[str]:
        match node:
            case ast.Subscript(value=inner, slice=ast.Constant(value=int(number))):
                return self.values(inner, number)
            case ast.Subscript(value=table):
                return self._any(self._table(table).values, place)
        return self.values(node.value, self._place_of(node.attr, ast.unparse(node)))

    def _any(self, nodes: Sequence[ast.expr], place: int | None) -> set[str]:
        return set().union(*(self.values(node, place) for node in nodes))

    def _named(self, name: str, place: int | None) -> set[str]:
        if (keys := self._as_key(name)) is not None and place is None:
            return keys
        if name in self._bound:
            return self._any(self._bound[name], place)
        if name in {argument.arg for argument in self.function.args.args}:
            if name in _FIRST_WORDS:
                return {WORD}
            raise Unknown(f"{name} of {self.function.name}")
        for module in self.source.nearest(self.module):
            if name in module.constants:
                return self.values(module.constants[name], place)
        raise Unknown(name)

    def _as_key(self, name: str) -> set[str] | None:
        """Keys of a table out of which this function takes what stands under this name; None when it takes nothing."""
        for node in ast.walk(self.function):
            match node:
                case ast.Subscript(value=ast.Name() as table, slice=ast.Name(id=key)) if key == name:
                    with contextlib.suppress(Unknown):  # a list, or a table that is made while it runs
                        return self._any(self._table(table).keys, None)
        return None

    def _narrowed(self, name: ast.Name, values: set[str]) -> set[str]:
        """Without the values that an `if name == …` before it returned for, and within such an `if` only those."""
        for node in ast.walk(self.function):
            match node:
                case ast.If(test=ast.Compare(left=ast.Name(id=left), ops=[ast.Eq()], comparators=[other])):
                    if left != name.id:
                        continue
                    if node.body[0].lineno <= name.lineno <= node.body[-1].end_lineno:
                        values &= self.values(other)
                    elif name.lineno > node.end_lineno and isinstance(node.body[-1], ast.Return):
                        values -= self.values(other)
        return values

    def _place_of(self, field: str, text: str) -> int:
        for module in self.source.nearest(self.module):
            for name in module.classes:
                if field in module.fields(name):
                    return module.fields(name).index(field)
        raise Unknown(text)

    def _table(self, node: ast.expr) -> ast.Dict:
        name = _name(node)
        found = [*self._bound[name]] if name in self._bound else []
        found += [one.constants[name] for one in self.source.nearest(self.module) if name in one.constants]
        if found and isinstance(found[0], ast.Dict):
            return found[0]
        raise Unknown(ast.unparse(node))

    def _called(self, call: ast.Call, place: int | None) -> set[str]:
        match call:
            case ast.Call(func=ast.Attribute(value=table, attr="get"), args=[key, default]):
                values = self._any(self._table(table).values, place)
                if ast.unparse(key) == ast.unparse(default):
                    return values | (self.values(key) - self._any(self._table(table).keys, None))
                return values | self.values(default, place)
            case ast.Call(func=ast.Subscript(value=ast.Dict(values=functions))):
                return set().union(*(self._returned(_name(one), place) for one in functions))
        name = _name(call.func)
        if place is not None and any(name in module.classes for module in self.source.nearest(self.module)):
            return self.values(call.args[place])
        return self._returned(name, place)

    def _returned(self, name: str, place: int | None) -> set[str]:
        for module in self.source.nearest(self.module):
            if name in module.functions:
                inside = _Scope(self.source, module, module.functions[name])
                given = [node.value for node in ast.walk(inside.function) if isinstance(node, ast.Return)]
                return inside._any([value for value in given if value is not None], place)
        raise Unknown(f"{name}()")


def _of_name(scope: _Scope, call: ast.Call) -> set[str]:
    """Codes of a name that is missing, which stands in `absent(discovery, name)` or a field's `Absent(name=…)`."""
    for keyword in call.keywords:
        if keyword.arg == "code":
            return {f"{WORD}.{last}" for last in scope.values(keyword.value)}
    match call.args[0]:
        case ast.Call(func=ast.Name(id="absent"), args=[_, name]):
            names = scope.values(name)
        case _:
            made = [node for node in ast.walk(scope.module.tree) if isinstance(node, ast.Call)]
            made = [node for node in made if _plain(node.func) == "Absent"]
            names = set().union(*(scope.values(keyword.value) for node in made for keyword in node.keywords))
    return {f"{WORD}.{name}_missing" for name in names}


def _bindings(body: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    """Names and what they are set to; of `a, b = x` as parts of x."""
    for node in itertools.chain.from_iterable(map(ast.walk, body)):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, value
            case ast.Assign(targets=[ast.Tuple(elts=parts)], value=value):
                for number, part in enumerate(parts):
                    if isinstance(part, ast.Name):
                        yield part.id, ast.Subscript(value, ast.Constant(number), ast.Load())


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _plain(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _is_codes(node: ast.AST) -> bool:
    return isinstance(node, ast.AnnAssign) and _name(node.target) == "codes"
