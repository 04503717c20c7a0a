"""Confs of buckets, and that no message shows their secrets."""

from __future__ import annotations

import base64
import json
from dataclasses import replace

import pytest

from lockgate.errors import InputError, OptionError
from lockgate.framework.io import S3FileSystem, resolve, storage_confs
from lockgate.framework.io.s3 import make_client
from lockgate.framework.io.s3_settings import S3Encryption, S3Settings

KEYS = {"fs.s3a.access.key": "AK", "fs.s3a.secret.key": "SK"}


def test_confs_of_hadoop() -> None:
    settings = S3Settings.of(
        {
            **KEYS,
            "fs.s3a.session.token": "T",
            "fs.s3a.endpoint": "minio.example:9000",
            "fs.s3a.connection.ssl.enabled": "false",
            "fs.s3a.path.style.access": "TRUE",
            "fs.s3a.connection.maximum": "100",
        },
        "b",
    )
    assert settings == S3Settings("http://minio.example:9000", "us-east-1", True, False, "AK", "SK", "T")


def test_confs_of_spark_are_the_fallback() -> None:
    spark = {f"spark.hadoop.{key}": value for key, value in KEYS.items()}
    assert S3Settings.of(spark, "b").access_key == "AK"
    assert S3Settings.of({**spark, "fs.s3a.access.key": "own"}, "b").access_key == "own"
    assert storage_confs({**spark, "spark.master": "local"}) == KEYS


def test_confs_of_a_bucket_take_precedence() -> None:
    options = {
        **KEYS,
        "fs.s3a.bucket.mine.access.key": "AK2",
        "spark.hadoop.fs.s3a.bucket.mine.secret.key": "SK2",
    }
    mine, other = S3Settings.of(options, "mine"), S3Settings.of(options, "other")
    assert (mine.access_key, mine.secret_key) == ("AK2", "SK2")
    assert (other.access_key, other.secret_key) == ("AK", "SK")


@pytest.mark.parametrize(
    ("endpoint", "region"),
    [
        ("https://s3.eu-central-1.amazonaws.com", "eu-central-1"),
        ("s3.amazonaws.com", None),
        ("https://minio.example", "us-east-1"),
    ],
)
def test_the_region_of_an_endpoint(endpoint: str, region: str | None) -> None:
    assert S3Settings.of({"fs.s3a.endpoint": endpoint}, "b").region == region
    named = {"fs.s3a.endpoint": endpoint, "fs.s3a.endpoint.region": "eu-west-1"}
    assert S3Settings.of(named, "b").region == "eu-west-1"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fs.s3a.access.key": "AK-1"}, r"fs\.s3a\.secret\.key is not"),
        ({"fs.s3a.secret.key": "SK-1"}, r"fs\.s3a\.access\.key is not"),
        ({"fs.s3a.session.token": "T-1"}, "needs"),
        ({"fs.s3a.path.style.access": "perhaps"}, "must be true or false"),
        ({"fs.s3a.endpoint": "ftp://there"}, "http"),
        ({"fs.s3a.encryption.algorithm": "CSE-KMS"}, "use AES256, SSE-KMS, DSSE-KMS or SSE-C"),
        ({"fs.s3a.encryption.algorithm": "SSE-C", "fs.s3a.encryption.key": "SK-1"}, "base64 of 32 bytes"),
        ({"fs.s3a.encryption.algorithm": "SSE-C"}, "base64 of 32 bytes"),
        ({"fs.s3a.encryption.algorithm": "AES256", "fs.s3a.encryption.key": "SK-1"}, "takes no"),
        ({"fs.s3a.encryption.key": "SK-1"}, r"need fs\.s3a\.encryption\.algorithm"),
        ({"fs.s3a.encryption.algorithm": "AES256", "fs.s3a.encryption.context": "a=b"}, "alone"),
        ({"fs.s3a.encryption.algorithm": "SSE-KMS", "fs.s3a.encryption.context": "a"}, "name=value"),
        ({"fs.s3a.acl.default": "PublicRead"}, "not supported"),
        ({"fs.s3a.bucket.b.create.storage.class": "glacier"}, "not supported"),
        ({"spark.hadoop.fs.s3a.assumed.role.arn": "arn:x"}, "not supported"),
        ({"fs.s3a.endpoint": "https://AK-1:SK-1@there"}, "without a user"),
        ({"fs.s3a.accesspoint.arn": "arn:x"}, "not supported"),
        ({"fs.s3a.bucket.b.security.credential.provider.path": "jceks://file/x"}, "not supported"),
        ({"fs.s3a.signing-algorithm": "S3SignerType"}, "not supported"),
        ({"fs.s3a.proxy.workstation": "w"}, "not supported"),
        ({"fs.s3a.aws.credentials.provider": "org.example.Vault"}, "'Vault' is not supported"),
        ({"fs.s3a.aws.credentials.provider": "x.AssumedRoleCredentialProvider"}, "not supported"),
        ({"fs.s3a.proxy.port": "80"}, r"need fs\.s3a\.proxy\.host"),
        ({"fs.s3a.proxy.host": "p", "fs.s3a.proxy.username": "AK-1"}, "go together"),
        ({"fs.s3a.proxy.host": "p", "fs.s3a.proxy.port": "x"}, "a number"),
        ({"fs.s3a.proxy.host": "p@q/"}, "a host"),
        ({"fs.s3a.requester.pays.enabled": "maybe"}, "true or false"),
    ],
)
def test_malformed_confs(options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message) as raised:
        S3Settings.of(options, "b")
    assert not any(secret in str(raised.value) for secret in ("AK-1", "SK-1", "T-1"))


def test_encryption_by_the_store() -> None:
    key = base64.b64encode(bytes(32)).decode()
    older = {"fs.s3a.server-side-encryption-algorithm": "SSE-C", "fs.s3a.server-side-encryption.key": key}
    for options in ({"fs.s3a.encryption.algorithm": "sse-c", "fs.s3a.encryption.key": key}, older):
        settings = S3Settings.of(options, "b")
        customer = {"SSECustomerAlgorithm": "AES256", "SSECustomerKey": bytes(32)}
        assert settings.encryption.of_writes == settings.encryption.of_all == customer
        assert key not in repr(settings)
        assert "SSECustomerKey" not in repr(settings)
    kms = {"fs.s3a.encryption.algorithm": "SSE-KMS", "fs.s3a.encryption.context": "a=b, c=d"}
    found = S3Settings.of({**kms, "fs.s3a.encryption.key": "arn:k"}, "b").encryption
    assert found.of_writes["ServerSideEncryption"] == "aws:kms"
    assert found.of_writes["SSEKMSKeyId"] == "arn:k"
    assert json.loads(base64.b64decode(found.of_writes["SSEKMSEncryptionContext"])) == {"a": "b", "c": "d"}
    assert found.of_all == {}
    assert S3Settings.of({}, "b").encryption == S3Encryption()


@pytest.mark.parametrize(
    ("options", "proxy"),
    [
        ({}, None),
        ({"host": "proxy.example"}, "http://proxy.example:443"),
        ({"host": "proxy.example", "port": "3128", "ssl.enabled": "true"}, "https://proxy.example:3128"),
        ({"host": "[::1]", "port": "80", "username": "u", "password": "a/b@"}, "http://u:a%2Fb%40@[::1]:80"),
    ],
)
def test_the_proxy_is_used(options: dict[str, str], proxy: str | None) -> None:
    settings = S3Settings.of({f"fs.s3a.proxy.{key}": value for key, value in options.items()}, "b")
    assert settings.proxy == proxy
    assert "proxy.example" not in repr(settings)
    config = make_client(replace(settings, region="us-east-1")).meta.config
    assert config.proxies == (None if proxy is None else {"http": proxy, "https": proxy})


def test_names_of_credential_providers() -> None:
    temporary = "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider"
    instance = "software.amazon.awssdk.auth.credentials.InstanceProfileCredentialsProvider"
    for names, anonymous in (
        (f"{temporary},\n {instance}", False),
        ("org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider", True),
    ):
        assert S3Settings.of({"fs.s3a.aws.credentials.provider": names}, "b").anonymous is anonymous


def test_no_secret_is_shown() -> None:
    options = {"fs.s3a.access.key": "AK-1", "fs.s3a.secret.key": "SK-1", "fs.s3a.session.token": "T-1"}
    files, path = resolve("s3://bucket/a/b", options)
    shown = f"{files!r} {S3Settings.of(options, 'bucket')!r} {path} {files.uri(path)}"
    assert not any(secret in shown for secret in ("AK-1", "SK-1", "T-1"))


def test_addresses_of_s3() -> None:
    for address in ("s3://bucket/a//b c%20?#/", "s3a://bucket/a/b c%20?#"):
        files, path = resolve(address, KEYS)
        assert isinstance(files, S3FileSystem)
        assert path == "bucket/a/b c%20?#"
        assert files.uri(path) == "s3a://bucket/a/b c%20?#"
    assert resolve("s3://bucket", KEYS)[1] == resolve("s3://bucket/", KEYS)[1] == "bucket"
    for address in ("s3://", "s3:///key", "s3://user:secret@bucket/key"):
        with pytest.raises(InputError, match="s3://bucket/path") as raised:
            resolve(address, KEYS)
        assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    "confs",
    [
        {"endpoint": "host", "connection.ssl.enabled": "hunter2"},
        {"path.style.access": "hunter2"},
        {"encryption.algorithm": "hunter2"},
        {"encryption.algorithm": "hunter2", "encryption.context": "a=b"},
        {"encryption.algorithm": "SSE-C", "encryption.key": "hunter2"},
        {"endpoint": "https://ann:hunter2@host"},
        {"secret.key": "hunter2"},
    ],
)
def test_no_message_quotes_a_conf(confs: dict[str, str]) -> None:
    with pytest.raises(OptionError, match=r"fs\.s3a\.") as found:
        S3Settings.of({f"fs.s3a.{name}": value for name, value in confs.items()}, "b")
    assert "hunter2" not in str(found.value)


@pytest.mark.parametrize("address", ["none://ann:hunter2@host/path", "hdfs://ann:hunter2@host/a"])
def test_no_message_shows_the_user_of_an_address(address: str) -> None:
    with pytest.raises(InputError, match=r"none://host/path cannot|an address of HDFS") as found:
        resolve(address)
    assert "hunter2" not in str(found.value)
