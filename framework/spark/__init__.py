"""The Spark side: a session with the connector, and the side of the driver that answers it.

Nothing here imports pyspark until a session is made or attached to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.lazy_names import lazy_attributes

if TYPE_CHECKING:
    from lockgate.framework.spark.bridge.connector_jars import jar, maven_coordinates
    from lockgate.framework.spark.bridge.dispatcher import dispatcher
    from lockgate.framework.spark.context.driver_jvm import java_class
    from lockgate.framework.spark.context.newer_pyspark import since_4_1
    from lockgate.framework.spark.context.operation_context import OperationContext
    from lockgate.framework.spark.context.sql_inspection import Statement, inspect_sql
    from lockgate.framework.spark.enforcement.decisions import decision_about, target_of
    from lockgate.framework.spark.messages.message_envelope import ErrorJson, FailureJson
    from lockgate.framework.spark.messages.shapes import Shape, fault_in, shape_of
    from lockgate.framework.spark.messages.shared_messages import NamespaceRequest, RowsJson, TableRequest
    from lockgate.framework.spark.session.attachment import attach
    from lockgate.framework.spark.session.lake import Lake
    from lockgate.framework.spark.session.session import configure, connect

_HOMES = {
    "ErrorJson": ".messages.message_envelope",
    "FailureJson": ".messages.message_envelope",
    "Lake": ".session.lake",
    "NamespaceRequest": ".messages.shared_messages",
    "OperationContext": ".context.operation_context",
    "RowsJson": ".messages.shared_messages",
    "Shape": ".messages.shapes",
    "Statement": ".context.sql_inspection",
    "TableRequest": ".messages.shared_messages",
    "attach": ".session.attachment",
    "configure": ".session.session",
    "connect": ".session.session",
    "decision_about": ".enforcement.decisions",
    "dispatcher": ".bridge.dispatcher",
    "fault_in": ".messages.shapes",
    "inspect_sql": ".context.sql_inspection",
    "jar": ".bridge.connector_jars",
    "java_class": ".context.driver_jvm",
    "maven_coordinates": ".bridge.connector_jars",
    "shape_of": ".messages.shapes",
    "since_4_1": ".context.newer_pyspark",
    "target_of": ".enforcement.decisions",
}

__all__ = [
    "ErrorJson",
    "FailureJson",
    "Lake",
    "NamespaceRequest",
    "OperationContext",
    "RowsJson",
    "Shape",
    "Statement",
    "TableRequest",
    "attach",
    "configure",
    "connect",
    "decision_about",
    "dispatcher",
    "fault_in",
    "inspect_sql",
    "jar",
    "java_class",
    "maven_coordinates",
    "shape_of",
    "since_4_1",
    "target_of",
]

__getattr__ = lazy_attributes(__name__, _HOMES)
