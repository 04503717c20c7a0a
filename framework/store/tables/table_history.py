"""Methods of a table on its past: tags, rollback, branches, and the consumers that hold snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import InputError
from lockgate.framework.access import Action
from lockgate.framework.io import named_errors
from lockgate.framework.store.grants import grant
from lockgate.framework.store.handle import TableHandle

if TYPE_CHECKING:
    from datetime import timedelta

    from lockgate.framework.store.history.table_rollback import RollbackResult
    from lockgate.framework.store.history.tags import Released
    from lockgate.framework.store.metadata.tag_files import Tag


@checked_arguments
class TableHistory(TableHandle):
    """The past of a table, by methods of `Table`."""

    # --- tags --------------------------------------------------------------------------------

    @named_errors
    def tags(self) -> list[Tag]:
        """Return all tags, in the order of their snapshots."""
        from lockgate.framework.store.metadata.tag_files import load_tags

        return load_tags(self)

    @named_errors
    def tag(self, name: str) -> Tag:
        """Return a tag; TagNotFoundError offers the nearest names."""
        from lockgate.framework.store.metadata.tag_files import load_tag

        return load_tag(self, name)

    @named_errors
    def create_tag(
        self, name: str, snapshot_id: int | None = None, *, retained: timedelta | None = None
    ) -> Tag:
        """Name the newest snapshot, or `snapshot_id`; see `tags.create_tag`.

        `retained` is noted for engines that delete tags by age.
        """
        grant(self, Action.ALTER)
        from lockgate.framework.store.history.tags import create_tag, new_tag

        return create_tag(self, new_tag(self, name, snapshot_id, retained))

    @named_errors
    def replace_tag(
        self, name: str, snapshot_id: int | None = None, *, retained: timedelta | None = None
    ) -> Released:
        """Let a tag name the newest snapshot, or `snapshot_id`; see `tags.replace_tag`."""
        grant(self, Action.ALTER)
        from lockgate.framework.store.history.tags import new_tag, replace_tag

        return replace_tag(self, new_tag(self, name, snapshot_id, retained))

    @named_errors
    def rename_tag(self, name: str, target: str) -> Tag:
        """Give a tag another name; see `tags.rename_tag`."""
        grant(self, Action.ALTER)
        from lockgate.framework.store.history.tags import rename_tag

        return rename_tag(self, name, target)

    @named_errors
    def delete_tag(self, name: str) -> Released:
        """Delete a tag with the files that only it held; see `tags.delete_tags`."""
        grant(self, Action.ALTER)
        from lockgate.framework.store.history.tags import delete_tags

        return delete_tags(self, [name])

    # --- going back --------------------------------------------------------------------------

    @named_errors
    def rollback(
        self, snapshot_id: int | None = None, *, tag: str | None = None, dry_run: bool = False
    ) -> RollbackResult:
        """Make the table what it was at a snapshot or a tag; see `rollback.rollback`.

        Raises InputError unless exactly one is given, SnapshotNotFoundError and TagNotFoundError.
        """
        grant(self, Action.ALTER)
        from lockgate.framework.store.history.table_rollback import rollback, target_of

        if (snapshot_id is None) == (tag is None):
            raise InputError("give either the snapshot or the tag to roll back to")
        return rollback(self, target_of(self, snapshot_id, tag), dry_run=dry_run)

    # --- branches ----------------------------------------------------------------------------

    @named_errors
    def branches(self) -> list[str]:
        """Return the names of all branches, sorted."""
        from lockgate.framework.store.history.branches import branch_names

        return branch_names(self)

    @named_errors
    def create_branch(self, name: str, snapshot_id: int | None = None, *, tag: str | None = None) -> None:
        """Create a branch, empty or from a snapshot or tag; see `branches.create_branch`."""
        grant(self, Action.ALTER)
        from lockgate.framework.store.history.branches import create_branch

        create_branch(self, name, snapshot_id, tag=tag)

    @named_errors
    def delete_branch(self, name: str) -> Released:
        """Delete a branch with the files that only it held; see `branches.delete_branch`."""
        grant(self, Action.ALTER)
        from lockgate.framework.store.history.branches import delete_branch

        return delete_branch(self, name)

    @named_errors
    def rename_branch(self, name: str, target: str) -> None:
        """Give a branch another name; see `branches.rename_branch`."""
        grant(self, Action.ALTER)
        from lockgate.framework.store.history.branches import rename_branch

        rename_branch(self, name, target)

    @named_errors
    def fast_forward(self, branch: str) -> int:
        """Bring the table to where a branch of it is; see `branches.fast_forward`."""
        grant(self, Action.ALTER)
        from lockgate.framework.store.history.branches import fast_forward

        return fast_forward(self, branch)

    # --- consumers ---------------------------------------------------------------------------

    @named_errors
    def record_consumer(self, consumer_id: str, next_snapshot: int) -> None:
        """Note that `consumer_id` still needs snapshots from `next_snapshot` on; expiry spares them."""
        self.consumer_files.record(consumer_id, next_snapshot)

    @named_errors
    def consumers(self) -> dict[str, int]:
        """Return the next snapshot that each consumer needs."""
        return self.consumer_files.load_all()

    @named_errors
    def consumer_times(self) -> dict[str, int]:
        """Return when each consumer was last noted, in milliseconds since the epoch."""
        return self.consumer_files.modified_millis()

    @named_errors
    def delete_consumer(self, consumer_id: str) -> bool:
        """Forget a consumer; False if it is not known."""
        return self.consumer_files.delete(consumer_id)
