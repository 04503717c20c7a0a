"""The declaration of the bridge's messages by the names of their types: the connector's records come from it.

A type is an object: `bases` are the types that it extends, and `fields` are the shapes of its other keys; a
union has `forms` instead. `messages.shapes` says what a shape is, and `{"type": NAME}` stands for a named
one. An operation has the shapes of its `request` and its `answer`.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Union

from lockgate.framework.spark.messages.message_envelope import QuestionJson, ReplyJson
from lockgate.framework.spark.messages.shapes import Shape, shape_of, signature_of

DECLARATION = Path(__file__).resolve().parents[1] / "java" / "META-INF" / "lockgate" / "bridge-messages.json"


def declaration(operations: Mapping[str, Callable[..., object]]) -> str:
    """Return the text of `DECLARATION`: a line for each type and each operation, and for their envelope."""
    named = _NamedTypes()
    declared = {"envelope": named.messages(QuestionJson, ReplyJson, sys.modules[QuestionJson.__module__])}
    for name in sorted(operations):
        signature = signature_of(operations[name])
        if signature is not None:
            module = sys.modules[inspect.unwrap(operations[name]).__module__]
            declared[name] = named.messages(signature["request"], signature["return"], module)
    return f'{{\n"types": {_lines(named.types)},\n"operations": {_lines(declared)}\n}}\n'


def _lines(entries: Mapping[str, object]) -> str:
    lines = [f"{json.dumps(name)}: {json.dumps(entries[name])}" for name in sorted(entries)]
    return "{\n" + ",\n".join(lines) + "\n}"


class _NamedTypes:
    def __init__(self) -> None:
        self.types: dict[str, dict[str, Any]] = {}
        self._known: dict[str, object] = {}

    def messages(self, request: Any, answer: Any, module: ModuleType) -> dict[str, Shape]:
        return {"request": self._shape(request, module), "answer": self._shape(answer, module)}

    def _shape(self, annotation: Any, module: ModuleType) -> Shape:
        if typing.is_typeddict(annotation):
            return {"type": self._dictionary(annotation)}
        origin, inside = typing.get_origin(annotation), typing.get_args(annotation)
        if origin is list:
            return {"list": self._shape(inside[0], module)}
        if origin in (dict, Mapping):
            return {"map": self._shape(inside[1], module)}
        if origin is tuple:
            return {"tuple": [self._shape(each, module) for each in inside]}
        if origin not in (Union, types.UnionType):
            return shape_of(annotation)
        kinds = [each for each in inside if each is not type(None)]
        shape = self._shape(kinds[0], module) if len(kinds) == 1 else self._union(kinds, module)
        return shape if len(kinds) == len(inside) else {"null or": shape}

    def _union(self, kinds: list[Any], module: ModuleType) -> Shape:
        if not all(typing.is_typeddict(each) for each in kinds):
            return {"either": [self._shape(each, module) for each in kinds]}
        names = [name for name, value in vars(module).items() if _forms(value) == kinds]
        if not names:
            raise TypeError(f"a union of messages needs a name in {module.__name__}: {kinds}")
        if self._is_new(names[0], tuple(kinds)):
            self.types[names[0]] = {"forms": [self._dictionary(each) for each in kinds]}
        return {"type": names[0]}

    def _dictionary(self, kind: Any) -> str:
        name = str(kind.__name__)
        if self._is_new(name, kind):
            self.types[name] = {}
            module = sys.modules[kind.__module__]
            bases = [getattr(module, each) for each in _written_bases(module)[name]]
            bases = [each for each in bases if typing.is_typeddict(each)]
            inherited = {key for base in bases for key in typing.get_type_hints(base)}
            fields = {key: each for key, each in typing.get_type_hints(kind).items() if key not in inherited}
            self.types[name] = {
                "bases": [self._dictionary(each) for each in bases],
                "fields": {key: self._shape(each, module) for key, each in fields.items()},
            }
        return name

    def _is_new(self, name: str, kind: object) -> bool:
        if self._known.setdefault(name, kind) != kind:
            raise TypeError(f"two messages have the name {name}: rename one of them")
        return name not in self.types


def _forms(value: object) -> list[Any]:
    is_union = typing.get_origin(value) in (Union, types.UnionType)
    return [each for each in typing.get_args(value) if each is not type(None)] if is_union else []


@cache
def _written_bases(module: ModuleType) -> dict[str, list[str]]:
    """Return the names of the bases of a module's classes: Python 3.11 forgets those of a TypedDict."""
    classes = [each for each in ast.parse(inspect.getsource(module)).body if isinstance(each, ast.ClassDef)]
    return {
        each.name: [base.id for base in each.bases if isinstance(base, ast.Name) and base.id != "TypedDict"]
        for each in classes
    }
