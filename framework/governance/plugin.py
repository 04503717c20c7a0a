"""Governance as a plugin: the command `lockgate policy`, `lake.check`, and procedures that show rights."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockgate.errors import InputError
from lockgate.framework.options import Option
from lockgate.framework.plugins import CommandMaker, LakeMethod, SystemTable, WarehouseTable, hookimpl

if TYPE_CHECKING:
    from lockgate.procedures import Procedure

_EXAMPLE = """The file holds policies as Ranger's admin exports them (serviceDef, policies, ...), and tests:
  {"serviceDef": {...}, "policies": [...], "tests": [{"name": "ann reads", "request": {"resource":
   {"elements": {"database": "db", "table": "t"}}, "accessType": "select", "user": "ann", "userGroups": []},
   "result": {"isAllowed": true, "policyId": 7}}]}
A test can also expect `dataMaskResult` and `rowFilterResult`, each with `additionalInfo`, as in Ranger's own
test cases."""


@hookimpl
def lockgate_cli_commands() -> Mapping[str, CommandMaker]:
    """Return the command that tries policies."""
    return {"policy": add_policy}


@hookimpl
def lockgate_lake_methods() -> Mapping[str, LakeMethod]:
    """Offer `lake.check`."""
    return {"check": _check}


def _check(lake: Any, sql: str, user: str | None = None, rule: str = "strict") -> Any:
    """Say what a statement needs and what `user` lacks for it; see `lockgate.governance.Check`.

    By the rule `bytequery` columns that only conditions, orders and groups use are not needed.
    """
    from lockgate.framework.governance.statement_checks import check

    return check(lake.spark, {lake.name: lake.catalog}, sql, user, rule)


@hookimpl
def lockgate_options() -> Mapping[str, Sequence[Option[Any]]]:
    """Declare Ranger's options for catalogs."""
    from lockgate.framework.governance.catalog_confs import DECLARED

    return {"catalog": DECLARED}


@hookimpl
def lockgate_before_attach(confs: Mapping[str, str]) -> None:
    """Register policies for catalogs whose confs name a service in Ranger."""
    # Whatever an earlier application of this process had goes with it.
    had = "lockgate.framework.governance.catalog_confs" in sys.modules
    if had or any(".ranger.plugin." in key or ".xasecure." in key for key in confs):
        from lockgate.framework.governance.catalog_confs import register_policies

        register_policies(confs)


@hookimpl
def lockgate_procedures() -> Sequence[Procedure]:
    """Offer `check_access`, `check_keys`, `show_grants`, `request_access`, `grant` and `revoke`."""
    from lockgate.framework.governance.key_limits import CheckKeys
    from lockgate.framework.governance.requests.request_procedures import PROCEDURES as OF_REQUESTS
    from lockgate.framework.governance.rights_procedures import PROCEDURES

    return (*PROCEDURES, CheckKeys(), *OF_REQUESTS)


@hookimpl
def lockgate_system_tables() -> Mapping[str, SystemTable]:
    """Offer `lake.db.t$access`."""
    from lockgate.framework.governance.requests.access_table import TABLES

    return TABLES


@hookimpl
def lockgate_warehouse_tables() -> Mapping[str, WarehouseTable]:
    """Offer `lake.sys.access_requests`."""
    from lockgate.framework.governance.requests.requests_table import TABLES

    return TABLES


def add_policy(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `lockgate policy`."""
    parser.description = "Test policies of Apache Ranger without Ranger; show what they say of a statement."
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    test = commands.add_parser(
        "test",
        help="decide the tests in a file and print each unexpected decision",
        description="Decide the tests in a file and print each unexpected decision (exit code 1 if any).",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    test.add_argument("file", type=Path, metavar="FILE", help="policies and tests in Ranger's JSON form")
    test.set_defaults(run=run_tests)
    definition = commands.add_parser(
        "definition",
        help="print the service definition for Ranger's admin",
        description="Print the definition of the service type `paimon`, for Ranger's admin.",
    )
    definition.set_defaults(run=print_definition)
    status = commands.add_parser(
        "status",
        help="print the version and age of the policies that are kept on this host",
        description="Print the version and age of the policies that are kept on this host "
        "(exit code 1 if they allow nothing).",
    )
    status.add_argument("files", type=Path, nargs="+", metavar="FILE", help="XML files of a Ranger plugin")
    status.set_defaults(run=print_status)
    page = commands.add_parser(
        "page",
        help="write a page on what a statement reads, by which grants, and what is missing",
        description="Write a page for a browser: what a statement reads, by which policies, and what its "
        "user lacks. Starts Spark, and runs nothing of the statement.",
    )
    page.add_argument("warehouse", metavar="WAREHOUSE", help="the folder of the warehouse")
    page.add_argument("sql", metavar="STATEMENT", help="a statement of SQL other than CALL")
    page.add_argument(
        "--policies", type=Path, required=True, metavar="PATH", help="a file or folder of policies"
    )
    page.add_argument("--user", required=True, help="who wants to run it")
    page.add_argument("--catalog", default="lake", help="the warehouse's name in SQL and in policies (lake)")
    page.add_argument("--rule", default="strict", help="which columns count: strict (default), bytequery")
    page.add_argument("--output", type=Path, required=True, metavar="FILE", help="the page")
    page.set_defaults(run=write_page)


def print_status(options: argparse.Namespace) -> int:
    """Print what the cache of policies holds; return 0 if it can be used, else 1."""
    from lockgate.framework.governance.ranger.protocol.admin_client import Content, version_of
    from lockgate.framework.governance.ranger.protocol.admin_settings import AdminSettings
    from lockgate.framework.governance.ranger.protocol.download_cache import PolicyCache

    settings = AdminSettings.from_files(*options.files)
    found = PolicyCache(settings).load(Content.POLICIES)
    if found is None:
        print(f"no policies of service {settings.service} are kept in {settings.cache_folder}")
        return 1
    age = max(0.0, time.time() - found[1])
    version = version_of(Content.POLICIES, found[0])
    print(f"policies of service {settings.service}: version {version}, confirmed {age:.0f} s ago")
    if settings.oldest_seconds is not None and age > settings.oldest_seconds:
        print(f"they are older than {settings.oldest_seconds:.0f} s: they allow nothing")
        return 1
    return 0


def print_definition(options: argparse.Namespace) -> int:
    """Print the service definition; return 0."""
    from lockgate.framework.governance.ranger.service_definition import definition_text

    print(definition_text(), end="")
    return 0


def write_page(options: argparse.Namespace) -> int:
    """Write the page of a statement; return 0 if its user may run it, else 1."""
    from lockgate.framework.governance.authorizer import RangerAuthorizer
    from lockgate.framework.governance.policy_files import PolicyFiles
    from lockgate.framework.plugins import plugins
    from lockgate.framework.spark import connect

    policies = PolicyFiles(options.policies)
    lake = connect(options.warehouse, catalog=options.catalog, app_name="lockgate policy page")
    authorizer = RangerAuthorizer(policies, catalog=options.catalog)
    plugins().register(authorizer, "policies of the page")
    try:
        found = _check(lake, options.sql, options.user, options.rule)
    finally:
        plugins().unregister("policies of the page")
    options.output.write_text(found.page(), encoding="utf-8")
    print(f"{options.output}: user {options.user} {'may' if found.allowed else 'may not'} run it")
    return 0 if found.allowed else 1


def run_tests(options: argparse.Namespace) -> int:
    """Print a line for each unexpected decision; return 0 if there is none, else 1."""
    document = _read(options.file)
    wrong = list(_differences(document))
    for line in wrong:
        print(line)
    count = len(document.get("tests") or ())
    print(f"{count} tests, {len({line.split(':')[0] for line in wrong})} unexpected decisions")
    return 1 if wrong else 0


def _read(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text())
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {error}") from error
    if not isinstance(document, dict) or not document.get("tests"):
        raise InputError(f"{path} has no `tests`: add at least one")
    return document


def _differences(document: Mapping[str, Any]) -> Iterator[str]:
    from lockgate.framework.governance.ranger.cases import differences, engine_of

    engine = engine_of(document)
    for number, case in enumerate(document["tests"], 1):
        for difference in differences(engine, case):
            yield f"test {number} ({case.get('name', 'no name')}): {difference}"
