"""Elements: what a policy says of one level of a resource, such as `table in {a*, b}` or `not in` it.

Semantics: Ranger's RangerAbstractResourceMatcher, RangerDefaultResourceMatcher, RangerPathResourceMatcher and
RangerURLResourceMatcher.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from lockgate.framework.governance.ranger.matching.globs import glob, may_begin, same
from lockgate.framework.governance.ranger.matching.value_tokens import NO_NAMES, Delimiters, Names

_SCHEME = re.compile(r"[^:]*:/{2,}")
EXPRESSION = "${{"


def flag(options: Mapping[str, Any], name: str, default: bool) -> bool:
    """Return an option that is `true` or `false`, however it is written."""
    value = options.get(name)
    return default if value is None or value == "" else str(value).lower() == "true"


class Element:
    """One level of a policy's resource; `is_any` if it says nothing, `is_dynamic` if it has tokens."""

    def __init__(self, definition: Mapping[str, Any], document: Mapping[str, Any]) -> None:
        """Read what a policy says of a level, by the level's definition in the service definition."""
        options = definition.get("matcherOptions") or {}
        matcher = str(definition.get("matcher") or "").rpartition(".")[2]
        self._is_path, self._is_url = "Path" in matcher, "URL" in matcher
        self.ignore_case = flag(options, "ignoreCase", True)
        self._quotes = tuple(str(options.get("quoteChars") or '"'))
        self._quoted = flag(options, "quotedCaseSensitive", False)
        self._wild = flag(options, "wildCard", True)
        self._separator = str(options.get("pathSeparatorChar") or "/")[0]
        self._tokens = Delimiters.of(options)
        self._expressions = flag(options, "replaceReqExpressions", True)
        marks = self._tokens
        self._special = (
            *("*?" if self._wild else ""),
            *((marks.start, marks.end, marks.escape) if marks else ()),
            *("$" if self._expressions else ""),
        )
        self.excludes = bool(document.get("isExcludes"))
        self._recursive = bool(document.get("isRecursive")) and (self._is_path or self._is_url)
        self._values = [self._read(value) for value in document.get("values") or () if value]
        self.is_any = not self._values or any(map(self._says_nothing, self._values))
        self.is_dynamic = not self.is_any and any(map(self._has_tokens, self._values))
        self._plain = (
            None if self.is_dynamic or self._is_path or self._is_url or self._quoted else self._sets()
        )

    def _read(self, value: str) -> str:
        ends = self._wild and self._recursive and value.endswith(self._separator)
        return f"{value}*" if ends else value

    def _says_nothing(self, value: str) -> bool:
        return self._wild and set(value) == {"*"} and (not self._recursive or value == "*")

    def _has_tokens(self, value: str) -> bool:
        replaced = self._tokens is not None and self._tokens.are_in(value)
        return replaced or (self._expressions and EXPRESSION in value)

    def _is_wild(self, value: str) -> bool:
        return self._wild and ("*" in value or "?" in value)

    def _sets(self) -> tuple[frozenset[str], list[str]]:
        """Return plain values, for one look-up, and globs: most elements are nothing else."""
        exact = (value for value in self._values if not self._is_wild(value))
        return (
            frozenset(value.lower() if self.ignore_case else value for value in exact),
            [value for value in self._values if self._is_wild(value)],
        )

    def matches(self, value: object, scope: str | None = None, names: Names = NO_NAMES) -> bool:
        """Return whether the element covers what a request has at this level: a text, several, or None for
        all.

        `scope` may be SELF_OR_PREFIX (the value may go on) or SELF_OR_CHILD (of paths).
        """
        everything = value in (None, "", "*")
        if self.is_any:
            found = True
        elif everything and scope != "SELF_OR_PREFIX":
            found = False
        else:
            found = self._covers_any(value, scope, names)
        if not self.excludes or (everything and not self.is_any):
            return found
        return not found

    def _covers_any(self, value: object, scope: str | None, names: Names) -> bool:
        if isinstance(value, str):
            if self._plain is not None and scope in (None, "SELF"):
                return self._is_plainly(value, *self._plain)
            return any(self._covers(each, value, scope, names) for each in self._values)
        several = value if isinstance(value, list | tuple | set | frozenset) else ()
        return any(self._covers_any(each, scope, names) for each in several if each is not None)

    def begins(self, value: object) -> bool:
        """Return whether Ranger's index offers the element for a value.

        Of its texts it knows what comes before the first wildcard or token.
        """
        if self.excludes or self.is_any:
            return True
        several = (
            [value] if isinstance(value, str) else value if isinstance(value, list | tuple | set) else ()
        )
        return any(
            self._begins(pattern, each)
            for each in several
            if isinstance(each, str)
            for pattern in self._values
        )

    def _begins(self, pattern: str, value: str) -> bool:
        cuts = [place for mark in self._special if (place := pattern.find(mark)) >= 0]
        known = pattern[: min(cuts, default=len(pattern))]
        if not cuts and not self._recursive:
            return same(known, value, self.ignore_case)
        return same(known, value[: len(known)], self.ignore_case)

    def _is_plainly(self, value: str, exact: frozenset[str], globs: list[str]) -> bool:
        folded = value.lower() if self.ignore_case else value
        return folded in exact or any(glob(each, self.ignore_case)(value) for each in globs)

    def _covers(self, pattern: str, value: str, scope: str | None, names: Names) -> bool:
        wild = self._is_wild(pattern)  # as written: a user called `a*` is no pattern
        text = self._filled(pattern, names)
        ignore = self.ignore_case and not (self._quoted and value.startswith(self._quotes))
        if self._matches_one(text, value, ignore, wild):
            return True
        if scope == "SELF_OR_PREFIX":
            return may_begin(text, value, ignore, wild)
        return scope == "SELF_OR_CHILD" and self._is_path and self._is_child(text, value, ignore, wild)

    def _filled(self, pattern: str, names: Names) -> str:
        if self._expressions and EXPRESSION in pattern and names.resolve is not None:
            pattern = names.resolve(pattern)
        return pattern if self._tokens is None else self._tokens.replaced(pattern, names.tokens)

    def _is_child(self, pattern: str, value: str, ignore: bool, wild: bool) -> bool:
        """Return whether what is asked for is the folder above what the policy names."""
        if self._separator not in pattern:
            return False
        above, value = pattern.rpartition(self._separator)[0], value.rstrip(self._separator)
        return self._matches_one(above, value, ignore, wild) if wild else same(above, value, ignore)

    def _matches_one(self, pattern: str, value: str, ignore: bool, wild: bool) -> bool:
        if not self._recursive:
            return bool(glob(pattern, ignore)(value)) if wild else same(pattern, value, ignore)
        if not wild:
            folder = pattern.removesuffix(self._separator)
            beginning = value[: len(folder) + 1]
            return same(folder, value, ignore) or same(folder + self._separator, beginning, ignore)
        return any(glob(pattern, ignore)(path) for path in self._ways(value))

    def _ways(self, value: str) -> Iterator[str]:
        """Yield a path's folders from the top, and the path; a URL keeps its scheme."""
        head = self._separator if value.startswith(self._separator) else ""
        if self._is_url:
            scheme = _SCHEME.match(value.strip())
            if scheme is None:
                return
            head, value = scheme.group(), value.strip()[scheme.end() :]
        parts = [part for part in value.split(self._separator) if part]
        if not parts:
            yield head + value if self._is_url else value
            return
        for count in range(1, len(parts) + 1):
            yield head + self._separator.join(parts[:count])
        if value.endswith(self._separator):
            yield head + self._separator.join(parts) + self._separator
