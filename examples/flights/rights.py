"""Two users under policies of Apache Ranger's format: what each sees, a refusal, a request and its grant."""

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
from lockgate.governance import AuditLog, PolicyFiles, RangerAuthorizer, RequestFolder
from lockgate.plugins import plugins

POLICIES = Path(__file__).with_name("policies.json")
REASON = "delays for the yearly report"
NAME = "flights.enriched"
TABLE = f"lake.{NAME}"
REQUESTS = "SELECT id, user, columns, reason, state FROM lake.sys.access_requests"
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
    with governed(policies, audit, folder / "requests"):
        ann, bob, dora = (as_user(lake, user) for user in ("ann", "bob", "dora"))
        united = [row for row in everybody if row[0] == "UA"]
        story.check_equal("ann sees United's flights only", rows(ann, COUNT), united)
        story.check_equal("bob sees all flights", rows(bob, COUNT), everybody, f"{len(everybody)} airlines")
        shown = rows(ann, ROWS), rows(bob, ROWS)
        refusal = refused(ann)
        expected = rows(bob, f"{DELAY} AND carrier = 'UA'")
        asked = request(ann)
        waiting = rows(dora, REQUESTS)
        grant(dora)
        granted = rows(ann, DELAY)
        answered = rows(ann, REQUESTS)
    tails = [str(row[SHOWN.index("tailnum")]) for row in shown[0]]
    is_masked = bool(tails) and all(not tail[4:].strip("x") for tail in tails)
    story.check("ann sees four characters of a tail number", is_masked, ", ".join(tails))
    is_named = "arr_delay" in refusal and "CALL sys.request_access(table => 'flights.enriched')" in refusal
    story.check("a refusal names the column and the call to apply by", is_named, refusal)
    wanted = (asked, "ann", "arr_delay", REASON)
    story.check_equal("dora, who may grant, sees ann's request", waiting, [(*wanted, "open")])
    story.check_equal("her grant answers it", answered, [(*wanted, "granted")])
    story.check_equal("the grant gives ann her flights' mean delay", granted, expected)
    line = denials(audit)[0]
    story.check_equal("the audit log has the refusal", line["reqUser"], "ann")
    minutes = granted[0][0]
    story.rights = Rights(ROWS, SHOWN, *shown, DELAY, refusal, minutes, json.dumps(line))
    for user, seen in zip(("ann", "bob"), shown, strict=True):
        print(f"  {user}: {', '.join(map(str, seen[0]))}")
    print(
        f"  ann asks for delays: {refusal}\n  ann requests access: number {asked}, granted by dora\n"
        f"  after the grant: {minutes} minutes\n  audit: {json.dumps(line)}"
    )


def rows(session: SparkSession, sql: str) -> list[tuple[object, ...]]:
    """Return the rows of a query."""
    return [tuple(row) for row in session.sql(sql).collect()]


@contextmanager
def governed(policies: Path, audit: Path, requests: Path) -> Iterator[None]:
    """Decide by the policies of a file, write the audit to another, and keep requests in a folder."""
    log = AuditLog(audit, service="lake")
    authorizer = RangerAuthorizer(
        PolicyFiles(policies, seconds=0), catalog="lake", audit=log, requests=RequestFolder(requests)
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


def request(session: SparkSession) -> str:
    """Request access to delays, as the refusal says; return the number of the request."""
    call = f"CALL lake.sys.request_access(table => '{NAME}', columns => 'arr_delay', reason => '{REASON}')"
    return str(session.sql(call).collect()[0].id)


def grant(session: SparkSession) -> None:
    """Grant ann the column, as one who may grant on the whole table."""
    session.sql(f"CALL lake.sys.grant(table => '{NAME}', columns => 'arr_delay', users => 'ann')").collect()


def denials(audit: Path) -> list[dict[str, Any]]:
    """Return the records of refusals."""
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    return [line for line in lines if not line["result"]]
