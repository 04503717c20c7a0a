"""Plain sentences of plain values, for a page that people read."""

from __future__ import annotations

from collections.abc import Collection, Mapping


def counted(number: int, one: str, several: str | None = None) -> str:
    """Say a number of things: "1 row", "2,000 rows"."""
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def in_words(value: object) -> str:
    """Say a value: numbers with commas, no value as "none", several one after the other."""
    if value is None or value == ():
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {in_words(each)}" for key, each in value.items()) or "none"
    if isinstance(value, Collection) and not isinstance(value, str | bytes):
        return ", ".join(in_words(each) for each in sorted(value, key=str)) or "none"
    return str(value)


def counts(result: Mapping[str, object]) -> str:
    """Say what a procedure returned: "4 files rewritten" is `files rewritten 4`; what is null is left out."""
    parts = [
        f"{name.replace('_', ' ')} {in_words(value)}" for name, value in result.items() if value is not None
    ]
    return ", ".join(parts) or "nothing to do"
