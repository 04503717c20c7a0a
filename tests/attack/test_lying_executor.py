"""An executor that asks for what is not its business: no file is touched, no operation done, no key given."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Named = Callable[[str], str]


@pytest.fixture
def told(spark: SparkSession) -> Callable[[bytes], str]:
    """What the driver's plugin answers a message that an executor sent over Spark's RPC."""
    (name,) = [each for each in spark.conf.get("spark.plugins").split(",") if "lockgate" in each]
    place: Any = spark._jvm
    for part in name.split("."):
        place = getattr(place, part)
    receiver = place().driverPlugin()

    def tell(message: bytes) -> str:
        try:
            answer = receiver.receive(bytearray(message))
        except Py4JError as error:
            return f"refused: {error}"
        return bytes(answer).decode(errors="replace")

    return tell


def forms(question: str, fields: Any) -> list[bytes]:
    """A question in every form that a driver may once have understood."""
    text = json.dumps(fields)
    return [
        json.dumps({"question": question, "fields": fields}).encode(),
        json.dumps({"operation": question, "request": text}).encode(),
        json.dumps({"operation": question, "request": fields}).encode(),
        text.encode(),
    ]


def answered(answer: str) -> bool:
    """Whether anything but an error came back, at whatever depth."""
    if answer.startswith("refused"):
        return False
    content = json.loads(answer)
    if isinstance(content.get("reply"), str):
        content = json.loads(content["reply"])
    return "error" not in content


QUESTIONS = [
    "keys.unwrap",
    "keys.create",
    "keys.names",
    "table.drop",
    "table.load",
    "namespace.drop",
    "toString",
]


@pytest.mark.parametrize("question", [*QUESTIONS, "lookup.poll", "lookup.event"])
def test_no_path_in_a_question_is_opened_or_removed(
    told: Callable[[bytes], str], tmp_path: Path, question: str
) -> None:
    victim = tmp_path / "keys.json"
    for content in ('{"scope": "keys-1", "name": "pii"}', "not JSON"):
        for fields in (
            {"ref": str(victim)},
            {"ref": str(victim), "scope": "keys-1", "name": "pii"},
            {"executor": "1", "name": "x", "event": {"ref": str(victim)}, "ref": str(victim)},
        ):
            for message in forms(question, fields):
                victim.write_text(content)
                told(message)
                assert victim.read_text() == content, message


def test_only_the_questions_of_executors_are_answered(
    told: Callable[[bytes], str], spark: SparkSession, table: Named
) -> None:
    name = table("kept")
    spark.sql(f"CREATE TABLE {name} (id INT)")
    _, database, own = name.split(".")
    fields = {"catalog": "lake", "namespace": [database], "table": own, "name": own, "cascade": True}
    for question in QUESTIONS[2:]:
        for message in forms(question, fields):
            assert not answered(told(message)), message
    assert spark.table(name).count() == 0


def test_a_guessed_handle_of_keys_opens_nothing(told: Callable[[bytes], str]) -> None:
    for scope in ("keys-0", "keys-1", "keys-2", "session:keys-1", "", "*", "../keys-1", "keys-" + "0" * 32):
        for question in ("keys.unwrap", "keys.create"):
            fields = {
                "scope": scope,
                "name": "pii",
                "version": 0,
                "algorithm": "AES_CTR_128",
                "iv": "A" * 22 + "==",
                "encrypted": "A" * 22 + "==",
            }
            for message in forms(question, fields):
                assert not answered(told(message)), message


ODD = [
    b"",
    b"null",
    b"[]",
    b"\xff\xfe",
    b'{"question": 5, "fields": []}',
    b'{"question": "keys.unwrap"}',
    b'{"question": "keys.unwrap", "fields": {"scope": {"a": 1}}}',
    b"[" * 5_000 + b"]" * 5_000,
    b'{"question": "lookup.event", "fields": {"executor": "../..", "name": "/etc/passwd", "event": {}}}',
]


@pytest.mark.parametrize("message", ODD, ids=range(len(ODD)))
def test_odd_messages_are_refused(told: Callable[[bytes], str], message: bytes) -> None:
    answer = told(message)
    assert answer.startswith("refused") or "error" in json.loads(answer)
