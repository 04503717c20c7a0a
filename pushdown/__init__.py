"""Predicates, what a source takes over of them, pruning by statistics, and the report of it all.

Pure: Arrow types and values in, answers out; no files, no Spark.
"""

from lockgate.pushdown.abilities import (
    Accepted,
    FilterPushDown,
    LimitPushDown,
    ProjectionPushDown,
    Remaining,
    SupportsFilterPushDown,
    SupportsLimitPushDown,
    SupportsProjectionPushDown,
    reads_only,
    split_filters,
)
from lockgate.pushdown.arrow import field_type, filter_table, to_arrow_expression, unsupported_reason
from lockgate.pushdown.describing import describe, describe_field, describe_literal
from lockgate.pushdown.evaluation import evaluate, residual
from lockgate.pushdown.explain import Count, ScanReport, Step, format_bytes
from lockgate.pushdown.json_codec import describe_json, from_json, reason_unsupported, to_json
from lockgate.pushdown.negation import negate, normalize
from lockgate.pushdown.predicates import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    Column,
    Comparison,
    FieldPath,
    Not,
    Op,
    Or,
    Predicate,
    PredicateVisitor,
    all_of,
    any_of,
    col,
    columns_of,
    conjuncts,
    literal,
)
from lockgate.pushdown.statistics import ColumnStatistics, may_match

__all__ = [
    "Accepted",
    "AlwaysFalse",
    "AlwaysTrue",
    "And",
    "Column",
    "ColumnStatistics",
    "Comparison",
    "Count",
    "FieldPath",
    "FilterPushDown",
    "LimitPushDown",
    "Not",
    "Op",
    "Or",
    "Predicate",
    "PredicateVisitor",
    "ProjectionPushDown",
    "Remaining",
    "ScanReport",
    "Step",
    "SupportsFilterPushDown",
    "SupportsLimitPushDown",
    "SupportsProjectionPushDown",
    "all_of",
    "any_of",
    "col",
    "columns_of",
    "conjuncts",
    "describe",
    "describe_field",
    "describe_json",
    "describe_literal",
    "evaluate",
    "field_type",
    "filter_table",
    "format_bytes",
    "from_json",
    "literal",
    "may_match",
    "negate",
    "normalize",
    "reads_only",
    "reason_unsupported",
    "residual",
    "split_filters",
    "to_arrow_expression",
    "to_json",
    "unsupported_reason",
]
