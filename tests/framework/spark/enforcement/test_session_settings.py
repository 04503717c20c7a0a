"""Every setting of the installed Spark is judged: the server's, free, or refused where it could matter."""

from __future__ import annotations

import pytest

from lockgate.framework.spark.enforcement.session_settings import is_fenced, is_judged, kind_of


@pytest.mark.parametrize(
    "setting",
    [
        "spark.lockgate.user",
        "SPARK.SQL.Catalog.lake",
        "spark.sql.extensions",
        "fs.s3a.secret.key",
        "hadoop.security.key.provider.path",
        "spark.sql.execution.pyspark.python",
        "spark.sql.legacy.useV1Command",
    ],
)
def test_settings_that_decide_about_access_are_fenced(setting: str) -> None:
    assert is_fenced(setting)


@pytest.mark.parametrize(
    ("setting", "kind"),
    [
        ("spark.sql.shuffle.partitions", "free"),
        ("spark.sql.adaptive.enabled", "free"),
        ("spark.sql.parquet.compression.codec", "free"),
        ("spark.sql.parquet.int96TimestampConversion", "meaning"),
        ("spark.sql.optimizer.dynamicPartitionPruning.enabled", "free"),
        ("spark.sql.optimizer.decorrelateInnerQuery.enabled", "meaning"),
        ("spark.sql.ansi.enabled", "meaning"),
        ("spark.sql.ansi.doubleQuotedIdentifiers", "free"),
        ("Spark.SQL.Session.TimeZone", "zone"),
        ("spark.sql.aSettingOfTomorrow", "meaning"),
        ("avro.of.hadoop", "meaning"),
        ("somebody.elses", "meaning"),
        ("variable", "free"),
    ],
)
def test_a_setting_has_the_kind_of_its_longest_family(setting: str, kind: str) -> None:
    assert kind_of(setting) == kind


def test_what_is_not_known_is_not_judged() -> None:
    assert not is_judged("spark.sql.aSettingOfTomorrow")
    assert is_judged("spark.sql.ansi.enabled")
