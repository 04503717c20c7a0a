"""Access: principals, requests and decisions; types only, so that every floor above can use them."""

from lockgate.framework.access.access_request import AccessRequest, Action, Target
from lockgate.framework.access.decision import ALLOWED, Decision, combined
from lockgate.framework.access.mask import SHA256, Mask, stricter
from lockgate.framework.access.masked_sql import NULL, columns_named, is_text, mask_sql
from lockgate.framework.access.principal import Caller, Principal
from lockgate.framework.access.sql_decision import SqlDecision, as_sql, combined_sql
from lockgate.framework.access.sql_literals import mask_literals
from lockgate.framework.access.statement import answering_statement, current_statement
from lockgate.framework.access.visibility import MASKED, ColumnVisibility, Sight, Visibility

__all__ = [
    "ALLOWED",
    "MASKED",
    "NULL",
    "SHA256",
    "AccessRequest",
    "Action",
    "Caller",
    "ColumnVisibility",
    "Decision",
    "Mask",
    "Principal",
    "Sight",
    "SqlDecision",
    "Target",
    "Visibility",
    "answering_statement",
    "as_sql",
    "columns_named",
    "combined",
    "combined_sql",
    "current_statement",
    "is_text",
    "mask_literals",
    "mask_sql",
    "stricter",
]
