"""Values of encrypted columns that a table's folder shows, for `lockgate orc inspect` and `verify`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockgate.errors import NotFoundError

if TYPE_CHECKING:
    from lockgate.framework.store import Exposure, Table
    from lockgate.framework.store.confidential.exposures import ExposedState


def is_table(path: str) -> bool:
    """Say whether a path is the folder of a table."""
    return Path(path, "schema").is_dir()


def look(path: str) -> tuple[dict[str, Any], str]:
    """Return the values readable without a key in a table's folder, as JSON and as text.

    Raises NotFoundError if the folder is not inside a database of a warehouse.
    """
    from lockgate.framework.store import exposure_reasons, exposures

    table = _table(path)
    found = exposures(table)
    sentences = exposure_reasons(table, found)
    content = {
        "table": str(table.identifier),
        "folder": path,
        "readable": [_json(each) for each in found],
        "reasons": sentences,
    }
    return content, _text(path, table, found, sentences)


def _table(path: str) -> Table:
    from lockgate.framework.store import Catalog

    folder = Path(path).resolve()
    database = folder.parent
    if database.suffix != ".db":
        raise NotFoundError(f"{path} is not in a folder DATABASE.db of a warehouse")
    return Catalog(database.parent).load_table(f"{database.stem}.{folder.name}")


def _json(shown: Exposure) -> dict[str, Any]:
    holders = [_name(holder) for holder in shown.holders]
    return {
        "where": shown.where.value,
        "path": shown.path,
        "columns": list(shown.columns),
        "needed_by": holders,
    }


def _text(path: str, table: Table, found: list[Exposure], sentences: list[str]) -> str:
    if not found:
        return f"{path}: nothing of {table.identifier} shows a value of an encrypted column"
    lines = [f"{path}: {len(found)} files of {table.identifier} show values of encrypted columns"]
    for shown in found:
        needed = ", ".join(map(_name, shown.holders)) or "nothing"
        lines.append(f"  {shown.path}: {', '.join(shown.columns)} ({shown.where}; needed by {needed})")
    text = "\n".join([*lines, *(f"* {sentence}" for sentence in sentences)])
    return "".join(
        each if each.isprintable() or each == "\n" else "\N{REPLACEMENT CHARACTER}" for each in text
    )


def _name(holder: ExposedState) -> str:
    what = f"snapshot {holder.snapshot}" if holder.tag is None else f"tag {holder.tag}"
    return what if holder.branch is None else f"{what} of branch {holder.branch}"
