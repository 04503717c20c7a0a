"""Relations of many kinds that hold the same rows, and policies that hide the same of each."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from governed_foreign import COLUMNS, RATES, Hiding, put_files
from governed_world import SEEN, World
from ranger_world import allow, deny, item, mask, row_filter

from lockgate.framework.governance.ranger.service_definition import service_definition
from lockgate.framework.plugins import plugins

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockgate import Lake

# In departments only, which decide about rows: plans, failures and names of files may not show it.
SECRET = "zq-"
ROWS = f"""(1, 'ann', '111-11-1111', '{SECRET}x', 100), (2, 'bob', '222-22-2222', '{SECRET}y', 200),
           (3, 'cal', '333-33-3333', '{SECRET}x', 300), (4, 'dan', '444-44-4444', '{SECRET}y', 5)"""
# A partition column comes last in tables of files.
LAST_DEPT = "id BIGINT, name STRING, ssn STRING, salary BIGINT, dept STRING"
MORE = f"(5, 'eve', '555-55-5555', '{SECRET}x', 7), (6, 'fay', '6', '{SECRET}y', 8)"
ONLY_X = f"dept = '{SECRET}x'"

OURS = ("append", "key")
FILES = ("parquet", "csv", "json", "orc")
PATHS = ("path parquet", "path csv", "path json")
# The formats of files matter to streams alone; `rates` and `path text` have other columns.
QUERIED = (*OURS, "past", "system", "branch", "partitioned", "catalog", "jdbc", "view", "global view",
           "path parquet", "pattern")  # fmt: skip
STREAMED = (*OURS, *FILES, *PATHS, "path text", "rates")


MASKS = {"ssn": "concat('xxx-xx-', right(ssn, 4))", "value": "upper(value)"}


@dataclass(frozen=True)
class Hides:
    """What policies hide from ann: rows but those of a condition, values, and whole columns."""

    rows: str | None = None
    masked: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()


@dataclass(frozen=True)
class Relation:
    """What queries and policies call a relation, and what ann sees of it."""

    name: str
    text: str | None
    frame: Callable[[SparkSession], DataFrame]
    stream: Callable[[SparkSession], DataFrame]
    add: Callable[[str], object]
    is_path: bool = False
    hides: Hides = Hides(ONLY_X, ("ssn",), ("salary",))
    columns: tuple[str, ...] = ("id", "ssn")
    shown: tuple[tuple[Any, ...], ...] = tuple(SEEN)
    row_count: int = 4


class Relations:
    """The relations of a module: one of each kind that no test changes, and fresh ones."""

    def __init__(
        self, lake: Lake, world: World, database: str, lake_folder: Path, hiding: Hiding, folder: Path
    ) -> None:
        self._lake, self._world, self._database, self._hiding = lake, world, database, hiding
        self._folders, self._folder = lake_folder / "folders", folder
        self._shared: dict[str, Relation] = {}
        self._drops: list[str] = []
        self._numbers = itertools.count()

    def shared(self, kind: str) -> Relation:
        """Return the relation of a kind that no test changes."""
        if kind not in self._shared:
            self._shared[kind] = self.fresh(kind)
        return self._shared[kind]

    def fresh(self, kind: str) -> Relation:
        """Make a relation of a kind."""
        self.put()
        name = f"relation_{next(self._numbers)}"
        form, _, using = kind.partition(" ")
        if form in ("path", "pattern"):
            return self._path(name, using or "parquet", is_pattern=form == "pattern")
        makers = {"catalog": self._catalog, "jdbc": self._jdbc, "view": self._view, "rates": self._rates}
        if kind in makers:
            return makers[kind](name)
        return self._files(name, kind) if kind in (*FILES, "partitioned") else self._ours(name, kind)

    def checkpoint(self) -> Path:
        """Return a new folder for a stream's progress, in which ann may write."""
        return self._folder / "checkpoints" / str(next(self._numbers))

    def close(self) -> None:
        """Drop what was made outside the module's database."""
        for statement in reversed(self._drops):
            self._lake.sql(statement)

    def put(self, *policies: dict[str, Any], readable: str | None = None) -> None:
        """Let ann do what policies say, read a folder, and keep the progress of streams; root may do all."""
        mine = [str(self._folder / "checkpoints"), *([readable] if readable else [])]
        paths = [_paths("root", "/", "jdbc"), _paths("ann", *mine)]
        self._world.put(*policies, *paths, serviceDef=service_definition())

    def hide(
        self,
        relation: Relation,
        hides: Hides | None = None,
        *more: dict[str, Any],
        accesses: tuple[str, ...] = ("select",),
    ) -> None:
        """Hide parts of a relation from ann, those of the relation's kind if nothing else is said."""
        hides, name = hides or relation.hides, relation.name
        if relation.is_path:
            masks = {column: MASKS[column] for column in hides.masked}
            self._hiding.hide(" ".join(hides.denied), row_filter=hides.rows, **masks)
            return self.put(*more, readable=name)
        kinds = {"ssn": "MASK_SHOW_LAST_4"}
        masked = [
            mask(f"{name}.{each}", kinds.get(each, "MASK_NULL"), users=["ann"]) for each in hides.masked
        ]
        return self.put(
            allow(f"{name}.*", *accesses, users=["ann"]),
            *(deny(f"{name}.{each}", users=["ann"]) for each in hides.denied),
            *masked,
            *([row_filter(name, hides.rows, users=["ann"])] if hides.rows else []),
            *more,
        )

    def _ours(self, name: str, kind: str) -> Relation:
        named = f"lake.{self._database}.{name}"
        more = "TBLPROPERTIES ('primary-key'='id', 'bucket'='2')" if kind == "key" else ""
        more = "PARTITIONED BY (dept)" if kind == "append" else more
        columns = LAST_DEPT if kind == "append" else COLUMNS
        self._lake.sql(f"CREATE TABLE {named} ({columns.replace('id BIGINT', 'id BIGINT NOT NULL')}) {more}")
        text = named
        if kind == "branch":
            self._lake.sql(f"CALL lake.sys.create_branch('{self._database}.{name}', 'b')")
            text = f"lake.{self._database}.`{name}$branch_b`"
        self._insert(text, ROWS)
        if kind == "past":
            self._lake.sql(f"DELETE FROM {named} WHERE id > 0")
            text = f"{named} VERSION AS OF 1"
        elif kind == "system":
            text = f"lake.{self._database}.`{name}$ro`"
        elif kind == "global view":
            text = f"global_temp.{name}"
            self._lake.spark.table(named).createOrReplaceGlobalTempView(name)
            self._drops.append(f"DROP VIEW {text}")
        return self._table(named, text)

    def _files(self, name: str, kind: str) -> Relation:
        named = f"spark_catalog.default.{name}"
        self._drops.append(f"DROP TABLE IF EXISTS {named}")
        columns, more, using = COLUMNS, "", kind
        if kind == "partitioned":
            columns, more, using = LAST_DEPT, "PARTITIONED BY (dept)", "parquet"
        self._lake.sql(f"CREATE TABLE {named} ({columns}) USING {using} {more}")
        self._insert(named, ROWS)
        return self._table(named)

    def _view(self, name: str) -> Relation:
        """A view of the files' own catalog; rights are those on its table."""
        files, view = self._files(name, "parquet"), f"spark_catalog.default.{name}_view"
        self._lake.sql(f"CREATE VIEW {view} AS SELECT * FROM {files.name}")
        self._drops.append(f"DROP VIEW {view}")
        return self._table(files.name, view)

    def _catalog(self, name: str) -> Relation:
        """A table of somebody else's catalog, which files answer by their statistics."""
        put_files(self._folders / name, ROWS)
        return self._table(f"folders.db.{name}")

    def _jdbc(self, name: str) -> Relation:
        named, url = f"spark_catalog.default.{name}", f"jdbc:derby:memory:{name};create=true"
        jvm: Any = self._lake.spark._jvm
        connection = jvm.java.sql.DriverManager.getConnection(url)
        columns = ", ".join(
            f'"{column.split()[0]}" {column.split()[1].replace("STRING", "VARCHAR(20)")}'
            for column in COLUMNS.split(", ")
        )
        for statement in (f'CREATE TABLE "rows" ({columns})', f'INSERT INTO "rows" VALUES {ROWS}'):
            connection.createStatement().execute(statement)
        connection.close()
        self._lake.sql(f"CREATE TABLE {named} USING jdbc OPTIONS (url '{url}', dbtable '\"rows\"')")
        self._drops.append(f"DROP TABLE {named}")
        return self._table(named)

    def _rates(self, name: str) -> Relation:
        """A stream of numbers, of somebody else's catalog; all of them are one table."""
        del name
        return Relation(
            RATES, RATES,
            frame=lambda session: session.table(RATES),
            stream=lambda session: session.readStream.table(RATES).where("value < 10"),
            add=_nothing_to_add,
            hides=Hides("value % 4 = 1", ("timestamp",)),
            columns=("value", "timestamp"),
            shown=((1, None), (5, None), (9, None)),
            row_count=10,
        )  # fmt: skip

    def _path(self, name: str, using: str, *, is_pattern: bool) -> Relation:
        folder = str(self._folder / "in" / name)
        put_files(f"{folder}/part-1" if is_pattern else folder, ROWS, using=using)
        read = f"{folder}/part-*" if is_pattern else folder
        schema = "value STRING" if using == "text" else COLUMNS
        relation = Relation(
            folder,
            f"parquet.`{read}`" if using == "parquet" else None,
            frame=lambda session: session.read.schema(schema).format(using).load(read),
            stream=lambda session: session.readStream.schema(schema).format(using).load(read),
            add=lambda rows: put_files(folder, rows, using=using),
            is_path=True,
        )
        if using != "text":
            return relation
        lines = [line for file in Path(folder).iterdir() for line in file.read_text().splitlines()]
        shown = tuple((line.upper(),) for line in lines if f"{SECRET}x" in line)
        hides = Hides(f"value LIKE '%{SECRET}x%'", ("value",))
        return replace(relation, columns=("value",), shown=shown, hides=hides)

    def _table(self, name: str, text: str | None = None) -> Relation:
        named = text or name
        return Relation(
            name,
            named,
            frame=lambda session: session.sql(f"SELECT * FROM {named}"),
            stream=lambda session: session.readStream.table(named),
            add=lambda rows: self._insert(name, rows),
        )

    def _insert(self, name: str, rows: str) -> None:
        columns = ", ".join(column.split()[0] for column in COLUMNS.split(", "))
        self._lake.sql(f"INSERT INTO {name} ({columns}) VALUES {rows}")


def _nothing_to_add(rows: str) -> None:
    raise AssertionError(f"{RATES} has numbers, not {rows}")


def _paths(user: str, *paths: str) -> dict[str, Any]:
    """Return a policy by which a user reads and writes below folders."""
    named = {"path": {"values": [*paths], "isRecursive": True}}
    number = 3_000_000 + (user == "ann")
    return {"id": number, "resources": named, "policyItems": [item("read", "write", users=[user])]}


@contextmanager
def made_relations(
    lake: Lake, world: World, database: str, lake_folder: Path, folder: Path
) -> Iterator[Relations]:
    """Relations below a folder, with a plugin that hides parts of its files."""
    hiding = Hiding((folder / "in").resolve())
    relations = Relations(lake, world, database, lake_folder, hiding, folder)
    plugins().register(hiding, "hiding-of-relations")
    try:
        yield relations
    finally:
        plugins().unregister("hiding-of-relations")
        relations.close()
