"""Two users under policies of Apache Ranger's format: what each sees, a refusal, and the grant after it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from flights.story import Rights, Story
from lockgate import Lake
from lockgate.governance import AuditLog, PolicyFiles, RangerAuthorizer
from lockgate.plugins import plugins

POLICIES = Path(__file__).with_name("policies.json")
DELAYS = "delays are for those who applied"
TABLE = "lake.flights.enriched"
SHOWN = ("flight_id", "carrier", "tailnum", "dest", "model")
ROWS = f"SELECT {', '.join(SHOWN)} FROM {TABLE} WHERE month = 7 AND dest = 'SFO' ORDER BY flight_id LIMIT 5"
COUNT = f"SELECT carrier, count(*) FROM {TABLE} GROUP BY carrier ORDER BY carrier"
DELAY = f"SELECT round(avg(arr_delay), 1) FROM {TABLE} WHERE month = 7"


def two_users(lake: Lake, folder: Path, story: Story) -> None:
    """Let ann and bob ask the same; refuse ann a column, grant it, and look at the audit."""
    folder.mkdir()
    policies, audit = folder / "policies.json", folder / "audit.json"
    policies.write_text(POLICIES.read_text())
    everybody = rows(lake.spark, COUNT)
    with governed(policies, audit):
        ann, bob = as_user(lake, "ann"), as_user(lake, "bob")
        united = [row for row in everybody if row[0] == "UA"]
        story.check_equal("ann sees United's flights only", rows(ann, COUNT), united)
        story.check_equal("bob sees all flights", rows(bob, COUNT), everybody, f"{len(everybody)} airlines")
        shown = rows(ann, ROWS), rows(bob, ROWS)
        refusal = refused(ann)
        expected = rows(bob, f"{DELAY} AND carrier = 'UA'")
        grant(policies)
        granted = rows(ann, DELAY)
    tails = [str(row[SHOWN.index("tailnum")]) for row in shown[0]]
    is_masked = bool(tails) and all(not tail[4:].strip("x") for tail in tails)
    story.check("ann sees four characters of a tail number", is_masked, ", ".join(tails))
    is_named = "arr_delay" in refusal and "the data office" in refusal
    story.check("a refusal names the column and the place to apply", is_named, refusal)
    story.check_equal("the grant gives ann her flights' mean delay", granted, expected)
    line = denials(audit)[0]
    story.check_equal("the audit log has the refusal", line["reqUser"], "ann")
    minutes = granted[0][0]
    story.rights = Rights(ROWS, SHOWN, *shown, DELAY, refusal, minutes, json.dumps(line))
    for user, seen in zip(("ann", "bob"), shown, strict=True):
        print(f"  {user}: {', '.join(map(str, seen[0]))}")
    print(
        f"  ann asks for delays: {refusal}\n  after the grant: {minutes} minutes\n  audit: {json.dumps(line)}"
    )


def rows(session: SparkSession, sql: str) -> list[tuple[object, ...]]:
    """Return the rows of a query."""
    return [tuple(row) for row in session.sql(sql).collect()]


@contextmanager
def governed(policies: Path, audit: Path) -> Iterator[None]:
    """Decide by the policies of a file, and write the audit to another."""
    log = AuditLog(audit, service="lake")
    authorizer = RangerAuthorizer(
        PolicyFiles(policies, seconds=0), catalog="lake", apply_at="the data office", audit=log
    )
    plugins().register(authorizer, "flights")
    try:
        yield
    finally:
        plugins().unregister("flights")
        log.close()


def as_user(lake: Lake, user: str) -> SparkSession:
    """Return a session of a user, as a server makes one: only its configuration allows that."""
    session = lake.spark.newSession()
    session.conf.set("spark.lockgate.user", user)
    return session


def refused(session: SparkSession) -> str:
    """Ask for delays, and return what the refusal says."""
    try:
        return f"not refused: {session.sql(DELAY).collect()}"
    except PySparkException as error:
        return str(error).splitlines()[0]


def grant(policies: Path) -> None:
    """Let ann read delays, as the data office would do: she becomes an exception of the policy."""
    found = json.loads(policies.read_text())
    (policy,) = (each for each in found["policies"] if each["name"] == DELAYS)
    policy["denyExceptions"][0]["users"].append("ann")
    found["policyVersion"] += 1
    policies.write_text(json.dumps(found, indent=2))


def denials(audit: Path) -> list[dict[str, Any]]:
    """Return the records of refusals."""
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    return [line for line in lines if not line["result"]]
