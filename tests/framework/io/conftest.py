"""An S3-compatible store on this machine."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from s3_server import S3Server

from lockgate.framework.store import Catalog


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """A store that honours conditional writes."""
    server = S3Server()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def bucket(s3: S3Server) -> str:
    """The name of a new bucket."""
    name = f"bucket-{uuid.uuid4().hex[:12]}"
    s3.make_bucket(name)
    s3.requests.clear()
    return name


@pytest.fixture
def s3_catalog(s3: S3Server, bucket: str) -> Catalog:
    """A warehouse in a new bucket, with a database `db`."""
    catalog = Catalog(f"s3://{bucket}/warehouse", options=s3.options())
    catalog.create_namespace("db")
    return catalog
