"""A DALI graph as plain objects that can be edited and written back; fields that we do not know are kept."""

import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from . import wire
from .operators import Row, row_of
from .wire import LENGTH, VARINT, Field, WireError

Scalar = str | int | float | bool
MAX_GRAPH_BYTES = 4 << 20
"""A TrivialAugment graph is about 0.6 MB."""
MAX_OPERATORS = 4000
_MAX_NESTING = 8
"""DALI nests once: a list and its elements."""

_STRING, _INT, _FLOAT, _BOOL = 5, 4, 3, 6
_TYPES = {str: "string", int: "int64", float: "float", bool: "bool"}
"""What DALI calls the type of a value."""
_STEERS, _ARGUMENT = 3, 4
_ONCE_IN_GRAPH = dict.fromkeys((1, 2, 8, 11, 13, 14), VARINT)
_ONCE_IN_OPERATOR = {1: LENGTH, 5: LENGTH}
_ONCE_IN_EDGE = {1: LENGTH, 2: LENGTH, _STEERS: VARINT, _ARGUMENT: LENGTH, 5: VARINT, 6: VARINT}
"""Fields that DALI writes once, by number, and their wire type; of an edge also the type and number of dimensions."""


class GraphRefused(ValueError):
    """The graph cannot be carried into the clean room; `reason` is a word, the message is for the learner."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass
class Argument:
    """An operator's argument: a scalar, or a list of scalars of one type."""

    name: str
    type: str
    """`string`, `int64`, `float`, `bool` or another name of DALI's."""
    values: list[Scalar]
    is_vector: bool = False
    unread: bytes | None = None
    """The argument as it came, when it is of a form that DALI does not write and we do not edit."""

    @property
    def scalar(self) -> Scalar | None:
        """The value of a scalar argument; None for a vector or an empty one."""
        return self.values[0] if self.values and not self.is_vector else None


@dataclass
class Edge:
    """An input or output of an operator, or an output of the pipeline."""

    name: str
    device: str
    rest: list[Field]

    @property
    def steers(self) -> bool:
        """Whether it feeds an argument of its operator, and is not what the operator works on."""
        return any(part.number == _STEERS and part.wire == VARINT and part.value for part in self.rest)

    @property
    def argument(self) -> str:
        """Name of the argument that it feeds; empty when it feeds none."""
        values = (part.value for part in self.rest if part.number == _ARGUMENT and part.wire == LENGTH)
        return next((value.decode(errors="replace") for value in values if isinstance(value, bytes)), "")


@dataclass
class Operator:
    """One node of the graph."""

    name: str
    """Schema name, such as `decoders__Image`."""
    inputs: list[Edge] = field(default_factory=list)
    outputs: list[Edge] = field(default_factory=list)
    arguments: list[Argument] = field(default_factory=list)
    instance: str = ""
    rest: list[Field] = field(default_factory=list)

    @property
    def row(self) -> Row:
        """What is known of an operator of this name."""
        return row_of(self.name)

    def get(self, name: str) -> Argument | None:
        """The argument with this name."""
        return next((argument for argument in self.arguments if argument.name == name), None)

    def scalar(self, name: str) -> Scalar | None:
        """The value of a scalar argument, or None."""
        argument = self.get(name)
        return argument.scalar if argument else None

    def wired(self, *names: str) -> bool:
        """Whether the graph computes one of these arguments."""
        return any(edge.steers and edge.argument in names for edge in self.inputs)

    def drop(self, *names: str) -> list[str]:
        """Removes these arguments; returns the names of those that were there."""
        gone = [argument.name for argument in self.arguments if argument.name in names]
        self.arguments = [argument for argument in self.arguments if argument.name not in names]
        return gone

    def put(self, argument: Argument) -> None:
        """Sets an argument, in place of one of the same name."""
        self.drop(argument.name)
        self.arguments.append(argument)

    @property
    def origin(self) -> tuple[str, int | None]:
        """File and line in the learner's source that made this operator, as DALI recorded them."""
        files, lines = self.get("_origin_stack_filename"), self.get("_origin_stack_lineno")
        file = str(files.values[-1]) if files and files.values else ""
        line = lines.values[-1] if lines and lines.values else None
        return file, line if isinstance(line, int) else None


PIPELINED, ASYNC, SEPARATED, DYNAMIC = 1, 2, 4, 8


@dataclass
class Graph:
    """A whole pipeline definition."""

    operators: list[Operator]
    inputs: list[Edge]
    outputs: list[Edge]
    batch_size: int
    num_threads: int
    device_id: int | None
    prefetch: tuple[int, int]
    """Queue depths (cpu, gpu)."""
    rest: list[Field]
    executor: int | None = None
    """DALI's executor type: PIPELINED, ASYNC, SEPARATED and DYNAMIC, as bits."""


def read(data: bytes) -> Graph:
    """Parses a serialized pipeline.

    Raises:
        WireError: the bytes are no pipeline definition, larger than any honest one, or have a field twice or in another
            form that DALI writes once: what counts must not be a matter of who reads them.
    """
    if len(data) > MAX_GRAPH_BYTES:
        raise WireError(f"{len(data)} bytes; expected at most {MAX_GRAPH_BYTES}")
    graph = Graph([], [], [], 0, 0, None, (1, 1), [])
    numbers: dict[int, int] = {}
    for part in _parse(data, _ONCE_IN_GRAPH, "the pipeline"):
        number, _, value = part
        if number == 5 and isinstance(value, bytes):
            graph.operators.append(_read_operator(value))
        elif number in (6, 7) and isinstance(value, bytes):
            (graph.inputs if number == 6 else graph.outputs).append(_read_edge(value))
        elif isinstance(value, int) and number in _ONCE_IN_GRAPH:
            numbers[number] = wire.signed(value)
        else:
            graph.rest.append(part)
        if len(graph.operators) > MAX_OPERATORS:
            raise WireError(f"more than {MAX_OPERATORS} operators")
    graph.num_threads, graph.batch_size = numbers.get(1, 0), numbers.get(2, 0)
    graph.device_id, graph.executor = numbers.get(8), numbers.get(11)
    graph.prefetch = (numbers.get(13, 1), numbers.get(14, 1))
    return graph


def operators_of(data: bytes, wanted: Callable[[str], bool]) -> list[Operator]:
    """The operators of a serialized pipeline whose names are wanted; all others are not read.

    Raises:
        WireError: see `read`.
    """
    found = []
    for number, _, value in wire.parse(data):
        if number == 5 and isinstance(value, bytes):
            name = next((part.value for part in wire.parse(value) if part.number == 1), b"")
            if isinstance(name, bytes) and wanted(_text(name)):
                found.append(_read_operator(value))
    return found


def write(graph: Graph) -> bytes:
    """Serializes a graph for `Pipeline.deserialize`."""
    fields = [
        Field(1, VARINT, wire.unsigned(graph.num_threads)),
        Field(2, VARINT, wire.unsigned(graph.batch_size)),
        *(Field(5, LENGTH, _write_operator(operator)) for operator in graph.operators),
        *(Field(6, LENGTH, _write_edge(edge)) for edge in graph.inputs),
        *(Field(7, LENGTH, _write_edge(edge)) for edge in graph.outputs),
    ]
    if graph.device_id is not None:
        fields.append(Field(8, VARINT, wire.unsigned(graph.device_id)))
    if graph.executor is not None:
        fields.append(Field(11, VARINT, wire.unsigned(graph.executor)))
    fields += [
        Field(13, VARINT, wire.unsigned(graph.prefetch[0])),
        Field(14, VARINT, wire.unsigned(graph.prefetch[1])),
        *graph.rest,
    ]
    return wire.emit(sorted(fields, key=lambda part: part.number))


def argument(name: str, value: Scalar | list[str] | list[int]) -> Argument:
    """An argument with this value, or with a vector of values of one type."""
    values: list[Scalar] = [*value] if isinstance(value, list) else [value]
    return Argument(name, _TYPES[type(values[0])], values, is_vector=isinstance(value, list))


def _parse(data: bytes, once: dict[int, int], owner: str) -> list[Field]:
    """The fields of one message, of which those with these numbers may stand there once, in this wire type."""
    fields = wire.parse(data)
    seen: set[int] = set()
    for number, kind, _ in fields:
        if number not in once:
            continue
        if number in seen:
            raise WireError(f"{owner} has field {number} twice")
        if kind != once[number]:
            raise WireError(f"{owner} has field {number} in a form that DALI does not write")
        seen.add(number)
    return fields


def _read_operator(data: bytes) -> Operator:
    operator = Operator("")
    for part in _parse(data, _ONCE_IN_OPERATOR, "an operator"):
        number, _, value = part
        if isinstance(value, bytes) and number in (1, 2, 3, 4, 5):
            if number == 1:
                operator.name = _text(value)
            elif number == 2:
                operator.inputs.append(_read_edge(value))
            elif number == 3:
                operator.outputs.append(_read_edge(value))
            elif number == 4:
                operator.arguments.append(_read_argument(value))
            else:
                operator.instance = _text(value)
        else:
            operator.rest.append(part)
    return operator


def _write_operator(operator: Operator) -> bytes:
    return wire.emit(
        [
            Field(1, LENGTH, operator.name.encode()),
            *(Field(2, LENGTH, _write_edge(edge)) for edge in operator.inputs),
            *(Field(3, LENGTH, _write_edge(edge)) for edge in operator.outputs),
            *(Field(4, LENGTH, _write_argument(argument)) for argument in operator.arguments),
            Field(5, LENGTH, operator.instance.encode()),
            *operator.rest,
        ]
    )


def _read_edge(data: bytes) -> Edge:
    edge = Edge("", "", [])
    for part in _parse(data, _ONCE_IN_EDGE, "an input or output"):
        if part.number == _ARGUMENT and isinstance(part.value, bytes):
            _text(part.value)
        if part.number == 1 and isinstance(part.value, bytes):
            edge.name = _text(part.value)
        elif part.number == 2 and isinstance(part.value, bytes):
            edge.device = _text(part.value)
        else:
            edge.rest.append(part)
    return edge


def _write_edge(edge: Edge) -> bytes:
    return wire.emit([Field(1, LENGTH, edge.name.encode()), Field(2, LENGTH, edge.device.encode()), *edge.rest])


def _read_argument(data: bytes, depth: int = 0) -> Argument:
    argument = Argument("", "", [])
    if depth > _MAX_NESTING:
        raise WireError(f"arguments are nested more than {_MAX_NESTING} deep")
    for number, _, value in wire.parse(data):
        if number == 1 and isinstance(value, bytes):
            argument.name = _text(value)
        elif number == 2 and isinstance(value, bytes):
            argument.type = _text(value)
        elif number == 7 and isinstance(value, bytes):
            element = _read_argument(value, depth + 1)
            if len(element.values) != 1 or element.is_vector:
                argument.unread = data
            argument.values += element.values
        elif number == 8 and isinstance(value, int):
            argument.is_vector = bool(value)
        elif number in (_FLOAT, _INT, _STRING, _BOOL):
            argument.values += _read_scalars(number, value)
        else:
            argument.unread = data
    return argument


def _read_scalars(number: int, value: int | bytes) -> list[Scalar]:
    if number == _STRING and isinstance(value, bytes):
        return [_text(value)]
    if number == _INT and isinstance(value, int):
        return [wire.signed(value)]
    if number == _BOOL and isinstance(value, int):
        return [bool(value)]
    if number == _FLOAT and isinstance(value, bytes) and len(value) == 4:
        return [struct.unpack("<f", value)[0]]
    raise WireError(f"an argument's value has field {number} of a form that DALI does not write")


def _write_argument(argument: Argument) -> bytes:
    if argument.unread is not None:
        return argument.unread
    fields = [Field(1, LENGTH, argument.name.encode()), Field(2, LENGTH, argument.type.encode())]
    if argument.is_vector:
        for index, value in enumerate(argument.values):
            element = Argument(f"element {index}", argument.type, [value])
            fields.append(Field(7, LENGTH, _write_argument(element)))
    else:
        fields += [_write_scalar(value) for value in argument.values]
    fields.append(Field(8, VARINT, int(argument.is_vector)))
    return wire.emit(fields)


def _write_scalar(value: Scalar) -> Field:
    if isinstance(value, bool):
        return Field(_BOOL, VARINT, int(value))
    if isinstance(value, int):
        return Field(_INT, VARINT, wire.unsigned(value))
    if isinstance(value, float):
        return Field(_FLOAT, wire.FIXED32, struct.pack("<f", value))
    return Field(_STRING, LENGTH, value.encode())


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise WireError("a name is not UTF-8") from None
