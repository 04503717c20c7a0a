"""The command `lockgate`: what it prints, where, and how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.orc
import pytest

from lockgate.cli.main import main
from lockgate.framework.store import Catalog, Schema
from lockgate.framework.version import VERSION

ROWS = pa.table({"id": [1, 2], "name": ["a", "b"]})


@pytest.fixture
def keys(tmp_path: Path) -> str:
    path = str(tmp_path / "keys.json")
    assert main(["keys", "create", path, "pii", "fin"]) == 0
    return path


@pytest.fixture
def warehouse(tmp_path: Path, keys: str) -> str:
    """A warehouse with the encrypted table `db.t` of two snapshots, and the empty table `db.other`."""
    catalog = Catalog(tmp_path / "warehouse", keys=keys)
    catalog.create_namespace("db")
    catalog.create_table("db.other", Schema.from_arrow(ROWS.schema))
    table = catalog.create_table("db.t", Schema.from_arrow(ROWS.schema, options={"orc.encrypt": "pii:name"}))
    table.append(ROWS)
    table.append(ROWS)
    return str(tmp_path / "warehouse")


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"lockgate {VERSION}\n"


@pytest.mark.parametrize("arguments", [[], ["keys"], ["orc"], ["no-such-command"], ["tables"], ["call"]])
def test_wrong_usage_ends_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: lockgate" in capsys.readouterr().err


def test_keys_are_made_and_listed_without_their_bytes(keys: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert Path(keys).stat().st_mode & 0o777 == 0o600
    assert main(["keys", "list", keys]) == 0
    printed = capsys.readouterr().out
    assert "pii@0" in printed
    assert "fin@0" in printed
    for entry in json.loads(Path(keys).read_text())["keys"]:
        assert str(entry["material"] if "material" in entry else list(entry.values())[-1]) not in printed


def test_keys_are_never_overwritten(keys: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = Path(keys).read_bytes()
    assert main(["keys", "create", keys, "pii"]) == 1
    assert Path(keys).read_bytes() == before
    assert capsys.readouterr().err.startswith("lockgate: ")


def test_a_key_file_that_others_can_read(keys: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(keys).chmod(0o644)
    assert main(["keys", "list", keys]) == 1
    assert "chmod 600" in capsys.readouterr().err


def test_tables_are_listed_one_a_line(warehouse: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["tables", "--warehouse", warehouse]) == 0
    assert capsys.readouterr().out == "db.other\ndb.t\n"
    assert main(["tables", "--warehouse", warehouse, "dbb"]) == 1
    assert "did you mean 'db'" in capsys.readouterr().err


def test_a_warehouse_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tables", "--warehouse", str(tmp_path / "nowhere")]) == 1
    assert "there is no warehouse" in capsys.readouterr().err


def test_a_procedure_is_called_and_its_result_printed(
    warehouse: str, keys: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    where = ["--warehouse", warehouse, "--keys", keys]
    assert main(["call", "compact", *where, "--table", "db.t", "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["files_rewritten"] == 2
    assert main(["call", "compact", *where, "--table", "db.t", "--compact-strategy", "full"]) == 0
    printed = capsys.readouterr()
    header, values = printed.out.splitlines()
    assert dict(zip(header.split(), values.split(), strict=True))["files_after"] == "1"
    assert "1 of 1 groups of files rewritten" in printed.err
    assert main(["call", "expireSnapshots", *where, "--table", "db.t", "--retainMax", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["deleted_snapshots_count"] == 2


def test_call_without_the_key(warehouse: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["call", "compact", "--warehouse", warehouse, "--table", "db.t"]) == 1
    assert "pii" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["compct"], "did you mean 'compact'"),
        (["compact", "--table", "db.x"], "no table"),
        (
            ["expire_snapshots", "--table", "db.t", "--retain-max", "many"],
            "--retain-max: 'many' is not an INT",
        ),
        (["migrate_table", "--source-type", "spark", "--table", "a.b"], "needs Spark"),
    ],
)
def test_errors_are_one_line(
    warehouse: str, capsys: pytest.CaptureFixture[str], arguments: list[str], complaint: str
) -> None:
    capsys.readouterr()
    assert main(["call", *arguments, "--warehouse", warehouse]) == 1
    printed = capsys.readouterr()
    assert complaint in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""


def test_help_shows_the_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["call", "compact", "--help"])
    assert ended.value.code == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "--compact-strategy" in printed
    assert "(default: 'full', or 'minor'" in printed
    assert "(default: False)" in printed
    assert "--warehouse" in printed


def test_it_starts_without_spark() -> None:
    code = "import sys; from lockgate.cli.main import main; main(['call', 'compact', '--help'])"
    hooked = f"import atexit, sys; atexit.register(lambda: print('pyspark' in sys.modules)); {code}"
    done = subprocess.run([sys.executable, "-c", hooked], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A plain ORC file."""
    path = tmp_path / "plain.orc"
    pyarrow.orc.write_table(ROWS, path)
    return path


def test_orc_there_and_back(plain: Path, keys: str, capsys: pytest.CaptureFixture[str]) -> None:
    file, back = str(plain.with_name("file.orc")), plain.with_name("back.orc")
    assert main(["orc", "encrypt", str(plain), file, "--keys", keys, "--encrypt", "pii:name"]) == 0
    assert "2 rows, encrypted: name" in capsys.readouterr().out
    assert pyarrow.orc.read_table(file)["name"].to_pylist() == [None, None]
    before = Path(file).read_bytes()
    renamed = ["--rename", "pii=fin", "--overwrite", "--json"]
    assert main(["orc", "rekey", file, file, "--keys", keys, *renamed]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["rows"], printed["encrypted_columns"]) == (2, ["name"])
    assert Path(file).read_bytes() != before
    assert main(["orc", "decrypt", file, str(back), "--keys", keys]) == 0
    assert pyarrow.orc.read_table(back).equals(ROWS)


def test_what_is_not_written_as_it_should_be_ends_with_2(
    plain: Path, keys: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["orc", "rekey", str(plain), "new.orc", "--keys", keys, "--rename", "pii"])
    assert ended.value.code == 2
    assert "'pii' is not of the form OLD=NEW" in capsys.readouterr().err


def test_orc_inspect(plain: Path, keys: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(plain.with_name("file.orc"))
    assert main(["orc", "encrypt", str(plain), file, "--keys", keys, "--encrypt", "pii:name"]) == 0
    capsys.readouterr()
    assert main(["orc", "inspect", file]) == 0
    printed = capsys.readouterr().out
    assert "not held" in printed
    assert "Without a key, anyone who has this file knows" in printed
    assert main(["orc", "inspect", file, "--keys", keys, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(each["name"], each["minimum"]) for each in found["columns"]] == [("id", 1), ("name", "a")]
    assert main(["orc", "inspect", file, "--streams"]) == 0
    assert "Streams, over all stripes" in capsys.readouterr().out
    assert found["encrypted"][0]["key"] == "pii@0"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["inspect", "absent.orc"], "there is no file absent.orc"),
        (["inspect", "{keys}"], "is not a valid ORC file"),
        (["encrypt", "{plain}", "{plain}", "--keys", "{keys}", "--encrypt", "pii:name"], "--overwrite"),
        (["encrypt", "{plain}", "{new}", "--keys", "{keys}", "--encrypt", "pii:nam"], "did you mean 'name'"),
        (["decrypt", "{plain}", "{new}", "--keys", "{keys}"], "nothing to decrypt"),
        (
            ["encrypt", "{plain}", "{new}/x/y", "--keys", "{keys}", "--encrypt", "pii:name"],
            "/x/y: No such file",
        ),
    ],
)
def test_errors_of_orc_are_one_line(
    plain: Path, keys: str, capsys: pytest.CaptureFixture[str], arguments: list[str], complaint: str
) -> None:
    capsys.readouterr()
    new = plain.with_name("new.orc")
    assert main(["orc", *(each.format(plain=plain, keys=keys, new=new) for each in arguments)]) == 1
    printed = capsys.readouterr()
    assert complaint in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""
    assert not new.exists()
    assert pyarrow.orc.read_table(plain).equals(ROWS)
