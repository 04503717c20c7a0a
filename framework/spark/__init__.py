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
    from lockgate.framework.spark.context.open_catalogs import strict
    from lockgate.framework.spark.context.operation_context import OperationContext
    from lockgate.framework.spark.context.sql_inspection import Statement, inspect_sql
    from lockgate.framework.spark.enforcement.decisions import decision_about, target_of
    from lockgate.framework.spark.enforcement.foreign_relations import (
        SESSION_CATALOG,
        decide_links,
        refusal_of_path,
        targets_of,
    )
    from lockgate.framework.spark.enforcement.statements import actions_of, check_nodes
    from lockgate.framework.spark.messages.message_envelope import ErrorJson, FailureJson
    from lockgate.framework.spark.messages.shapes import Shape, fault_in, shape_of
    from lockgate.framework.spark.messages.shared_messages import (
        NamespaceRequest,
        RowsJson,
        TableRequest,
        ValueJson,
    )
    from lockgate.framework.spark.operations.plans.file_rewrites import REWRITE, FileRewrite
    from lockgate.framework.spark.session.attachment import attach
    from lockgate.framework.spark.session.lake import Lake
    from lockgate.framework.spark.session.session import CATALOG_CLASS, configure, connect, loaded_catalog


__all__ = [
    "CATALOG_CLASS",
    "REWRITE",
    "SESSION_CATALOG",
    "ErrorJson",
    "FailureJson",
    "FileRewrite",
    "Lake",
    "NamespaceRequest",
    "OperationContext",
    "RowsJson",
    "Shape",
    "Statement",
    "TableRequest",
    "ValueJson",
    "actions_of",
    "attach",
    "check_nodes",
    "configure",
    "connect",
    "decide_links",
    "decision_about",
    "dispatcher",
    "fault_in",
    "inspect_sql",
    "jar",
    "java_class",
    "loaded_catalog",
    "maven_coordinates",
    "refusal_of_path",
    "shape_of",
    "since_4_1",
    "strict",
    "target_of",
    "targets_of",
]

__getattr__ = lazy_attributes(
    __name__,
    {
        ".bridge.connector_jars": "jar maven_coordinates",
        ".bridge.dispatcher": "dispatcher",
        ".context.driver_jvm": "java_class",
        ".context.newer_pyspark": "since_4_1",
        ".context.open_catalogs": "strict",
        ".context.operation_context": "OperationContext",
        ".context.sql_inspection": "Statement inspect_sql",
        ".enforcement.decisions": "decision_about target_of",
        ".enforcement.foreign_relations": "decide_links refusal_of_path SESSION_CATALOG targets_of",
        ".enforcement.statements": "actions_of check_nodes",
        ".messages.message_envelope": "ErrorJson FailureJson",
        ".messages.shapes": "Shape fault_in shape_of",
        ".messages.shared_messages": "NamespaceRequest RowsJson TableRequest ValueJson",
        ".operations.plans.file_rewrites": "FileRewrite REWRITE",
        ".session.attachment": "attach",
        ".session.lake": "Lake",
        ".session.session": "CATALOG_CLASS configure connect loaded_catalog",
    },
)
