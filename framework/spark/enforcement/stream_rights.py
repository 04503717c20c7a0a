"""Rights of streams to what is no table of the warehouse: each batch asks for them again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.errors import AccessDeniedError
from lockgate.framework.plugins import plugins
from lockgate.framework.spark.context.operation_context import OperationContext
from lockgate.framework.spark.enforcement.decisions import decision_about, fingerprint, refuse, target_of
from lockgate.framework.spark.enforcement.foreign_relations import is_within, plain_path
from lockgate.framework.spark.messages.rights_messages import (
    BatchRightsRequest,
    StreamedRelation,
    UsedColumns,
)

if TYPE_CHECKING:
    from lockgate.framework.access import Target


def check_batch(context: OperationContext, request: BatchRightsRequest) -> bool:
    """Check that a batch sees of its relations what its stream was planned for; AccessDeniedError if not."""
    if plugins().decides_access():
        for streamed in request["streamed"]:
            _check(context, streamed)
    return True


def _check(context: OperationContext, streamed: StreamedRelation) -> None:
    relation = streamed["relation"]
    found = decision_about(context, relation)
    if found.apply_for:
        used: UsedColumns = {"relation": relation, "columns": [], "whole": False}
        refuse(context, {"used": [used], "statement": None})
    target = target_of(context, relation)
    if found.apply_for or fingerprint(context, found) != streamed["rights"]:
        raise _refused(
            target,
            "was planned under policies that have changed: create its DataFrame again and start it, and it "
            "goes on from its checkpoint",
        )
    _check_files(context, streamed, target)


def _check_files(context: OperationContext, streamed: StreamedRelation, target: Target) -> None:
    """Check that the files of a batch are those of its relation. A checkpoint names the files of a batch, and
    may be that of a stream of others: then all of these must be open to the reader.
    """
    folders = [plain_path(each) for each in streamed["folders"]]
    files = sorted({plain_path(each) for each in streamed["files"]})
    others = [path for path in files if not any(is_within(path, folder) for folder in folders)]
    if not others:
        return
    columns = streamed["relation"]["columns"]
    if decision_about(context, {"kind": "path", "paths": others, "columns": columns}).is_restricted:
        raise _refused(
            target,
            "would read files that are not there, through a link or as its checkpoint says: remove the link, "
            "or start it with a checkpoint of its own",
        )


def _refused(target: Target, why: str) -> AccessDeniedError:
    return AccessDeniedError(f"a stream that reads {target} {why}", (f"SELECT on {target}",))


OPERATIONS = {"governance.batch": check_batch}
