"""The command `lockgate jar`: which jar `spark-submit`, `spark-sql` and servers start with."""

from __future__ import annotations

import argparse

from lockgate.framework.spark import jar, maven_coordinates

JAR_EXAMPLES = """examples:
  spark-submit --jars $(lockgate jar) ...
  spark-sql --packages $(lockgate jar --spark 4.1 --maven) ...
"""


def add_jar(parser: argparse.ArgumentParser) -> None:
    """Add the options of `lockgate jar`."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--spark", metavar="VERSION", help="the version of Spark, such as 4.1 or 4.1.0-amzn-0")
    which.add_argument("--spark-home", metavar="PATH", help="the folder of a Spark")
    parser.add_argument("--maven", action="store_true", help="print the coordinates of the Maven artifact")
    parser.set_defaults(run=_print_jar)


def _print_jar(options: argparse.Namespace) -> int:
    print((maven_coordinates if options.maven else jar)(options.spark, spark_home=options.spark_home))
    return 0
