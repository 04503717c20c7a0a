"""Rights to relations, and to files that links lead to, asked for each time that a query reads them."""

from __future__ import annotations

from lockgate.errors import AccessDeniedError
from lockgate.framework.plugins import plugins
from lockgate.framework.spark.context.operation_context import OperationContext
from lockgate.framework.spark.enforcement.decisions import (
    decision_about,
    denied,
    fingerprint,
    target_of,
)
from lockgate.framework.spark.messages.rights_messages import FilesRequest


def check_files(context: OperationContext, request: FilesRequest) -> bool:
    """Check that a query may still read what it names, and the files that its paths lead to now.

    Raises AccessDeniedError if not, and under other policies than the query was planned under.
    """
    if not plugins().decides_access():
        return True
    for relation, rights in ((request["planned"], request["rights"]), (request["linked"], None)):
        if relation is None:
            continue
        found = decision_about(context, relation)
        if found.apply_for:
            is_path = relation["kind"] == "path"
            what = "files that a link leads to" if is_path else str(target_of(context, relation))
            raise denied(context, what, [*found.apply_for, *found.ask])
        is_other = found.is_restricted if rights is None else fingerprint(context, found) != rights
        if is_other:
            target = target_of(context, relation)
            raise AccessDeniedError(
                f"a query of {target} was planned under policies that have changed, or for other files: run "
                "it again, or create its DataFrame again",
                (f"SELECT on {target}",),
            )
    return True


OPERATIONS = {"governance.files": check_files}
