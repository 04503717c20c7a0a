"""Traces, readers and exposures, over small graphs."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from lockgate.errors import ColumnNotFoundError, InputError, NotFoundError
from lockgate.framework.access import mask_literals
from lockgate.framework.io import LocalFileSystem
from lockgate.framework.lineage import Dataset, EdgeKind, Run, Shape
from lockgate.framework.lineage.model.edge_kinds import DIRECT, EVERY, PLAIN, kind_names, parse_kinds
from lockgate.framework.lineage.model.names import joined, split_name
from lockgate.framework.lineage.questions.impact import readers
from lockgate.framework.lineage.questions.secrets import keys_in
from lockgate.framework.lineage.questions.sensitivity import plaintext
from lockgate.framework.lineage.questions.trace import trace
from lockgate.framework.lineage.questions.vertices import find, vertices
from lockgate.framework.lineage.store.journal import lines_of
from lockgate.framework.lineage.store.lineage_index import Index
from lockgate.framework.lineage.store.lineage_segments import Segments
from lockgate.framework.store import Catalog
from lockgate.framework.store.schema.schema import Schema

IS, T, A = int(EdgeKind.IDENTITY), int(EdgeKind.TRANSFORMATION), int(EdgeKind.AGGREGATION)
Built = Callable[..., sqlite3.Connection]


def table(name: str) -> Dataset:
    return Dataset.table("hr", name)


FILE = Dataset("file:/in/empinfo.csv", "file")
EXPORT = Dataset("file:/out/avg", "file")
RESULT = Dataset("result", "result")
# A file becomes two tables, these the average of salaries, that is exported and queried.
COMPANY = [
    Shape(
        "INSERT",
        table("empinfo"),
        (FILE,),
        tuple((c, 0, c, IS) for c in ("empno", "name", "salary", "deptno")),
    ),
    Shape("INSERT", table("department"), (FILE,), (("deptno", 0, "deptno", IS), ("dname", 0, "dname", IS))),
    Shape(
        "CREATE_TABLE_AS_SELECT",
        table("employee"),
        (table("empinfo"), table("department")),
        (("name", 0, "name", IS), ("salary", 0, "salary", T), ("dname", 1, "dname", IS)),
        rows=((0, "deptno", int(EdgeKind.JOIN)), (1, "deptno", int(EdgeKind.JOIN))),
    ),
    Shape(
        "INSERT",
        table("avgsalary"),
        (table("employee"),),
        (("dname", 0, "dname", IS), ("avgsalary", 0, "salary", A)),
        rows=((0, "dname", int(EdgeKind.GROUP_BY)),),
    ),
    Shape(
        "EXPORT",
        EXPORT,
        (table("avgsalary"),),
        (("dname", 0, "dname", IS), ("avgsalary", 0, "avgsalary", IS)),
    ),
    Shape("SELECT", RESULT, (table("avgsalary"),), (("avgsalary", 0, "avgsalary", IS),)),
]


@pytest.fixture
def built(tmp_path: Path) -> Iterator[Built]:
    """A function that makes the index of some shapes, or of pairs of shapes and runs, and opens it."""
    with ExitStack() as stack:

        def build(*shapes: Shape | tuple[Shape, Run]) -> sqlite3.Connection:
            segments = Segments(LocalFileSystem(), str(tmp_path / "lake"))
            pairs = [each if isinstance(each, tuple) else (each, Run(1, 2)) for each in shapes]
            segments.write(lines_of((shape, [run]) for shape, run in pairs))
            return stack.enter_context(Index(segments, tmp_path / "cache").reading())

        yield build


def ends(database: sqlite3.Connection, name: str, direction: str, **options: object) -> set[str]:
    """The names of everything that a trace reaches, by default over direct edges."""
    found = find(database, name, "lake")
    options.setdefault("kinds", int(DIRECT))
    traced = trace(database, found.fields, direction, snapshot=found.snapshot, **options)  # type: ignore[arg-type]  # keywords of several types
    far = 1 if direction == "back" else 0
    named = vertices(database, {step[far] for step, _ in traced.steps})
    return {vertex.qualified for vertex in named.values()}


def test_an_average_is_traced_back_to_the_file(built: Built) -> None:
    database = built(*COMPANY)
    assert ends(database, "hr.avgsalary.avgsalary", "back") == {
        *("hr.employee.salary", "hr.empinfo.salary", "file:/in/empinfo.csv#salary"),
    }
    assert ends(database, "hr.avgsalary.avgsalary", "back", depth=1) == {"hr.employee.salary"}


def test_a_file_is_traced_forward_to_the_export_and_the_result(built: Built) -> None:
    database = built(*COMPANY)
    assert ends(database, "file:/in/empinfo.csv#salary", "forward") == {
        *("hr.empinfo.salary", "hr.employee.salary", "hr.avgsalary.avgsalary"),
        *("file:/out/avg#avgsalary", "result.avgsalary"),
    }


def test_row_edges_are_followed_on_request(built: Built) -> None:
    database = built(*COMPANY)
    reached = ends(database, "hr.employee.name", "back", kinds=int(EVERY), depth=1)
    assert reached == {"hr.empinfo.name", "hr.empinfo.deptno", "hr.department.deptno"}
    assert "hr.employee" in ends(database, "hr.department.deptno", "forward", kinds=int(EVERY), depth=1)


def test_a_walk_is_depth_first(built: Built) -> None:
    database = built(*COMPANY)
    found = find(database, "hr.avgsalary")
    traced = trace(database, found.fields, "back", kinds=int(DIRECT))
    names = vertices(database, traced.fields)
    walked = [(depth, names[step.source].qualified) for step, depth in traced.walk()]
    assert [depth for depth, _ in walked] == [1, 2, 3, 1, 2, 3]
    assert {name for _, name in walked} == {
        *("hr.employee.dname", "hr.department.dname", "file:/in/empinfo.csv#dname"),
        *("hr.employee.salary", "hr.empinfo.salary", "file:/in/empinfo.csv#salary"),
    }


def test_cycles_end(built: Built) -> None:
    merge = Shape("MERGE", table("a"), (table("b"), table("a")), (("x", 0, "x", IS), ("x", 1, "x", T)))
    back = Shape("INSERT", table("b"), (table("a"),), (("x", 0, "x", IS),))
    database = built(merge, back)
    assert ends(database, "hr.a.x", "back") == ends(database, "hr.a.x", "forward") == {"hr.a.x", "hr.b.x"}


def test_a_cut_statement_has_edges_between_datasets(built: Built) -> None:
    cut = Shape("INSERT", table("big"), (table("empinfo"),), cut=True, columns=("x", "y"))
    after = Shape("INSERT", table("late"), (table("big"),), (("z", 0, "y", IS),))
    database = built(*COMPANY, cut, after)
    assert "file:/in/empinfo.csv#salary" in ends(database, "hr.late.z", "back", kinds=int(EVERY))
    assert {"hr.big", "hr.late.z"} <= ends(database, "hr.empinfo.salary", "forward", kinds=int(EVERY))


def test_sources_of_a_snapshot_are_not_later_than_it(built: Built) -> None:
    def copy(source: str, target: str, read: int, written: int) -> tuple[Shape, Run]:
        shape = Shape(
            "INSERT", table(target), (table(source),), (("c", 0, "c", IS),), name=f"{source}{target}"
        )
        return shape, Run(written, written, reads={0: read}, written=written)

    database = built(copy("a", "b", 1, 1), copy("c", "b", 1, 2), copy("d", "a", 7, 2), copy("e", "a", 7, 1))
    assert ends(database, "hr.b.c", "back") == {"hr.a.c", "hr.c.c", "hr.d.c", "hr.e.c"}
    assert ends(database, "hr.b@1.c", "back") == {"hr.a.c", "hr.e.c"}
    assert ends(database, "hr.b@2.c", "back") == {"hr.a.c", "hr.c.c", "hr.e.c"}
    assert ends(database, "hr.a@2.c", "forward") == set()
    assert ends(database, "hr.a@1.c", "forward") == {"hr.b.c"}


def test_a_table_with_the_name_of_a_dropped_one_is_different(built: Built) -> None:
    old, new = Dataset.table("hr", "t", table_id="1"), Dataset.table("hr", "t", table_id="2")
    database = built(
        (Shape("INSERT", old, (table("secret"),), (("c", 0, "c", IS),)), Run(1, 10)),
        (Shape("INSERT", table("kept"), (old,), (("c", 0, "c", IS),)), Run(1, 11)),
        (Shape("DROP_TABLE", Dataset.table("hr", "t")), Run(20, 20)),
        (Shape("INSERT", new, (table("harmless"),), (("c", 0, "c", IS),)), Run(30, 30)),
    )
    assert ends(database, "hr.t.c", "back") == {"hr.harmless.c"}
    assert ends(database, "hr.kept.c", "back") == {"hr.t.c", "hr.secret.c"}
    traced = trace(database, find(database, "hr.kept.c").fields, "back", kinds=int(DIRECT))
    dropped = {each.qualified: each.is_dropped for each in vertices(database, traced.fields).values()}
    assert dropped == {"hr.t.c": True, "hr.secret.c": False, "hr.kept.c": False}


def test_the_nearest_readers_come_first(built: Built) -> None:
    database = built(*COMPANY)
    found = readers(database, find(database, "hr.employee.salary").fields)
    assert [(each.vertex.qualified, each.process, each.depth) for each in found] == [
        ("hr.avgsalary.avgsalary", "INSERT", 1),
        ("file:/out/avg#avgsalary", "EXPORT", 2),
        ("result.avgsalary", "SELECT", 2),
    ]
    by_rows = readers(database, find(database, "hr.empinfo.deptno").fields)
    assert ("hr.employee", ("join",)) in {(each.vertex.qualified, each.kinds) for each in by_rows}


def test_plain_values_and_hashes_differ(built: Built) -> None:
    masked = int(EdgeKind.MASKED_TRANSFORMATION)
    database = built(
        Shape("INSERT", table("same"), (table("people"),), (("ssn", 0, "ssn", IS), ("n", 0, "name", IS))),
        Shape("INSERT", table("hashes"), (table("same"),), (("h", 0, "ssn", masked),)),
        Shape("INSERT", table("other"), (table("same"),), (("ssn", 0, "ssn", IS),)),
        Shape("EXPORT", EXPORT, (table("other"),), (("s", 0, "ssn", T),)),
        Shape("INSERT", table("of_hash"), (table("hashes"),), (("h2", 0, "h", IS),)),
        Shape("SELECT", RESULT, (table("people"),), (("ssn", 0, "ssn", IS),)),
        Shape("INSERT", table("both"), (table("people"),), (("b", 0, "ssn", IS | masked),)),
        Shape("INSERT", table("filtered"), (table("people"),), (("x", 0, "ssn", int(EdgeKind.CONDITIONAL)),)),
    )
    secrets = {"hr.people": {"ssn": "pii"}, "hr.same": {"ssn": "pii"}, "hr.other": {"ssn": "other"}}
    assert [(each.how, each.vertex.qualified) for each in plaintext(database, secrets, "pii")] == [
        *(("plain", "file:/out/avg#s"), ("plain", "hr.both.b"), ("plain", "hr.other.ssn")),
        *(("masked", "hr.hashes.h"), ("masked", "hr.of_hash.h2")),
    ]
    assert [each.key for each in plaintext(database, secrets)] == ["other", *["pii"] * 5]
    assert plaintext(database, secrets, "unknown") == []


def test_members_of_structs(built: Built) -> None:
    database = built(
        Shape("INSERT", table("zips"), (table("people"),), (("zip", 0, "addr.zip", IS),)),
        Shape("INSERT", table("whole"), (table("people"),), (("a", 0, "addr", IS),)),
    )
    assert ends(database, "hr.people.addr", "forward") == {"hr.zips.zip", "hr.whole.a"}
    assert ends(database, "hr.people.addr.zip", "forward") == {"hr.zips.zip", "hr.whole.a"}
    places = plaintext(database, {"hr.people": {"addr.zip": "pii"}})
    assert [each.vertex.qualified for each in places] == ["hr.whole.a", "hr.zips.zip"]


def test_a_column_named_like_a_member_is_no_member(built: Built, tmp_path: Path) -> None:
    """Table `hr.copies` encrypts `ssn`; its column `ssn.copy` is no member of it and is not encrypted."""
    catalog = Catalog(tmp_path / "warehouse")
    catalog.create_namespace("hr")
    columns = pa.schema([("ssn", pa.string()), ("ssn.copy", pa.string())])
    made = catalog.create_table("hr.copies", Schema.from_arrow(columns, options={"orc.encrypt": "pii:ssn"}))
    secrets = {"hr.people": {"ssn": "pii"}, "hr.copies": keys_in(made)}
    assert secrets["hr.copies"] == {"ssn": "pii"}
    both = (("ssn", 0, "ssn", IS), ("`ssn.copy`", 0, "ssn", IS))
    database = built(Shape("INSERT", table("copies"), (table("people"),), both))
    found = plaintext(database, secrets)
    assert [(each.key, each.vertex.qualified) for each in found] == [("pii", "hr.copies.`ssn.copy`")]


def test_names_with_dots_and_quotes(built: Built) -> None:
    odd = Dataset.table("my.db", "t`x")
    database = built(Shape("INSERT", odd, (table("a"),), (("`a.b`", 0, "c d", IS),)))
    assert odd.name == "`my.db`.`t``x`"
    assert ends(database, "`my.db`.`t``x`", "back") == {"hr.a.`c d`"}
    assert ends(database, "lake.hr.a.`c d`", "forward") == {"`my.db`.`t``x`.`a.b`"}


def test_errors_for_unknown_names_suggest_the_nearest(built: Built) -> None:
    database = built(*COMPANY)
    with pytest.raises(NotFoundError, match=r"hr\.employee"):
        find(database, "hr.employe")
    with pytest.raises(ColumnNotFoundError, match="salary"):
        find(database, "hr.employee.salry")
    for wrong in ("", "hr..t", "hr.", "hr.t.`c"):
        with pytest.raises((InputError, NotFoundError)):
            find(database, wrong)


@given(st.lists(st.text(min_size=1).filter(lambda part: "\0" not in part), min_size=1, max_size=4))
def test_names_round_trip(parts: list[str]) -> None:
    assert split_name(joined(parts)) == (parts, None)


def test_kinds_are_named() -> None:
    assert parse_kinds("plain, JOIN") == PLAIN | EdgeKind.JOIN
    assert kind_names(EdgeKind.IDENTITY | EdgeKind.SORT) == ["identity", "sort"]
    with pytest.raises(InputError, match="identity"):
        parse_kinds("identty")


@given(st.integers(0, 2**32))
@settings(max_examples=examples(8))
def test_a_trace_is_the_closure(seed: int) -> None:
    """A trace equals a plain search over the edges."""
    import tempfile

    chance = random.Random(seed)
    pairs = {(chance.randrange(12), chance.randrange(12), chance.choice((IS, T, 64))) for _ in range(25)}
    shapes = [
        Shape("INSERT", table(f"t{a}"), (table(f"t{b}"),), (("c", 0, "c", kind),)) for a, b, kind in pairs
    ]
    with tempfile.TemporaryDirectory() as folder:
        segments = Segments(LocalFileSystem(), f"{folder}/lake")
        segments.write(lines_of((shape, [Run(1, 1)]) for shape in shapes))
        with Index(segments, Path(folder, "cache")).reading() as database:
            for start in {a for a, _, _ in pairs}:
                wanted: set[int] = set()
                front = {start}
                while front:
                    front = {b for a, b, kind in pairs if a in front and kind != 64} - wanted
                    wanted |= front
                assert ends(database, f"hr.t{start}.c", "back") == {f"hr.t{each}.c" for each in wanted}


@pytest.mark.parametrize(
    ("sql", "masked"),
    [
        ("SELECT 'it''s' , 12.5e3, `a 1`, c1 FROM t", "SELECT ? , ?, `a 1`, c1 FROM t"),
        (r"SELECT 'a\'b', \"x\" -- pin 1234", r"SELECT ?, \?"),
        ('SELECT 1 /* \'secret */ + r\'\\\' + "x""y"', "SELECT ?   + ? + ?"),
        ("SELECT 'never closed", "SELECT ?"),
        ("SELECT X'AB', 10L, -3, $$body 1$$", "SELECT X?, ?, -?, ?"),
    ],
)
def test_literals_are_masked(sql: str, masked: str) -> None:
    assert mask_literals(sql.replace('\\"', '"')) == masked.replace("\\?", "?")


@given(st.text(alphabet="ab'\"`\\-/* $1.\n"), st.text(alphabet="xyz", min_size=5, max_size=5))
def test_no_string_is_shown(before: str, secret: str) -> None:
    assert secret not in mask_literals(f"SELECT '{secret}' {before}")


def test_the_connector_has_the_same_numbers_of_kinds() -> None:
    vectors = json.loads((Path(__file__).parents[3] / "fixtures" / "lineage_kinds.json").read_text())
    assert vectors == {kind.name: int(kind) for kind in EdgeKind}
