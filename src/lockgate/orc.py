"""Encrypted ORC files: reading, writing, inspecting, checking and rekeying."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.lazy_names import lazy_attributes

if TYPE_CHECKING:
    from lockgate.framework.orc import (
        MASKED,
        Audit,
        ColumnStatistics,
        EncryptedColumn,
        EncryptedOrcFile,
        Encryption,
        Inspection,
        IntegrityReport,
        Isolation,
        Mask,
        OrcWriter,
        ReadReport,
        WrittenFile,
        audit_file,
        decrypt_file,
        encrypt_file,
        inspect_file,
        parse_encrypt,
        parse_encryption,
        parse_mask,
        rekey,
        verify_file,
        with_field_ids,
        write_batches,
        write_table,
    )

__all__ = [
    "MASKED",
    "Audit",
    "ColumnStatistics",
    "EncryptedColumn",
    "EncryptedOrcFile",
    "Encryption",
    "Inspection",
    "IntegrityReport",
    "Isolation",
    "Mask",
    "OrcWriter",
    "ReadReport",
    "WrittenFile",
    "audit_file",
    "decrypt_file",
    "encrypt_file",
    "inspect_file",
    "parse_encrypt",
    "parse_encryption",
    "parse_mask",
    "rekey",
    "verify_file",
    "with_field_ids",
    "write_batches",
    "write_table",
]

__getattr__ = lazy_attributes(__name__, {"lockgate.framework.orc": " ".join(__all__)})
