"""Java records of the bridge's messages, made of their declaration while the connector is built.

Uses the standard library only, as `build_connector.py` does. Each type of `bridge-messages.json` is a record
of its name in `io.lockgate.spark.messages`; a union is a sealed interface. `Operations` has a constant for
each operation.

A type that is only sent has the types that it extends as parts, so that a request is built of existing
parts: `new DeleteRequest(table, filters)`. A type that is received has all keys itself, since Jackson cannot
read parts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PACKAGE = "io.lockgate.spark.messages"
FOLDER = PACKAGE.replace(".", "/")
PRIMITIVES = {"whole": "long", "number": "double", "boolean": "boolean"}
OBJECTS = {"text": "String", "whole": "Long", "number": "Double", "boolean": "Boolean", "any": "JsonNode"}
# What `messages.shapes` calls values of another kind.
KINDS = {
    "text": "text",
    "list": "list",
    "map": "object",
    "type": "object",
    "tuple": "list",
    "either": "value",
}
KEYWORDS = {"default", "do"}
# A question with this key is asked in the session that got the grant.
GRANT = "grant"
IMPORTS = (
    "com.fasterxml.jackson.annotation.JsonProperty",
    "com.fasterxml.jackson.annotation.JsonSetter",
    "com.fasterxml.jackson.annotation.JsonUnwrapped",
    "com.fasterxml.jackson.annotation.Nulls",
    "com.fasterxml.jackson.databind.JsonDeserializer",
    "com.fasterxml.jackson.databind.JsonNode",
    "com.fasterxml.jackson.databind.annotation.JsonDeserialize",
    "java.io.Serializable",
    "java.util.List",
    "java.util.Map",
    "java.util.Set",
)
RECORD = """\
/** The message {name}. */
@JsonDeserialize(using = JsonDeserializer.None.class)
public record {name}({components})
    implements {interfaces} {{
  public {name} {{
{checks}  }}
{members}}}
"""
UNION = """\
/** One of several messages, which fixed texts in them or their keys tell apart. */
@JsonDeserialize(using = {name}.Reader.class)
public sealed interface {name} extends Serializable permits {forms} {{
  /** Reads the form that a message has. */
  final class Reader extends FormReader<{name}> {{
    private static final long serialVersionUID = 1;

    Reader() {{
      super({readers});
    }}
  }}
}}
"""
OPERATIONS = """\
/** The operations of Python, each with its request and its answer. */
public final class Operations {{
{constants}
  private Operations() {{}}
}}
"""


def sources(declaration: str) -> dict[str, str]:
    """Return the Java sources of a declaration by their paths below the root of packages."""
    written = _Records(json.loads(declaration)).sources()
    return {f"{FOLDER}/{name}.java": text for name, text in sorted(written.items())}


def write(declaration: str, folder: Path) -> dict[str, Path]:
    """Write the sources of a declaration into a folder, and return their paths by those below it."""
    written = {}
    for name, text in sources(declaration).items():
        written[name] = folder / name
        written[name].parent.mkdir(parents=True, exist_ok=True)
        written[name].write_text(text, encoding="utf-8")
    return written


def _rule(shape: Any) -> tuple[str, Any]:
    ((kind, inside),) = ((shape, None),) if isinstance(shape, str) else shape.items()
    return kind, inside


def _inside(shape: Any) -> Iterator[Any]:
    kind, inside = _rule(shape)
    if kind in ("list", "map", "null or"):
        yield inside
    elif kind in ("either", "tuple"):
        yield from inside


def _camel(key: str) -> str:
    first, *others = key.split("_")
    name = first + "".join(each.capitalize() for each in others)
    return f"{name}_" if name in KEYWORDS else name


def _is_nullable(shape: Any) -> bool:
    return _rule(shape)[0] in ("null or", "any")


def _java(shape: Any, *, boxed: bool = False) -> str:
    kind, inside = _rule(shape)
    if kind == "null or":
        return _java(inside, boxed=True)
    if kind == "type":
        return str(inside)
    if kind == "list":
        return f"List<{_java(inside, boxed=True)}>"
    if kind == "map":
        return f"Map<String, {_java(inside, boxed=True)}>"
    if kind == "is":
        return "String"
    if kind in ("tuple", "either"):
        return "JsonNode"
    return OBJECTS[kind] if boxed else PRIMITIVES.get(kind, OBJECTS[kind])


def _holds_null(shape: Any) -> bool:
    """Return whether the elements of a collection may be null, at any depth."""
    kind, inside = _rule(shape)
    if kind == "null or":
        return _holds_null(inside)
    return kind in ("list", "map") and (_is_nullable(inside) or _holds_null(inside))


class _Records:
    def __init__(self, declaration: dict[str, Any]) -> None:
        self.types = declaration["types"]
        self.operations = {
            name: each for name, each in declaration["operations"].items() if name != "envelope"
        }
        answers = [self._names(each["answer"]) for each in self.operations.values()]
        self.received = set().union(*answers)
        self.composed = {
            name for name, each in self.types.items() if each.get("bases") and name not in self.received
        }

    def sources(self) -> dict[str, str]:
        texts = {
            name: self._union(name) if "forms" in each else self._record(name)
            for name, each in self.types.items()
        }
        texts["Operations"] = self._operations()
        return {name: _file(text) for name, text in texts.items()}

    def _names(self, shape: Any) -> set[str]:
        """Return the types that a message holds."""
        found: set[str] = set()
        waiting = [shape]
        while waiting:
            each = waiting.pop()
            waiting += _inside(each)
            kind, name = _rule(each)
            if kind == "type" and name not in found:
                found.add(name)
                kind = self.types[name]
                waiting += [{"type": form} for form in kind.get("forms", ())]
                waiting += self._fields(name).values()
        return found

    def _fields(self, name: str) -> dict[str, Any]:
        """Return the shapes of all keys of a type."""
        kind = self.types[name]
        found: dict[str, Any] = {}
        for base in kind.get("bases", ()):
            found |= self._fields(base)
        found |= kind.get("fields", {})
        return found

    def _record(self, name: str) -> str:
        kind = self.types[name]
        parts = kind["bases"] if name in self.composed else []
        fields = kind["fields"] if parts else self._fields(name)
        components = [f"@JsonUnwrapped {base} {base[0].lower()}{base[1:]}" for base in parts]
        components += [
            f"{_annotations(key, shape)} {_java(shape)} {_camel(key)}" for key, shape in fields.items()
        ]
        checks = [f'required({base[0].lower()}{base[1:]}, "{base}", "object");' for base in parts]
        checks += [check for key, shape in fields.items() for check in _checks(key, shape)]
        interfaces = [union for union, each in self.types.items() if name in each.get("forms", ())]
        interfaces += ["Granted"] if GRANT in self._fields(name) else []
        return RECORD.format(
            name=name,
            components="\n    " + ",\n    ".join(components) if components else "",
            interfaces=", ".join(interfaces or ["Serializable"]),
            checks="".join(
                f"    Checks.{each}\n" if each[0] != "=" else f"    {each[1:]}\n" for each in checks
            ),
            members=self._short_constructor(name, fields)
            + self._inherited_accessors(parts)
            + self._changed_copies(name, parts, fields),
        )

    def _short_constructor(self, name: str, fields: dict[str, Any]) -> str:
        """Return the constructor without the fixed texts of a form."""
        fixed = {key for key, shape in fields.items() if _rule(shape)[0] == "is"}
        if not fixed:
            return ""
        others = [f"{_java(shape)} {_camel(key)}" for key, shape in fields.items() if key not in fixed]
        values = [f'"{_rule(shape)[1]}"' if key in fixed else _camel(key) for key, shape in fields.items()]
        return f"\n  public {name}({', '.join(others)}) {{\n    this({', '.join(values)});\n  }}\n"

    def _changed_copies(self, name: str, parts: list[str], fields: dict[str, Any]) -> str:
        """Return the methods of a sent type that return it with another value of one component."""
        if name in self.received:
            return ""
        kinds = {f"{base[0].lower()}{base[1:]}": base for base in parts}
        kinds |= {_camel(key): _java(shape) for key, shape in fields.items() if _rule(shape)[0] != "is"}
        every = [*(f"{base[0].lower()}{base[1:]}" for base in parts), *map(_camel, fields)]
        text = ""
        for each, kind in kinds.items():
            text += f"\n  public {name} with{each[0].upper()}{each[1:]}({kind} {each}) {{\n"
            text += f"    return new {name}({', '.join(every)});\n  }}\n"
        return text

    def _inherited_accessors(self, parts: list[str]) -> str:
        text = ""
        for base in parts:
            own = self.types[base]["bases"] if base in self.composed else []
            passed = {each: {"type": each} for each in self._all_parts(base)} if own else {}
            for each in passed:
                part = f"{each[0].lower()}{each[1:]}"
                text += (
                    f"\n  public {each} {part}() {{\n    return {base[0].lower()}{base[1:]}.{part}();\n  }}\n"
                )
            for key, shape in self._fields(base).items():
                text += f"\n  public {_java(shape)} {_camel(key)}() {{\n"
                text += f"    return {base[0].lower()}{base[1:]}.{_camel(key)}();\n  }}\n"
        return text

    def _all_parts(self, name: str) -> list[str]:
        parts = self.types[name]["bases"] if name in self.composed else []
        return [*parts, *(each for part in parts for each in self._all_parts(part))]

    def _union(self, name: str) -> str:
        forms = self.types[name]["forms"]
        readers = []
        for form in forms:
            fields = self._fields(form)
            fixed = [f'"{key}", "{_rule(each)[1]}"' for key, each in fields.items() if _rule(each)[0] == "is"]
            keys = ", ".join(f'"{key}"' for key in fields)
            readers.append(
                f"\n              new Form({form}.class, Set.of({keys}), Map.of({', '.join(fixed)}))"
            )
        return UNION.format(
            name=name, forms=", ".join(forms), readers=f"{name}.class, List.of(" + ",".join(readers) + ")"
        )

    def _operations(self) -> str:
        constants = []
        for name, each in self.operations.items():
            request, answer = _java(each["request"], boxed=True), _java(each["answer"], boxed=True)
            constant = re.sub(r"\W", "_", name).upper()
            nullable = "true" if _is_nullable(each["answer"]) else "false"
            constants.append(
                f"  public static final Operation<{request}, {answer}> {constant} =\n"
                f'      new Operation<>("{name}", new TypeReference<{answer}>() {{}}, {nullable});\n'
            )
        return OPERATIONS.format(constants="\n".join(constants))


def _annotations(key: str, shape: Any) -> str:
    nullable = "\n        @JsonSetter(contentNulls = Nulls.SET)" if _holds_null(shape) else ""
    return f'@JsonProperty(value = "{key}", required = true){nullable}'


def _checks(key: str, shape: Any) -> Iterator[str]:
    """Return statements of a constructor: what must not be null, what is fixed, and copies of collections."""
    kind, inside = _rule(shape)
    field = _camel(key)
    if kind == "is":
        yield f'fixed({field}, "{key}", "{inside}");'
    elif kind in KINDS:
        yield f'required({field}, "{key}", "{KINDS[kind]}");'
    rule, inside = _rule(inside) if kind == "null or" else (kind, inside)
    if rule in ("list", "map"):
        yield f"={field} = Checks.copy({field});"
        if rule == "list" and _holds_null(inside) and not _is_nullable(inside):
            yield f'elements({field}, "{key}[]");'
        elif rule == "map" and _holds_null(inside) and not _is_nullable(inside):
            yield f'elements({field}.values(), "{key}.*");'


def _file(body: str) -> str:
    used = [each for each in IMPORTS if re.search(rf"\b{each.rpartition('.')[2]}\b", body)]
    if "TypeReference" in body:
        used.append("com.fasterxml.jackson.core.type.TypeReference")
    imports = "".join(f"import {each};\n" for each in used)
    return f"package {PACKAGE};\n\n{imports}\n{body}"
