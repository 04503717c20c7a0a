"""The stand-in for a Hadoop KMS, and providers of its keys."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from lockgate.framework.keys import HadoopKmsKeyProvider, KeyAlgorithm, KeyMetadata
from lockgate.framework.net import HttpLimits

PATH = Path(__file__).parents[1] / "fixtures" / "hadoop_kms.py"
PII = KeyMetadata("pii", 2, KeyAlgorithm.AES_CTR_128)
# Tries again at once, but waits for an answer: a busy host answers late, which is no failure.
QUICK = HttpLimits(total=60, waits=(0.01, 0.02))


@cache
def stand_in() -> ModuleType:
    """Return the module of the stand-in, which is a program too and on no path of imports."""
    spec = importlib.util.spec_from_file_location("lockgate_hadoop_kms_stand_in", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Its dataclasses look their module up by name.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def provider(
    kms: Any, user: str = "alice", limits: HttpLimits = QUICK, **options: Any
) -> HadoopKmsKeyProvider:
    """Return a provider that does not wait between its tries."""
    return HadoopKmsKeyProvider(kms.spec(user, **options), limits=limits)
