"""Reading and writing Apache ORC files with encrypted columns as Arrow tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.lazy_names import lazy_attributes

if TYPE_CHECKING:
    from lockgate.framework.orc.encryption.decrypted_columns import (
        MARK,
        exposure_message,
        shown_columns,
        suggested_entries,
        with_mark,
    )
    from lockgate.framework.orc.encryption.encryption_options import (
        Encryption,
        Mask,
        parse_encrypt,
        parse_mask,
    )
    from lockgate.framework.orc.encryption.variants import EncryptedColumn, Variants
    from lockgate.framework.orc.format.column_paths import ELEMENT, KEY, VALUE, ColumnTree, spell, split
    from lockgate.framework.orc.format.field_ids import MAP_KEY, with_field_ids
    from lockgate.framework.orc.format.orc_statistics import ColumnStatistics
    from lockgate.framework.orc.format.tail import read_tail
    from lockgate.framework.orc.integrity.authenticate import Mode
    from lockgate.framework.orc.integrity.header import find_header
    from lockgate.framework.orc.integrity.verify import IntegrityReport, verify_file
    from lockgate.framework.orc.isolation.isolation import Isolation
    from lockgate.framework.orc.masks.checked_options import parse_encryption
    from lockgate.framework.orc.masks.java_support import why_not_java
    from lockgate.framework.orc.masks.masks import ColumnMasks
    from lockgate.framework.orc.read.read_report import ReadReport
    from lockgate.framework.orc.read.reader import MASKED, EncryptedOrcFile
    from lockgate.framework.orc.sources.file_source import open_source
    from lockgate.framework.orc.sources.parallel import in_order, thread_count
    from lockgate.framework.orc.sources.random_access import Source
    from lockgate.framework.orc.tools.audit import Audit, audit_file
    from lockgate.framework.orc.tools.inspection import Inspection, inspect_file
    from lockgate.framework.orc.tools.transform import decrypt_file, encrypt_file, rekey
    from lockgate.framework.orc.write.writer import OrcWriter, WrittenFile, write_batches, write_table


__all__ = [
    "ELEMENT",
    "KEY",
    "MAP_KEY",
    "MARK",
    "MASKED",
    "VALUE",
    "Audit",
    "ColumnMasks",
    "ColumnStatistics",
    "ColumnTree",
    "EncryptedColumn",
    "EncryptedOrcFile",
    "Encryption",
    "Inspection",
    "IntegrityReport",
    "Isolation",
    "Mask",
    "Mode",
    "OrcWriter",
    "ReadReport",
    "Source",
    "Variants",
    "WrittenFile",
    "audit_file",
    "decrypt_file",
    "encrypt_file",
    "exposure_message",
    "find_header",
    "in_order",
    "inspect_file",
    "open_source",
    "parse_encrypt",
    "parse_encryption",
    "parse_mask",
    "read_tail",
    "rekey",
    "shown_columns",
    "spell",
    "split",
    "suggested_entries",
    "thread_count",
    "verify_file",
    "why_not_java",
    "with_field_ids",
    "with_mark",
    "write_batches",
    "write_table",
]

__getattr__ = lazy_attributes(
    __name__,
    {
        ".encryption.encryption_options": "Encryption Mask parse_encrypt parse_mask",
        ".encryption.decrypted_columns": "MARK exposure_message shown_columns suggested_entries with_mark",
        ".encryption.variants": "EncryptedColumn Variants",
        ".format.column_paths": "ColumnTree ELEMENT KEY spell split VALUE",
        ".format.field_ids": "MAP_KEY with_field_ids",
        ".format.orc_statistics": "ColumnStatistics",
        ".format.tail": "read_tail",
        ".integrity.authenticate": "Mode",
        ".integrity.header": "find_header",
        ".integrity.verify": "IntegrityReport verify_file",
        ".isolation.isolation": "Isolation",
        ".masks.checked_options": "parse_encryption",
        ".masks.java_support": "why_not_java",
        ".masks.masks": "ColumnMasks",
        ".read.read_report": "ReadReport",
        ".read.reader": "EncryptedOrcFile MASKED",
        ".sources.file_source": "open_source",
        ".sources.parallel": "in_order thread_count",
        ".sources.random_access": "Source",
        ".tools.audit": "Audit audit_file",
        ".tools.inspection": "Inspection inspect_file",
        ".tools.transform": "decrypt_file encrypt_file rekey",
        ".write.writer": "OrcWriter WrittenFile write_batches write_table",
    },
)
