"""The options of a table: one typed entry each, validated when a table is created, altered or opened.

Names and defaults are Paimon's where Paimon has the option, and Apache ORC's for `orc.*`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from lockgate.errors import OptionError, nearest
from lockgate.framework.options import (
    changelog_options,
    clustering_options,
    file_options,
    index_options,
    layout_options,
    merge_options,
    partition_options,
    read_options,
    row_options,
    schema_options,
    snapshot_options,
    tag_options,
)
from lockgate.framework.options.carried_options import CARRIED_OPTIONS
from lockgate.framework.options.option import REFUSED, Effect, Option, T
from lockgate.framework.options.paimon_options import PAIMON_OPTIONS

OWN_OPTIONS: tuple[Option[Any], ...] = tuple(
    {
        option.key: option
        for module in (
            *(layout_options, file_options, merge_options, row_options, snapshot_options, changelog_options),
            *(
                tag_options,
                partition_options,
                clustering_options,
                schema_options,
                read_options,
                index_options,
            ),
        )
        for value in vars(module).values()
        for option in (value if isinstance(value, tuple) else (value,))
        if isinstance(option, Option)
    }.values()
)
ALL_OPTIONS = (*OWN_OPTIONS, *CARRIED_OPTIONS, *PAIMON_OPTIONS)
KNOWN = {option.key: option for option in OWN_OPTIONS if option.pattern is None}
_BY_KEY = {option.key: option for option in ALL_OPTIONS if option.pattern is None}
_BY_PATTERN = [(option.pattern, option) for option in ALL_OPTIONS if option.pattern is not None]

_declared: list[Callable[[], Mapping[str, Option[Any]]]] = []


def declare_by(source: Callable[[], Mapping[str, Option[Any]]]) -> None:
    """Add options of tables: `source` returns them by key, each time that one is looked up."""
    _declared.append(source)


def known_options() -> dict[str, Option[Any]]:
    """Return every option of tables by its key: Lockgate's own, and those that plugins declare."""
    return {**KNOWN, **{key: option for source in _declared for key, option in source().items()}}


def option_of(key: str) -> Option[Any] | None:
    """Return the declaration of a table's option; None for a key that neither Lockgate nor Paimon has."""
    return (
        KNOWN.get(key)
        or next((source()[key] for source in _declared if key in source()), None)
        or _BY_KEY.get(key)
        or _by_pattern(key)
    )


@lru_cache(maxsize=4096)
def _by_pattern(key: str) -> Option[Any] | None:
    return next((option for pattern, option in _BY_PATTERN if pattern.fullmatch(key)), None)


class TableOptions(Mapping[str, str]):
    """The options of one table: a mapping of texts, and typed values by `get_option`."""

    def __init__(self, options: Mapping[str, str] | None = None, *, strict: bool = True) -> None:
        """Take `options`; with `strict`, unknown keys and malformed values raise OptionError.

        Tables of other engines are opened without `strict`, because they may carry options of features that
        are not ours; a malformed value then raises when it is asked for.
        """
        self._options = {str(key): str(value) for key, value in (options or {}).items()}
        if strict:
            for key, value in self._options.items():
                validate_option(key, value)

    def __getitem__(self, key: str) -> str:
        return self._options[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._options)

    def __len__(self) -> int:
        return len(self._options)

    def __repr__(self) -> str:
        return f"TableOptions({self._options!r})"

    def get_option(self, option: Option[T]) -> T:
        """Return the typed value of `option`, its default if it is not set."""
        text = self._options.get(option.key)
        return option.default if text is None else option.value_of(text)

    def with_options(self, changes: Mapping[str, str | None]) -> TableOptions:
        """Return these options with `changes`; None removes one. Raises OptionError for a bad change."""
        for key, value in changes.items():
            if value is not None:
                validate_option(key, value)
        merged = {**self._options, **changes}
        kept = {key: value for key, value in merged.items() if value is not None}
        return TableOptions(kept, strict=False)


def validate_option(key: str, value: str) -> None:
    """Raise OptionError for an unknown key, an option that does nothing or is refused, and a bad value."""
    option = option_of(key)
    if option is None:
        keys = [
            *known_options(),
            *(option.key for option in CARRIED_OPTIONS if option.key.startswith("orc.")),
        ]
        raise OptionError(f"unknown option {key!r}{nearest(key, keys)}")
    if option.effect is Effect.IGNORED:
        raise OptionError(f"option {key!r} is Paimon's and does nothing here ({option.doc}): leave it out")
    if option.effect in REFUSED and (key not in KNOWN or option.has_meaning(value, has_key=True)):
        raise OptionError(f"option {key!r} is Paimon's and not supported here: {option.doc}")
    replace(option, key=key).value_of(value)
