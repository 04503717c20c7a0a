"""Exposures in sentences: what needs the files, and how to remove them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from lockgate.framework.store.confidential.exposures import ExposedState, Exposure, Where
from lockgate.framework.store.tables.table import Table


def exposure_reasons(table: Table, found: Sequence[Exposure]) -> list[str]:
    """Return a sentence for each that keeps files with values in the clear: how many, and what to do."""
    if not found:
        return []
    own, latest = table.identifier.branch, table.snapshot_files.latest_id()
    texts: list[str] = []
    texts += _newest(found, ExposedState(own, latest), table)
    texts += _older(found, own, latest, table)
    texts += _tags(found, own)
    texts += _lines(found, own, table)
    return [*texts, *_without_holder(found)]


def _newest(found: Sequence[Exposure], newest: ExposedState, table: Table) -> Iterator[str]:
    held = [each for each in found if newest in each.holders]
    if held:
        yield f"the newest snapshot needs {_counted(held)}: {_call(table)} encrypts them"


def _older(found: Sequence[Exposure], own: str | None, latest: int | None, table: Table) -> Iterator[str]:
    def is_older(holder: ExposedState) -> bool:
        return holder.branch == own and holder.snapshot not in (None, latest)

    held = _held_by(found, is_older)
    ids = {holder.snapshot for each in held for holder in each.holders if is_older(holder)}
    if not held:
        return
    last = max(number for number in ids if number is not None)
    waiting = sorted(name for name, needed in table.consumers().items() if needed <= last)
    how = f"{_call(table)} removes them, once no query reads them"
    if waiting:
        how = f"they go when consumers need them no more ({', '.join(waiting)})"
    yield f"older snapshots up to {last} need {_counted(held)}: {how}"


def _tags(found: Sequence[Exposure], own: str | None) -> Iterator[str]:
    holders = {holder for each in found for holder in each.holders}
    for name in sorted(each.tag for each in holders if each.branch == own and each.tag is not None):
        held = [each for each in found if ExposedState(own, tag=name) in each.holders]
        yield f"tag {name!r} needs {_counted(held)}: delete it, or give drop_tags"


def _lines(found: Sequence[Exposure], own: str | None, table: Table) -> Iterator[str]:
    """Speak of other branches, and in a branch of the table itself."""
    branches = {holder.branch for each in found for holder in each.holders} - {own}
    for branch in sorted(branches, key=str):
        held = [each for each in found if branch in {holder.branch for holder in each.holders}]
        name = f"{table.identifier.namespace}.{table.identifier.table}"
        if branch is None:
            yield f"the table {name} needs {_counted(held)}: call sys.expire_plaintext on it"
        else:
            yield (
                f"branch {branch!r} needs {_counted(held)}: set orc.encrypt there and call "
                f"sys.expire_plaintext on '{name}$branch_{branch}', or delete the branch"
            )


def _without_holder(found: Sequence[Exposure]) -> Iterator[str]:
    schemas = [each for each in found if each.where is Where.SCHEMA]
    orphans = [each for each in found if not each.holders and each.where is not Where.SCHEMA]
    if orphans:
        yield (
            f"nothing refers to {_counted(orphans)}: sys.remove_orphan_files deletes them when they are a "
            "day old; with allow_recent sooner, if nothing writes to the table"
        )
    if schemas:
        yield f"{_counted(schemas)} with a DEFAULT of the column, which stay for good"


def _held_by(found: Iterable[Exposure], is_meant: Callable[[ExposedState], bool]) -> list[Exposure]:
    return [each for each in found if any(map(is_meant, each.holders))]


def _call(table: Table) -> str:
    return f"sys.expire_plaintext on '{table.identifier}'"


def _counted(found: Sequence[Exposure]) -> str:
    """Return such as `2 data files and 1 manifest (ssn)`."""
    kinds = {where: sum(each.where is where for each in found) for where in Where}
    parts = [f"{number} {_plural(where, number)}" for where, number in kinds.items() if number]
    columns = sorted({column for each in found for column in each.columns})
    listed = " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
    return f"{listed} ({', '.join(columns)})"


def _plural(where: Where, number: int) -> str:
    if where is Where.STATISTICS:
        return "statistics file" if number == 1 else "statistics files"
    if where is Where.INDEX:
        return "file index" if number == 1 else "file indexes"
    return where.value if number == 1 else f"{where.value}s"
