"""The vectors of folders of caches (`tests/fixtures/cache_folders.json`), completed for this host."""

from __future__ import annotations

import json
import os
import pwd
from pathlib import Path
from typing import Any

VECTORS = Path(__file__).parents[1] / "fixtures" / "cache_folders.json"


def cache_folder_cases(temporary: Path) -> list[dict[str, Any]]:
    """Return the cases, for a folder that can hold temporary files."""
    text = VECTORS.read_text()
    filled = {"cwd": str(Path.cwd()), "uid": str(os.getuid()), "temporary": str(temporary)}
    filled["home"] = pwd.getpwuid(os.getuid()).pw_dir
    for name, value in filled.items():
        text = text.replace(f"{{{name}}}", value)
    cases: list[dict[str, Any]] = json.loads(text)
    return cases
