"""Changes of rows on one side are seen on the other: upserts, statements, filters, commits at once."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from both_engines import Both, next_to
from exact_rows import Rows

pytestmark = pytest.mark.interop

KEY = {"primary_keys": ["id"], "options": {"bucket": "2"}}
COLUMNS = [("id", "INT"), ("v", "STRING"), ("n", "INT")]
# Key types, and two values of each; buckets are chosen by the bytes of Paimon's rows.
KEYS: dict[str, tuple[Any, Any]] = {
    "BOOLEAN": (True, False),
    "TINYINT": (-1, 100),
    "SMALLINT": (-300, 7),
    "INT": (-5, 70_000),
    "BIGINT": (2**40, -3),
    "DECIMAL(12, 2)": ("1234567890.12", "-0.01"),
    "DECIMAL(30, 3)": ("123456789012345678901.125", "-7.000"),
    "STRING": ("a longer text than eight bytes", "ü"),
    "DATE": (19_000, -5),
    "TIMESTAMP(3)": (1_600_000_000_123_000_000, 0),
    "TIMESTAMP(6)": (1_600_000_000_123_456_000, 1_000),
}


def test_rows_of_both_replace_each_other(both: Both) -> None:
    # Spark cannot write TIMESTAMP(3) exactly, so we refuse it as a key there.
    kinds = {kind: values for kind, values in KEYS.items() if kind != "TIMESTAMP(3)"}
    columns = [(f"k{at}", kind) for at, kind in enumerate(kinds)]
    names = [name for name, _ in columns]
    both.theirs.create([*columns, ("v", "INT")], primary_keys=names, options={"bucket": "5"})
    keys = [
        [values[number >> at & 1] for at, values in enumerate(kinds.values())]
        for number in (0, 1, 5, 77, 500, 600, 1023)
    ]
    both.theirs.write([[*key, 1] for key in keys[:5]])
    both.sql(f"INSERT INTO {{t}} SELECT {', '.join(names)}, 2 FROM {{t}}")
    both.agree([[*key, 2] for key in keys[:5]])
    both.theirs.write([[*key, 3] for key in keys[2:]])
    both.ours.append(both.ours.read().slice(0, 3))
    assert len(both.agree()) == len(keys)


@pytest.mark.parametrize("kind", KEYS)
def test_every_key_type_has_one_bucket(both: Both, kind: str) -> None:
    both.theirs.create([("k", f"{kind} NOT NULL"), ("v", "INT")], primary_keys=["k"], options={"bucket": "7"})
    rows: Rows = [[key, 1] for key in KEYS[kind]]
    both.theirs.write(rows)
    copy = next_to(both, "copy")
    copy.theirs.create([("k", f"{kind} NOT NULL"), ("v", "INT")], primary_keys=["k"], options={"bucket": "7"})
    copy.ours.append(both.ours.read())
    assert {file["bucket"] for file in copy.theirs.files()} == {
        file["bucket"] for file in both.theirs.files()
    }
    assert {file["bucket"] for file in both.theirs.files()} == set(both.theirs.buckets(rows))


def test_statements_here_are_seen_there(both: Both) -> None:
    for name, options in (("keyed", KEY), ("appended", {})):
        table = next_to(both, name)
        table.theirs.create(COLUMNS, **options)
        table.theirs.write([[number, "old", number] for number in range(10)])
        table.sql("DELETE FROM {t} WHERE id IN (0, 1)")
        table.sql("UPDATE {t} SET v = 'updated', n = n + 100 WHERE id BETWEEN 2 AND 4")
        table.sql(
            "MERGE INTO {t} USING (SELECT explode(sequence(4, 11)) AS id) s ON {t}.id = s.id "
            "WHEN MATCHED AND s.id = 9 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 'merged' "
            "WHEN NOT MATCHED THEN INSERT (id, v, n) VALUES (s.id, 'new', 0)"
        )
        rows: Rows = [[2, "updated", 102], [3, "updated", 103], [4, "merged", 104]]
        rows += [*([number, "merged", number] for number in range(5, 9)), [10, "new", 0], [11, "new", 0]]
        table.agree(rows)
        table.theirs.compact()
        table.agree(rows)


def test_deletions_there_are_seen_here(both: Both) -> None:
    both.sql("CREATE TABLE {t} (id INT, v STRING) TBLPROPERTIES ('primary-key'='id', 'bucket'='2')")
    both.sql("INSERT INTO {t} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    both.theirs.write([[2, None]], kind="-D")
    both.theirs.write([[3, "changed"]], kind="+U")
    both.agree([[1, "a"], [3, "changed"]])
    both.sql("INSERT INTO {t} VALUES (2, 'again')")
    both.agree([[1, "a"], [2, "again"], [3, "changed"]])


def test_the_newest_by_sequence_field(both: Both) -> None:
    both.theirs.create(COLUMNS, primary_keys=["id"], options={"bucket": "1", "sequence.field": "n"})
    both.theirs.write([[1, "theirs 5", 5], [2, "theirs 5", 5], [3, "theirs 5", 5]])
    both.sql("INSERT INTO {t} VALUES (1, 'ours 4', 4), (2, 'ours 6', 6), (3, 'ours 5', 5), (4, 'ours', null)")
    rows: Rows = [[1, "theirs 5", 5], [2, "ours 6", 6], [3, "ours 5", 5], [4, "ours", None]]
    both.agree(rows)
    both.theirs.write([[2, "theirs 5", 5], [4, "theirs", 0]])
    rows[3] = [4, "theirs", 0]
    both.agree(rows)
    both.theirs.compact()
    both.agree(rows)


def test_partitions_have_one_place(both: Both) -> None:
    keys = ["b", "i", "s", "d"]
    columns = [("b", "BOOLEAN"), ("i", "INT"), ("s", "STRING"), ("d", "DATE"), ("v", "INT")]
    both.theirs.create(columns, partition_keys=keys)
    rows: Rows = [[True, 1, "a b/c=d%", 19_000, 1], [None, None, None, None, 2], [False, -1, "ü", -1, 3]]
    both.theirs.write(rows)
    both.sql("INSERT INTO {t} SELECT * FROM {t}")
    both.ours.append(both.ours.read())
    assert len(both.agree()) == 12
    assert len({path.rsplit("/", 1)[0] for split in both.ours.scan().splits for path in split.paths}) == 3
    assert both.theirs.read(["v"], where=["is null", "s"]).rows == [[2]] * 4
    assert both.spark_rows("v", "WHERE s = 'ü' AND d = DATE '1969-12-31'") == [[3]] * 4
    both.sql(
        "INSERT OVERWRITE {t} PARTITION (b = true, i = 1, s = 'a b/c=d%', d = DATE '2022-01-08') VALUES (9)"
    )
    both.theirs.write([[False, -1, "ü", -1, 8]], overwrite={"b": "false", "i": "-1", "s": "ü", "d": "-1"})
    both.agree([[True, 1, "a b/c=d%", 19_000, 9], *[rows[1]] * 4, [False, -1, "ü", -1, 8]])


def test_each_prunes_by_the_statistics_of_the_other(both: Both) -> None:
    both.theirs.create([("id", "INT"), ("s", "STRING"), ("d", "DECIMAL(20, 2)"), ("t", "TIMESTAMP(6)")])
    # Texts longer than the 16 letters that statistics keep.
    rows: Rows = [[at, f"{at} with a long ending {at}", f"{at}.50", at * 10**15 + 1_000] for at in range(6)]
    for row in rows[:3]:
        both.theirs.write([row])
    copy = next_to(both, "copy")
    copy.theirs.create([("id", "INT"), ("s", "STRING"), ("d", "DECIMAL(20, 2)"), ("t", "TIMESTAMP(6)")])
    copy.theirs.write(rows[3:])
    for at in (3, 4):
        both.sql(f"INSERT INTO {{t}} SELECT * FROM {copy.sql_name} WHERE id = {at}")
    both.ours.append(copy.ours.read().slice(2, 1))
    both.agree(rows)
    for at, (_, text, decimal, time) in enumerate(rows):
        for column, value in (("id", at), ("s", text), ("d", decimal), ("t", time)):
            found = both.theirs.read(where=["=", column, value])
            assert found.rows == [rows[at]]
            assert found.files == 1
        where = f"s = '{text}' AND d = {decimal}"
        assert both.spark_rows("id", f"WHERE {where}") == [[at]]
    assert both.theirs.read(where=["<", "t", rows[2][3]]).files == 2


def test_the_other_engine_sees_masks(both: Both) -> None:
    both.sql(
        "CREATE TABLE {t} (id INT, ssn STRING, v INT) TBLPROPERTIES ('primary-key'='id', 'bucket'='1', "
        "'orc.encrypt'='pii:ssn', 'orc.mask'='nullify:ssn')"
    )
    both.sql("INSERT INTO {t} VALUES (1, '123-45', 1), (2, '678-90', 2)")
    assert both.spark_rows() == [[1, "123-45", 1], [2, "678-90", 2]]
    assert both.theirs.read().rows == [[1, None, 1], [2, None, 2]]


def test_commits_at_once(both: Both) -> None:
    both.theirs.create([("id", "INT"), ("who", "STRING")], primary_keys=["id"], options={"bucket": "2"})
    failed: list[BaseException] = []

    def ours() -> None:
        try:
            for number in range(8):
                both.sql(f"INSERT INTO {{t}} VALUES ({number}, 'ours'), ({100 + number}, 'both')")
        except BaseException as error:
            failed.append(error)

    writer = threading.Thread(target=ours)
    writer.start()
    for number in range(12):
        # Without its own compaction, which gives up when files of the bucket change concurrently.
        rows: Rows = [[50 + number, "theirs"], [100 + number, "both"]]
        both.theirs.write(rows, options={"write-only": "true"})
    writer.join()
    assert not failed
    expected: Rows = [[number, "ours"] for number in range(8)]
    expected += [[50 + number, "theirs"] for number in range(12)]
    both.agree([*expected, *([100 + number, "both"] for number in range(12))])
    assert len(both.ours.snapshots()) == 20
