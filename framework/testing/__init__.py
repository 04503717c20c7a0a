"""Suites for authors of plugins: subclass one in your tests, and pytest runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.lazy_names import lazy_attributes

if TYPE_CHECKING:
    from lockgate.framework.testing.commit_suites import (
        CommitParticipantConformance,
        FileCollectorConformance,
    )
    from lockgate.framework.testing.key_provider_suite import KeyProviderConformance, shows
    from lockgate.framework.testing.mask_suite import MaskConformance
    from lockgate.framework.testing.plugin_suites import (
        AuthorizerConformance,
        IndexKindConformance,
        PrincipalConformance,
        PrunerConformance,
    )
    from lockgate.framework.testing.procedure_suite import ProcedureConformance
    from lockgate.framework.testing.source_suite import PushDownConformance


__all__ = [
    "AuthorizerConformance",
    "CommitParticipantConformance",
    "FileCollectorConformance",
    "IndexKindConformance",
    "KeyProviderConformance",
    "MaskConformance",
    "PrincipalConformance",
    "ProcedureConformance",
    "PrunerConformance",
    "PushDownConformance",
    "shows",
]

__getattr__ = lazy_attributes(
    __name__,
    {
        ".commit_suites": "CommitParticipantConformance FileCollectorConformance",
        ".key_provider_suite": "KeyProviderConformance shows",
        ".mask_suite": "MaskConformance",
        ".plugin_suites": "AuthorizerConformance IndexKindConformance PrincipalConformance PrunerConformance",
        ".procedure_suite": "ProcedureConformance",
        ".source_suite": "PushDownConformance",
    },
)
