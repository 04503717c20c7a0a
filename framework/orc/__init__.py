"""Apache ORC files with encrypted columns: read into Arrow, written from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.lazy_names import lazy_attributes

if TYPE_CHECKING:
    from lockgate.framework.orc.encryption.encryption_options import (
        Encryption,
        Mask,
        parse_encrypt,
        parse_mask,
    )
    from lockgate.framework.orc.encryption.plaintext_marks import MARK, plaintext_message, suggested_entries
    from lockgate.framework.orc.encryption.variants import EncryptedColumn
    from lockgate.framework.orc.format.column_paths import ColumnTree, spell, split
    from lockgate.framework.orc.format.field_ids import with_field_ids
    from lockgate.framework.orc.format.orc_statistics import ColumnStatistics
    from lockgate.framework.orc.integrity.authenticate import Mode
    from lockgate.framework.orc.integrity.verify import IntegrityReport, verify_file
    from lockgate.framework.orc.isolation.isolation import Isolation
    from lockgate.framework.orc.masks.checked_options import parse_encryption
    from lockgate.framework.orc.read.read_report import ReadReport
    from lockgate.framework.orc.read.reader import MASKED, EncryptedOrcFile
    from lockgate.framework.orc.sources.file_source import open_source
    from lockgate.framework.orc.tools.audit import Audit, audit_file
    from lockgate.framework.orc.tools.inspection import Inspection, inspect_file
    from lockgate.framework.orc.tools.transform import decrypt_file, encrypt_file, rekey
    from lockgate.framework.orc.write.writer import OrcWriter, WrittenFile, write_batches, write_table


__all__ = [
    "MARK",
    "MASKED",
    "Audit",
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
    "WrittenFile",
    "audit_file",
    "decrypt_file",
    "encrypt_file",
    "inspect_file",
    "open_source",
    "parse_encrypt",
    "parse_encryption",
    "parse_mask",
    "plaintext_message",
    "rekey",
    "spell",
    "split",
    "suggested_entries",
    "verify_file",
    "with_field_ids",
    "write_batches",
    "write_table",
]

__getattr__ = lazy_attributes(
    __name__,
    {
        ".encryption.encryption_options": "Encryption Mask parse_encrypt parse_mask",
        ".encryption.plaintext_marks": "MARK plaintext_message suggested_entries",
        ".encryption.variants": "EncryptedColumn",
        ".format.column_paths": "ColumnTree spell split",
        ".format.field_ids": "with_field_ids",
        ".format.orc_statistics": "ColumnStatistics",
        ".integrity.authenticate": "Mode",
        ".integrity.verify": "IntegrityReport verify_file",
        ".isolation.isolation": "Isolation",
        ".masks.checked_options": "parse_encryption",
        ".read.read_report": "ReadReport",
        ".read.reader": "EncryptedOrcFile MASKED",
        ".sources.file_source": "open_source",
        ".tools.audit": "Audit audit_file",
        ".tools.inspection": "Inspection inspect_file",
        ".tools.transform": "decrypt_file encrypt_file rekey",
        ".write.writer": "OrcWriter WrittenFile write_batches write_table",
    },
)
