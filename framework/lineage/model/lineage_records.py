"""Records: what one statement did (its shape) and when, by whom and why it did so (its runs).

The seven questions of a record are when, where, who, how, which, why (all in `Run`) and what (`Shape`).
Vertices have the six attributes guid, name, typeName, createTime, createBy and version, as Apache Atlas and
the papers on provenance have them.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cached_property
from hashlib import blake2b
from typing import Any

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import CorruptFileError
from lockgate.framework.lineage.model.names import joined

# The name of the vertex that stands for a whole dataset, where single columns are not known.
WHOLE = "*"

_GUIDS = uuid.UUID("6f1ab0a4-5e0d-5c1b-9d3e-1c2f0f6d7a11")

Edge = tuple[str, int, str, int]
"""A column of the target, the number of an input, a column of that input, and the kinds."""

RowEdge = tuple[int, str, int]
"""The number of an input, a column of it, and how it decides which rows there are."""

# The number of the target, where inputs are numbered.
TARGET = -1

ColumnId = tuple[int, str, str]
"""The number of an input, or `TARGET`, a column of it, and the id that it keeps when it is renamed."""


@checked_arguments
@dataclass(frozen=True)
class Dataset:
    """A table, view, file, stream or result.

    `namespace` is empty for a dataset in the warehouse of the record; otherwise it names the place, such as
    another warehouse or a catalog. `name` is quoted (`names.joined`). `id` distinguishes tables that had the
    same name one after the other; it is empty if unknown.
    """

    name: str
    type: str = "table"
    namespace: str = ""
    id: str = ""

    @classmethod
    def table(cls, *parts: str, table_id: str = "") -> Dataset:
        """Return the table of the record's own warehouse whose name has these parts."""
        return cls(joined(parts), id=table_id)

    @property
    def qualified(self) -> str:
        """The name with its namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True)
class Shape:
    """The shape of a statement, without times, versions and literals: equal shapes are one process.

    `rows` are the columns that decide which rows the whole process has. `views` are the views that the
    statement names, `opaque` the steps that Lockgate cannot analyse; `cut` says that the plan was too large.
    `ids` are those of the columns, as far as known.
    """

    kind: str
    target: Dataset | None = None
    inputs: tuple[Dataset, ...] = ()
    edges: tuple[Edge, ...] = ()
    rows: tuple[RowEdge, ...] = ()
    columns: tuple[str, ...] = ()
    views: tuple[str, ...] = ()
    opaque: tuple[str, ...] = ()
    cut: bool = False
    name: str = ""
    ids: tuple[ColumnId, ...] = ()

    @cached_property
    def hash(self) -> str:
        """32 hexadecimal digits that tell shapes apart."""
        return blake2b(_text(self.to_json()).encode(), digest_size=16).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return the shape as JSON's values; what is empty is left out."""
        found = {
            "kind": self.kind,
            "target": None if self.target is None else _dataset_json(self.target),
            "inputs": [_dataset_json(each) for each in self.inputs],
            "edges": sorted(map(list, self.edges)),
            "rows": sorted(map(list, self.rows)),
            "columns": list(self.columns),
            "views": sorted(self.views),
            "opaque": sorted(self.opaque),
            "cut": self.cut,
            "name": self.name,
            "ids": sorted(map(list, self.ids)),
        }
        return {key: value for key, value in found.items() if value}


@dataclass(frozen=True)
class Run:
    """One run of a process, or `count` runs of the same shape in one record.

    Times are milliseconds since the epoch. `reads` maps the number of an input to the snapshot that was read,
    `written` is the snapshot that the run made, `first_written` the one that the first of several made.
    `rows` and `bytes` were written, `rows_read` and `bytes_read` read; None is unknown. `where`, `who`,
    `which` and `why` hold texts by name.
    """

    started: int
    ended: int
    count: int = 1
    failed: int = 0
    dry: bool = False
    how: str = ""
    reads: Mapping[int, int] = field(default_factory=dict)
    written: int | None = None
    first_written: int | None = None
    rows: int | None = None
    bytes: int | None = None
    rows_read: int | None = None
    bytes_read: int | None = None
    error: str | None = None
    where: Mapping[str, str] = field(default_factory=dict)
    who: Mapping[str, str] = field(default_factory=dict)
    which: Mapping[str, str] = field(default_factory=dict)
    why: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the run as JSON's values; what has its default is left out."""
        found = dict(vars(self))
        found["reads"] = {str(key): value for key, value in self.reads.items()}
        return {key: value for key, value in found.items() if value != _DEFAULTS.get(key, {})}


_DEFAULTS = {each.name: each.default for each in fields(Run) if each.default is not MISSING} | {
    "started": None,
    "ended": None,
}


@dataclass(frozen=True)
class Record:
    """A shape and one run of it."""

    shape: Shape
    run: Run


def folded(one: Run, other: Run) -> Run:
    """Return one run that stands for two of the same shape; the later one gives what cannot be added."""
    first, last = sorted((one, other), key=lambda each: (each.ended, each.written or 0))
    values = dict(vars(last))
    values |= {
        "started": min(one.started, other.started),
        "ended": last.ended,
        "count": one.count + other.count,
        "failed": one.failed + other.failed,
        "rows": _added(one.rows, other.rows),
        "bytes": _added(one.bytes, other.bytes),
        "rows_read": _added(one.rows_read, other.rows_read),
        "bytes_read": _added(one.bytes_read, other.bytes_read),
        "first_written": first.first_written if first.first_written is not None else first.written,
        "written": last.written if last.written is not None else first.written,
        "error": last.error or first.error,
    }
    return Run(**values)


def _added(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else one + other


def shape_from_json(found: Mapping[str, Any]) -> Shape:
    """Read a shape; raises CorruptFileError for anything else."""
    try:
        return Shape(
            kind=str(found["kind"]),
            target=None if found.get("target") is None else _dataset(found["target"]),
            inputs=tuple(map(_dataset, found.get("inputs", ()))),
            edges=tuple([_edge(*each) for each in found.get("edges", ())]),
            rows=tuple((int(a), str(b), int(c)) for a, b, c in found.get("rows", ())),
            columns=tuple(map(str, found.get("columns", ()))),
            views=tuple(map(str, found.get("views", ()))),
            opaque=tuple(map(str, found.get("opaque", ()))),
            cut=bool(found.get("cut", False)),
            name=str(found.get("name", "")),
            ids=tuple((int(a), str(b), str(c)) for a, b, c in found.get("ids", ())),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptFileError(f"a record of lineage has no proper shape: {error}") from error


def run_from_json(found: Mapping[str, Any]) -> Run:
    """Read a run; raises CorruptFileError for anything else."""
    try:
        values = dict(found)
        values["reads"] = {int(key): int(value) for key, value in found.get("reads", {}).items()}
        return Run(**values)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CorruptFileError(f"a record of lineage has no proper run: {error}") from error


def guid_of(name: str, version: int | None = None) -> str:
    """Return the guid of a vertex: the same for the same name and version, everywhere."""
    return str(uuid.uuid5(_GUIDS, name if version is None else f"{name}@{version}"))


def _edge(target: Any, number: Any, source: Any, kinds: Any) -> Edge:
    # The types of JSON's own values: to make them again takes longer than to read them.
    if type(target) is type(source) is str and type(number) is type(kinds) is int:
        return target, number, source, kinds
    raise TypeError(f"no edge: {target!r}, {number!r}, {source!r}, {kinds!r}")


def _dataset(found: Any) -> Dataset:
    return Dataset(*map(str, found))


def _dataset_json(dataset: Dataset) -> list[str]:
    values = [dataset.name, dataset.type, dataset.namespace, dataset.id]
    while len(values) > 1 and values[-1] == Dataset.__dataclass_fields__[_NAMES[len(values) - 1]].default:
        values.pop()
    return values


_NAMES = ("name", "type", "namespace", "id")


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
