"""Messages on catalogs and databases."""

from __future__ import annotations

from typing import TypedDict

from lockgate.framework.spark.messages.shared_messages import NamespaceRequest


class HelloRequest(TypedDict):
    """A question that holds nothing."""


class HelloAnswer(TypedDict):
    """The versions of the Python side."""

    version: str
    protocol: int


class OpenRequest(TypedDict):
    """The confs of a catalog, and those that the application `started` with; null: it had none."""

    catalog: str
    options: dict[str, str]
    started: dict[str, str] | None
    fixed: bool


class OpenAnswer(TypedDict):
    """The handle by which later questions name the catalog."""

    handle: str


class CreateNamespaceRequest(NamespaceRequest):
    """A database to make."""

    properties: dict[str, str]


class AlterNamespaceRequest(NamespaceRequest):
    """Properties to set, and with null to remove."""

    changes: dict[str, str | None]


class DropNamespaceRequest(NamespaceRequest):
    """A database to drop, with `cascade` all tables in it too."""

    cascade: bool
