"""Context of an operation: what it may use while it answers the connector."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from lockgate.errors import NamespaceNotFoundError, NotFoundError, TableNotFoundError
from lockgate.framework.access import Action
from lockgate.framework.plugins import answering_session, current_principal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate.framework.access import Principal
    from lockgate.framework.spark.bridge.dispatcher import Dispatcher
    from lockgate.framework.spark.context.jvm_sessions import RequestSession
    from lockgate.framework.spark.messages.shared_messages import MicroBatch
    from lockgate.framework.store import (
        Catalog,
        ReadRequest,
        Replacement,
        ScanSource,
        Table,
        TableHandle,
        TableSchema,
    )

# Procedures live here, and tables of the whole warehouse; it cannot be dropped.
SYSTEM_NAMESPACE = "sys"

SESSION_CONF = "spark.lockgate.encryption.on-plaintext"


class OperationContext:
    """The context of one request; it implements `lockgate.plugins.BridgeContext`."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        request: Mapping[str, Any],
        request_session: RequestSession | None = None,
        session: str | None = None,
    ) -> None:
        self.dispatcher = dispatcher
        # The name of the session that asks, as its JVM knows it; None for what no session asks.
        self.session = session
        self._request = request
        self._request_session = request_session or dispatcher.sessions.request_session(None)
        # Tables loaded for this request, by the identity of the object that names them, which is kept.
        self._loaded: dict[int, tuple[object, tuple[Table, TableSchema]]] = {}

    def about(self, named: Mapping[str, Any]) -> OperationContext:
        """Return the context of the same request about another table, named by `named`."""
        return OperationContext(
            self.dispatcher, {**self._request, **named}, self._request_session, self.session
        )

    @contextmanager
    def apart(self, named: Mapping[str, Any]) -> Iterator[OperationContext]:
        """Give a thread of its own the context of the same request about another table, named by `named`.

        The thread then acts for the one that waits, and asks nothing of the JVM after that.
        """
        request_session = self._request_session.apart()
        own = OperationContext(self.dispatcher, {**self._request, **named}, request_session, self.session)
        try:
            with answering_session(own.session_conf):
                yield own
        finally:
            request_session.leave()
            self.dispatcher.sessions.thread_ends()

    @property
    def request(self) -> Mapping[str, Any]:
        """The request as the connector sent it."""
        return self._request

    @property
    def principal(self) -> Principal:
        """The requesting identity: the user of the Spark session, or the one that a server acts for."""
        return current_principal()

    @property
    def privileges(self) -> frozenset[Action]:
        """Return what the statement will do to the table, as Spark said when it loaded it; empty for a
        query.
        """
        return frozenset(Action(name) for name in self._request["privileges"])

    @cached_property
    def spark(self) -> SparkSession:
        """The session that asks: the active one of the thread that waits, with its views, confs and jobs."""
        return self._request_session.spark()

    def session_conf(self, key: str) -> str:
        """Return a conf of the session that asks; "" if it is not set."""
        return str(self.spark.conf.get(key, ""))

    def catalog(self, name: str) -> Catalog:
        """Return the warehouse behind the catalog `name` of a request; NotFoundError if there is none."""
        return self.dispatcher.catalogs.get(name)

    def requested_catalog(self) -> Catalog:
        """Return the warehouse that the request is about."""
        return self.catalog(self._request["catalog"])

    def namespace(self) -> str:
        """Return the database of the request; NamespaceNotFoundError unless it is one name."""
        namespace = self._request["namespace"]
        if len(namespace) != 1:
            given = ".".join([self.catalog_name(), *namespace])
            raise NamespaceNotFoundError(
                f"a database is named {self.catalog_name()}.db, a table {self.catalog_name()}.db.t: "
                f"{given} is neither"
            )
        return str(namespace[0])

    def catalog_name(self) -> str:
        """Return the catalog's name as the user knows it."""
        return str(self._request["catalog_name"])

    def identifier(self) -> str:
        """Return `db.t`, or `db.t$branch_b`, of the request, without the suffix of a system table."""
        return f"{self.namespace()}.{split_name(self._request['name'])[0]}"

    def full_name(self) -> str:
        """Return `lake.db.t` of the request, as the user wrote it."""
        return ".".join([self.catalog_name(), *self._request["namespace"], self._request["name"]])

    def hadoop_path(self, table: Table, path: str) -> str:
        """Return the text of which Hadoop's `Path` is made: an address whose characters are not escaped."""
        uri = table.file_system.uri(path)
        return unquote(uri) if uri.startswith("file:") else uri

    def table(self) -> Table:
        """Load the table of the request, under the schema that Spark analysed the query with.

        Raises TableNotFoundError, with the nearest names, also if another table has taken its place since.
        """
        return self.read_and_newest()[0]

    def read_and_newest(self) -> tuple[Table, TableSchema]:
        """Load the table as `table` does, and return its newest schema too."""
        if self._request["replacement"] is not None:
            made = self.replacement()
            return made, made.schema
        table = self.requested_catalog().load_table(self.identifier())
        table_id, schema_id = self._request["table_id"], self._request["schema_id"]
        if table_id not in (None, table.table_id):
            raise TableNotFoundError(
                f"table {self.full_name()} was dropped and created again after the query was analysed; "
                "recreate the DataFrame or restart the stream"
            )
        return (table if schema_id is None else table.with_schema(schema_id)), table.schema

    def loaded(self, relation: Mapping[str, Any]) -> tuple[Table, TableSchema]:
        """Return what `read_and_newest` does of the table of a relation, loaded once for this request."""
        kept = self._loaded.get(id(relation))
        if kept is None:
            found = self.about(relation["table"]).read_and_newest()
            kept = self._loaded[id(relation)] = (relation, found)
        return kept[1]

    def source(self, table: TableHandle, request: ReadRequest | None = None) -> ScanSource:
        """Begin a scan of a table, by default of all its rows."""
        from lockgate.framework.store import ReadRequest

        return self.dispatcher.source(table, request or ReadRequest())

    def replacement(self) -> Replacement:
        """Return the table to come that the request is about; NotFoundError if it was made or given up."""
        found = self.dispatcher.replacements.get(self._request["replacement"])
        if found is None:
            raise NotFoundError(f"the replacement of table {self.full_name()} has ended already")
        return found


def batch_properties(batch: MicroBatch | None) -> Mapping[str, str | None]:
    """Return the micro-batch that is planned as plugins get it; empty if none is known."""
    return {} if batch is None else {"batch_id": batch["batch_id"], "query_id": batch["query_id"]}


def split_name(name: str) -> tuple[str, str]:
    """Split a name into that of a table, or of a branch of it, and the suffix of a system table."""
    parts = name.split("$")
    kept = 2 if len(parts) > 1 and parts[1].startswith("branch_") else 1
    return "$".join(parts[:kept]), "$".join(parts[kept:])


def session_choice(context: OperationContext) -> str:
    """Return what the session chooses for values of encrypted columns that would be stored in the clear.

    Empty if it does not choose; OptionError for what cannot be chosen.
    """
    from lockgate.framework.options import ON_PLAINTEXT

    # The table's option wins over it, and it wins over the warehouse's.
    return ON_PLAINTEXT.value_of(str(context.spark.conf.get(SESSION_CONF, "")))
