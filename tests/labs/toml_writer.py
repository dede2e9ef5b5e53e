"""Writes documents as TOML in every style that the language has, and remembers what it wrote where."""

import json
import string
from random import Random

BARE = string.ascii_letters + string.digits + "_-"


class Writer:
    """One document in a style that `random` picks; `literals` holds the text of each plain value."""

    def __init__(self, data: dict, random: Random) -> None:
        self.literals: dict[tuple, str] = {}
        self._random = random
        self._lines: list[str] = []
        self._table(data, (), ())
        self.text = random.choice(["\n", "\r\n"]).join(self._lines) + random.choice(["", "\n", "\n\n# end"])

    def _table(self, table: dict, location: tuple, path: tuple) -> None:
        """Pairs first, then tables and arrays of tables under their headers."""
        later = []
        for name, value in table.items():
            here = (*location, name)
            tables = isinstance(value, list) and value and all(isinstance(element, dict) for element in value)
            if (tables or isinstance(value, dict)) and self._flip():
                later.append((name, value))
            else:
                self._pair(self._name(name), value, here)
        for name, value in later:
            here = (*location, name)
            header = (*path, self._name(name))
            if isinstance(value, dict):
                self._noise()
                self._lines.append(f"{self._space()}[{self._dots(header)}]{self._comment()}")
                self._table(value, here, header)
                continue
            for index, element in enumerate(value):
                self._noise()
                self._lines.append(f"[[{self._dots(header)}]]{self._comment()}")
                self._table(element, (*here, index), header)

    def _pair(self, name: str, value: object, location: tuple) -> None:
        if isinstance(value, dict) and value and self._flip():
            for inner, child in value.items():
                self._pair(self._dots((name, self._name(inner))), child, (*location, inner))
            return
        self._noise()
        self._lines.append(f"{self._space()}{name}{self._space()}={self._space()}{self._value(value, location)}")
        self._lines[-1] += self._comment()

    def _value(self, value: object, location: tuple) -> str:
        if isinstance(value, dict):
            pairs = [f"{self._name(name)} = {self._value(child, (*location, name))}" for name, child in value.items()]
            return "{" + self._space() + ", ".join(pairs) + self._space() + "}"
        if isinstance(value, list):
            between = self._random.choice([", ", ",\n  ", " , # and ]\n"])
            parts = [self._value(child, (*location, index)) for index, child in enumerate(value)]
            after = "," if parts and self._flip() else ""
            # Comments and line ends are allowed in an array, unless an inline table is around it.
            inside_table = self._random.random() < 0.3 or len(location) > 1
            return "[" + (", " if inside_table else between).join(parts) + after + "]"
        self.literals[location] = self._literal(value)
        return self.literals[location]

    def _literal(self, value: object) -> str:
        if not isinstance(value, str):
            return json.dumps(value)
        styles = [_basic(value)]
        if "'" not in value and value.isprintable():
            styles.append(f"'{value}'")
        if "'''" not in value and not value.endswith("'") and value.isprintable():
            styles.append(f"'''{value}'''")
        styles.append('""' + _basic(value) + '""')
        return self._random.choice(styles)

    def _name(self, name: str) -> str:
        styles = [_basic(name)]
        if name and set(name) <= set(BARE):
            styles += [name, name, name]
        if "'" not in name and name.isprintable():
            styles.append(f"'{name}'")
        return self._random.choice(styles)

    def _dots(self, names: tuple) -> str:
        return self._random.choice([".", ".", " . "]).join(names)

    def _noise(self) -> None:
        self._lines += self._random.choice([[], [], [""], ["# [not.a.table]"], ["  # a = 1", ""]])

    def _comment(self) -> str:
        return self._random.choice(["", "", "  # [x] = 'y'"])

    def _space(self) -> str:
        return self._random.choice(["", " ", "\t", "  "])

    def _flip(self) -> bool:
        return self._random.random() < 0.5


def _basic(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
