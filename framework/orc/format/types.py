"""The column tree of an ORC file, numbered in pre-order; the root struct is column 0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lockgate.errors import ColumnNotFoundError, UnsupportedFormatError, nearest
from lockgate.framework.orc.format import proto
from lockgate.framework.orc.format.layout import TypeKind, check_text, corrupt

_CHILDREN = {TypeKind.LIST: 1, TypeKind.MAP: 2}
# Arrow processes nested types by recursion, so their depth must be limited.
_MAX_DEPTH = 200
_NESTED = frozenset({TypeKind.LIST, TypeKind.MAP, TypeKind.STRUCT, TypeKind.UNION})


@dataclass(frozen=True)
class TypeTree:
    """The columns of a file; `last[i]` is the highest column number in the subtree of column `i`."""

    types: Sequence[proto.Message]
    last: tuple[int, ...]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.types)

    @classmethod
    def of(cls, name: str, offset: int, types: Sequence[proto.Message]) -> TypeTree:
        """Check the types of a footer and return their tree; `CorruptFileError` if they are no tree."""
        if not types:
            raise corrupt(name, offset, "the footer has no types")
        if types[0].kind != TypeKind.STRUCT:
            raise UnsupportedFormatError(
                f"{name} does not hold rows: its root type is number {types[0].kind}, not a struct"
            )
        for index, type_ in enumerate(types):
            _check_type(name, offset, index, type_)
        return cls(types, _last_descendants(name, offset, types), tuple(types[0].field_names))

    def subtree(self, column: int) -> range:
        """Return the numbers of a column and its descendants."""
        return range(column, self.last[column] + 1)

    def top_level(self, name: str) -> int:
        """Return the number of the top-level column `name`; `ColumnNotFoundError` if there is none."""
        try:
            return int(self.types[0].subtypes[self.names.index(name)])
        except ValueError:
            raise ColumnNotFoundError(f"there is no column {name!r}{nearest(name, self.names)}") from None

    def top_levels(self) -> list[int]:
        """Return the numbers of the top-level columns, in order."""
        return list(self.types[0].subtypes)

    def top_name(self, column: int) -> str:
        """Return the name of the top-level column that contains `column`."""
        for name, top in zip(self.names, self.types[0].subtypes, strict=True):
            if top <= column <= self.last[top]:
                return name
        return "<all rows>"

    def path(self, column: int) -> str:
        """Return the path of a column as in ORC's Java tools, such as `orders._elem.price`."""
        steps: list[str] = []
        number = 0
        while number != column:
            type_ = self.types[number]
            index, number = next(
                (index, child) for index, child in enumerate(type_.subtypes) if column <= self.last[child]
            )
            steps.append(
                type_.field_names[index] if type_.kind == TypeKind.STRUCT else _step(type_.kind, index)
            )
        return ".".join(steps)


def _step(kind: int, index: int) -> str:
    """Return the path step of an unnamed child."""
    if kind == TypeKind.MAP:
        return ("_key", "_value")[index]
    return "_elem" if kind == TypeKind.LIST else str(index)


def _check_type(name: str, offset: int, index: int, type_: proto.Message) -> None:
    if type_.kind not in list(TypeKind):
        raise corrupt(name, offset, f"column {index} has type number {type_.kind}, which does not exist")
    kind, children = TypeKind(type_.kind), len(type_.subtypes)
    texts = [text for attribute in type_.attributes for text in (attribute.key, attribute.value)]
    check_text(name, offset, f"a name or attribute of column {index}", *type_.field_names, *texts)
    names = len(type_.field_names)
    wrong = (
        (kind not in _NESTED and children)
        or (kind in _CHILDREN and children != _CHILDREN[kind])
        or (kind is TypeKind.STRUCT and names != children)
    )
    if wrong:
        raise corrupt(
            name, offset, f"column {index} of type {kind.name} has {children} children and {names} names"
        )
    if kind is TypeKind.DECIMAL and not (type_.precision <= 38 and type_.scale <= max(type_.precision, 38)):
        raise corrupt(name, offset, f"column {index} is a decimal({type_.precision},{type_.scale})")


def _last_descendants(name: str, offset: int, types: Sequence[proto.Message]) -> tuple[int, ...]:
    """Return the last descendant of each column; not recursive, since a damaged file may nest without
    limit.
    """
    last = [0] * len(types)
    expected = 0
    stack: list[tuple[int, int]] = [(0, 0)]
    while stack:
        column, child = stack.pop()
        if child == 0:
            if column != expected:
                raise corrupt(
                    name,
                    offset,
                    f"the columns are not numbered in order: {column} comes where {expected} should",
                )
            expected += 1
        if len(stack) > _MAX_DEPTH:
            raise UnsupportedFormatError(f"{name} nests its types more than {_MAX_DEPTH} deep")
        children = types[column].subtypes
        if child < len(children):
            if children[child] >= len(types):
                raise corrupt(
                    name,
                    offset,
                    f"column {column} has a child number {children[child]}, which does not exist",
                )
            stack.append((column, child + 1))
            stack.append((children[child], 0))
        else:
            last[column] = expected - 1
    if expected != len(types):
        raise corrupt(name, offset, f"{len(types) - expected} columns belong to no other")
    return tuple(last)
