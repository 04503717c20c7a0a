"""Tags that show whether the bytes of an encrypted ORC file are those that were written.

The construction is published in docs/integrity.md. Other readers ignore the tags.
"""

from __future__ import annotations

from lockgate.framework.orc.integrity.authenticate import MODES, Mode, Status, authenticate, check_mode
from lockgate.framework.orc.integrity.header import ATTRIBUTE, Header, find_header
from lockgate.framework.orc.integrity.mac import GRANULE, Mac
from lockgate.framework.orc.integrity.source import VerifyingSource
from lockgate.framework.orc.integrity.tag_maker import TagMaker, forget_tags
from lockgate.framework.orc.integrity.verify import Damage, IntegrityReport, verify_file

__all__ = [
    "ATTRIBUTE",
    "GRANULE",
    "MODES",
    "Damage",
    "Header",
    "IntegrityReport",
    "Mac",
    "Mode",
    "Status",
    "TagMaker",
    "VerifyingSource",
    "authenticate",
    "check_mode",
    "find_header",
    "forget_tags",
    "verify_file",
]
