"""Changes applied to a schema: the next schema, or an error that says why not.

Files stay as they are: columns are known by their ids, so a reader finds them in files of any schema. Source:
Paimon's `SchemaManager`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lockgate.errors import AlreadyExistsError, ColumnNotFoundError, InputError, UnsupportedError
from lockgate.framework import options as table_options
from lockgate.framework.options import Change
from lockgate.framework.store.ddl.column_options import (
    columns_in_lists,
    drop_from_options,
    rename_in_options,
)
from lockgate.framework.store.ddl.schema_changes import (
    AddColumn,
    ChangeComment,
    ChangeDefault,
    ChangeNullability,
    ChangeType,
    ColumnPath,
    DropColumn,
    MoveColumn,
    Position,
    RemoveOption,
    RenameColumn,
    SchemaChange,
    SetComment,
    SetOption,
)
from lockgate.framework.store.ddl.validation import check_schema, check_storable
from lockgate.framework.store.metadata.generations import check_not_set
from lockgate.framework.store.schema.defaults import default_value, with_stored_default
from lockgate.framework.store.schema.nested_fields import (
    Fields,
    edit_field,
    edit_neighbours,
    inner_fields,
    numbered,
    position_of,
    spelled,
    with_inner_fields,
)
from lockgate.framework.store.schema.schema import TableSchema, now_millis
from lockgate.framework.types import DataField, can_widen


def altered(schema: TableSchema, changes: Sequence[SchemaChange], *, has_rows: bool) -> TableSchema:
    """Return the next version of a schema: all `changes` in order, or none.

    `has_rows`: whether the table has, or had, rows that must stay readable. Raises ColumnNotFoundError,
    AlreadyExistsError, InputError, OptionError and UnsupportedError, each naming the column or option.
    """
    alteration = _Alteration(schema, has_rows)
    for change in changes:
        alteration.apply(change)
    found = alteration.result()
    if has_rows and schema.has_vectors and not found.has_vectors:
        raise UnsupportedError(
            f"option {table_options.DELETION_VECTORS.key!r} cannot change once a table has rows: without "
            "it other engines would show deleted rows"
        )
    return found


@dataclass
class _Alteration:
    schema: TableSchema
    has_rows: bool
    fields: Fields = field(init=False)
    options: dict[str, str] = field(init=False)
    primary_keys: tuple[str, ...] = field(init=False)
    comment: str | None = field(init=False)
    highest: int = field(init=False)

    def __post_init__(self) -> None:
        self.fields = self.schema.fields
        self.options = dict(self.schema.options)
        self.primary_keys = self.schema.primary_keys
        self.comment = self.schema.comment
        self.highest = self.schema.highest_field_id

    def apply(self, change: SchemaChange) -> None:
        _APPLY[type(change)](self, change)

    def result(self) -> TableSchema:
        changed = replace(
            self.schema,
            id=self.schema.id + 1,
            fields=self.fields,
            highest_field_id=self.highest,
            primary_keys=self.primary_keys,
            options=self.options,
            comment=self.comment,
            time_millis=now_millis(),
        )
        check_schema(changed)
        return changed

    # --- columns -----------------------------------------------------------------------------

    def add(self, change: AddColumn) -> None:
        *outside, name = change.path
        inside = inner_fields(self.fields, outside)
        if any(found.name.lower() == name.lower() for found in inside):
            raise AlreadyExistsError(f"there is a column {spelled(change.path)!r} already")
        if not change.type.nullable and self.has_rows:
            raise InputError(
                f"column {spelled(change.path)!r} cannot be added as NOT NULL: the rows of the table have no "
                "value for it"
            )
        check_storable(spelled(change.path), change.type)
        own = self.highest + 1
        kind, self.highest = numbered(change.type, own)
        added = DataField(own, name, kind, change.description)
        position = change.position
        fields = (*inside, added) if position is None else _placed(inside, added, position)
        self.fields = with_inner_fields(self.fields, outside, fields)

    def drop(self, change: DropColumn) -> None:
        try:
            edit_field(self.fields, change.path, lambda found: found)
        except ColumnNotFoundError:
            if change.if_exists:
                return
            raise
        self._refuse_keys(change.path, "dropped")
        drop_from_options(self.options, self.fields, change.path)
        left = edit_neighbours(self.fields, change.path, _without)
        if not inner_fields(left, change.path[:-1]):
            raise InputError(f"column {spelled(change.path)!r} cannot be dropped: no other would be left")
        self.fields = left

    def rename(self, change: RenameColumn) -> None:
        path, name = change.path, change.name
        if path[-1] == name:
            return
        self._refuse_partition(path, "renamed")
        inside = inner_fields(self.fields, path[:-1])
        if any(found.name.lower() == name.lower() and found.name != path[-1] for found in inside):
            raise AlreadyExistsError(f"there is a column {spelled((*path[:-1], name))!r} already")
        position_of(inside, path[-1], path[:-1])
        rename_in_options(self.options, self.fields, path, name)
        if len(path) == 1:
            self.primary_keys = tuple(name if key == path[0] else key for key in self.primary_keys)
        self.fields = edit_field(self.fields, path, lambda found: replace(found, name=name))

    def change_type(self, change: ChangeType) -> None:
        self._refuse_keys(change.path, "given another type")

        def widened(found: DataField) -> DataField:
            wanted = change.type.with_nullable(found.type.nullable)
            if not can_widen(found.type, wanted):
                raise UnsupportedError(
                    f"column {spelled(change.path)!r} of type {found.type} cannot become {wanted}: some "
                    "values would be lost; add a column of the new type and fill it"
                )
            widened = replace(found, type=wanted)
            default_value(widened)  # it must be one of the new type too
            return widened

        self.fields = edit_field(self.fields, change.path, widened)

    def change_nullability(self, change: ChangeNullability) -> None:
        if change.nullable and change.path[0] in self.primary_keys and len(change.path) == 1:
            raise InputError(f"column {change.path[0]!r} cannot hold nulls: it is part of the primary key")

        def changed(found: DataField) -> DataField:
            if self.has_rows and found.type.nullable and not change.nullable:
                raise InputError(
                    f"column {spelled(change.path)!r} cannot become NOT NULL: its rows may hold nulls"
                )
            return replace(found, type=found.type.with_nullable(change.nullable))

        self.fields = edit_field(self.fields, change.path, changed)

    def change_comment(self, change: ChangeComment) -> None:
        comment = change.description
        self.fields = edit_field(self.fields, change.path, lambda found: replace(found, description=comment))

    def change_default(self, change: ChangeDefault) -> None:
        if len(change.path) > 1:
            raise InputError(f"{spelled(change.path)} is inside a column: only a whole column has a DEFAULT")

        def changed(found: DataField) -> DataField:
            return with_stored_default(replace(found, default=change.default))

        self.fields = edit_field(self.fields, change.path, changed)

    def move(self, change: MoveColumn) -> None:
        *outside, name = change.path
        inside = inner_fields(self.fields, outside)
        moved = inside[position_of(inside, name, outside)]
        rest = tuple(found for found in inside if found is not moved)
        self.fields = with_inner_fields(self.fields, outside, _placed(rest, moved, change.position))

    # --- options -----------------------------------------------------------------------------

    def set_option(self, change: SetOption) -> None:
        check_not_set({change.key: change.value})
        before = self.options.get(change.key)
        table_options.validate_option(change.key, change.value)
        if before != change.value:
            self._refuse_fixed(change.key)
        if change.key == table_options.BUCKET.key:
            self._check_rescale(int(change.value))
        if (
            change.key == table_options.ORC_ENCRYPT.key
            and change.value.strip()
            and not (before or "").strip()
        ):
            # From its first encrypted file on, every encrypted file of the table has tags.
            self.options.setdefault(table_options.ORC_INTEGRITY.key, "require")
        self.options[change.key] = change.value

    def remove_option(self, change: RemoveOption) -> None:
        check_not_set({change.key: None})
        if change.key in self.options:
            self._refuse_fixed(change.key)
            if change.key == table_options.BUCKET.key:
                self._check_rescale(table_options.BUCKET.default)
            del self.options[change.key]

    def set_comment(self, change: SetComment) -> None:
        self.comment = change.comment

    def _refuse_fixed(self, key: str) -> None:
        option = table_options.option_of(key)
        change = Change.ANY_TIME if option is None else option.change
        if change is Change.AT_CREATION or (self.has_rows and change is Change.WITHOUT_ROWS):
            raise InputError(
                f"option {key!r} cannot be changed: it decides how rows are stored, and the table has "
                "rows; create another table"
            )

    def _check_rescale(self, count: int) -> None:
        if self.has_rows and (count > 0) != (self.schema.bucket_count > 0):
            raise InputError(
                f"option 'bucket' cannot change from {self.schema.bucket_count} to {count} in a table with "
                "rows: create another table"
            )

    # --- columns that others depend on -------------------------------------------------------

    def _refuse_partition(self, path: ColumnPath, what: str) -> None:
        if path[0] in self.schema.partition_keys:
            raise InputError(f"column {path[0]!r} cannot be {what}: it is a partition column")

    def _refuse_keys(self, path: ColumnPath, what: str) -> None:
        self._refuse_partition(path, what)
        if path[0] in self.primary_keys:
            raise InputError(f"column {path[0]!r} cannot be {what}: it is part of the primary key")
        option = columns_in_lists(self.options).get(path[0])
        if option is not None:
            raise InputError(f"column {path[0]!r} cannot be {what}: option {option!r} names it")


def _placed(inside: Fields, added: DataField, position: Position) -> Fields:
    if position.after is None:
        return (added, *inside)
    index = position_of(inside, position.after) + 1
    return (*inside[:index], added, *inside[index:])


def _without(neighbours: Fields, index: int) -> Fields:
    return (*neighbours[:index], *neighbours[index + 1 :])


_APPLY: dict[type, Callable[[_Alteration, Any], None]] = {
    AddColumn: _Alteration.add,
    DropColumn: _Alteration.drop,
    RenameColumn: _Alteration.rename,
    ChangeType: _Alteration.change_type,
    ChangeNullability: _Alteration.change_nullability,
    ChangeComment: _Alteration.change_comment,
    ChangeDefault: _Alteration.change_default,
    MoveColumn: _Alteration.move,
    SetOption: _Alteration.set_option,
    RemoveOption: _Alteration.remove_option,
    SetComment: _Alteration.set_comment,
}
