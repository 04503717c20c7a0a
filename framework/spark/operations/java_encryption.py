"""Encryption and masks of a table as the tasks' Java takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.framework.options import ORC_ENCRYPT, ORC_MASK

if TYPE_CHECKING:
    from lockgate.framework.store import Table


def java_options(table: Table) -> tuple[str | None, str | None]:
    """Return `orc.encrypt` and `orc.mask` as Java's parser wants them: no blanks, odd names in backticks."""
    from lockgate.framework.orc import ColumnTree, parse_encryption, spell

    schema = table.schema.arrow_schema
    found = parse_encryption(
        table.options.get_option(ORC_ENCRYPT) or None, table.options.get_option(ORC_MASK) or None, schema
    )
    tree = ColumnTree(schema)

    def path(option: str, name: str) -> str:
        return spell(tree.find(option, name).path)

    encrypt = [f"{spell((key,))}:{path('orc.encrypt', name)}" for name, key in found.keys.items()]
    mask = [f"{mask}:{path('orc.mask', name)}" for name, mask in found.masks.items()]
    return ";".join(encrypt) or None, ";".join(mask) or None
