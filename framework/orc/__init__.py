"""Apache ORC files with encrypted columns: read into Arrow, written from it."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lockgate.framework.orc.audit import Audit, audit_file
    from lockgate.framework.orc.field_ids import with_field_ids
    from lockgate.framework.orc.inspection import Inspection, inspect_file
    from lockgate.framework.orc.integrity import IntegrityReport, verify_file
    from lockgate.framework.orc.isolation import Isolation
    from lockgate.framework.orc.options import Encryption, Mask, parse_encrypt, parse_encryption, parse_mask
    from lockgate.framework.orc.read_report import ReadReport
    from lockgate.framework.orc.reader import MASKED, EncryptedOrcFile
    from lockgate.framework.orc.statistics import ColumnStatistics
    from lockgate.framework.orc.transform import decrypt_file, encrypt_file, rekey
    from lockgate.framework.orc.variants import EncryptedColumn
    from lockgate.framework.orc.writer import OrcWriter, WrittenFile, write_batches, write_table

_MODULES = {
    "MASKED": "reader",
    "Audit": "audit",
    "ColumnStatistics": "statistics",
    "EncryptedColumn": "variants",
    "EncryptedOrcFile": "reader",
    "Encryption": "options",
    "Inspection": "inspection",
    "IntegrityReport": "integrity",
    "Isolation": "isolation",
    "Mask": "options",
    "OrcWriter": "writer",
    "ReadReport": "read_report",
    "WrittenFile": "writer",
    "audit_file": "audit",
    "decrypt_file": "transform",
    "encrypt_file": "transform",
    "inspect_file": "inspection",
    "parse_encrypt": "options",
    "parse_encryption": "options",
    "parse_mask": "options",
    "rekey": "transform",
    "verify_file": "integrity",
    "with_field_ids": "field_ids",
    "write_batches": "writer",
    "write_table": "writer",
}

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


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
