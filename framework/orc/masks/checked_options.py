"""Parsing `orc.encrypt` and `orc.mask` together, with checks against a schema."""

from __future__ import annotations

import pyarrow as pa

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import OptionError
from lockgate.framework.orc.encryption.encryption_options import Encryption, parse_encrypt, parse_mask
from lockgate.framework.orc.format.column_paths import ColumnTree
from lockgate.framework.orc.masks.masks import check_masks


@checked_arguments
def parse_encryption(encrypt: str | None, mask: str | None, schema: pa.Schema) -> Encryption:
    """Parse both options, and check them against `schema`.

    Raises `OptionError` for a mask of a column that is not encrypted, for an unknown mask, wrong parameters
    or an unsupported column type, and for an encrypted column inside another one.
    """
    keys = parse_encrypt(encrypt, schema)
    tree = ColumnTree(schema)
    roots = [tree.find("orc.encrypt", name) for name in keys]
    for root in roots:
        for other in roots:
            if other is not root and root.number in other.numbers:
                raise OptionError(
                    f"orc.encrypt: {root.name!r} is a part of {other.name!r}, which is encrypted as a whole; "
                    "name only one of the two"
                )
    masks = parse_mask(mask, schema)
    for name in masks:
        column = tree.find("orc.mask", name)
        if not any(column.number in root.numbers for root in roots):
            raise OptionError(
                f"orc.mask: column {name!r} is not encrypted, so a mask would replace its values for good; "  # noqa: S608 - a sentence, no SQL
                f"name it in orc.encrypt as well"
            )
    encryption = Encryption(keys, masks)
    check_masks(encryption, tree)
    return encryption
