"""The history of a table: tags, branches, changes, clones, rollback and restore."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.lazy_names import lazy_attributes

if TYPE_CHECKING:
    from lockgate.framework.store.history.branches import (
        create_branch,
        delete_branch,
        fast_forward,
        rename_branch,
    )
    from lockgate.framework.store.history.table_clone import TableClone
    from lockgate.framework.store.history.table_restore import restore
    from lockgate.framework.store.history.table_rollback import rollback, snapshot_at, target_of
    from lockgate.framework.store.history.tag_plan import planned_tags
    from lockgate.framework.store.history.tags import (
        create_tag,
        delete_tags,
        new_tag,
        rename_tag,
        replace_tag,
    )


__all__ = [
    "TableClone",
    "create_branch",
    "create_tag",
    "delete_branch",
    "delete_tags",
    "fast_forward",
    "new_tag",
    "planned_tags",
    "rename_branch",
    "rename_tag",
    "replace_tag",
    "restore",
    "rollback",
    "snapshot_at",
    "target_of",
]

__getattr__ = lazy_attributes(
    __name__,
    {
        ".branches": "create_branch delete_branch fast_forward rename_branch",
        ".table_clone": "TableClone",
        ".table_restore": "restore",
        ".table_rollback": "rollback snapshot_at target_of",
        ".tag_plan": "planned_tags",
        ".tags": "create_tag delete_tags new_tag rename_tag replace_tag",
    },
)
