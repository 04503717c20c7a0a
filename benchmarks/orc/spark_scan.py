"""What encryption and verification cost Spark's executors; Python's reader against Spark's own."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from harness import emit, interleaved, note, ratio

from orc.data import ENCRYPT, Files
from orc.reads import read_encrypted

BENCH = "orc"
CHILD = Path(__file__).with_name("spark_child.py")


def scan_ratio(files: Files, repetitions: int) -> None:
    """The metric `spark_encrypted_scan_ratio`: tables with and without encryption through the connector.

    Elapsed time of whole scans into nothing, two tasks at a time, in turns in one fresh JVM, tags verified;
    the same in seconds of CPU is `spark_encrypted_scan_cpu_ratio`.
    """
    note(f"scanning {files.rows:,} rows of {files.codec} through the connector")
    found = _child("connector", files, repetitions)
    plain, encrypted = found["plain"], found["encrypted"]
    for metric, clock in (("spark_encrypted_scan_ratio", "wall"), ("spark_encrypted_scan_cpu_ratio", "cpu")):
        baseline = f"the plain table in {median(plain[clock]):.2f} s ({clock})"
        emit(BENCH, files.metric(metric), ratio(encrypted[clock], plain[clock]), "ratio", baseline)


def rows_per_core(files: Files, repetitions: int) -> None:
    """The metric `rows_per_core_vs_spark_encrypted`: rows for each second of CPU, Python's over Spark's own.

    Both read all columns of the same encrypted file: Spark by its own ORC source in a fresh JVM, Python with
    the tags verified, which Spark does not know.
    """
    note(f"reading {files.rows:,} rows of {files.codec} by Spark's own source, and by Python")
    spark = median(_child("native", files, repetitions)["native"]["cpu"])
    python = interleaved({"python": lambda: read_encrypted(files)}, repetitions, clock=time.process_time)
    rows = files.rows / spark
    value = files.rows / median(python["python"]) / rows
    emit(
        BENCH, files.metric("rows_per_core_vs_spark_encrypted"), value, "ratio", f"Spark: {rows:,.0f} rows/s"
    )


def _child(scan: str, files: Files, repetitions: int) -> dict[str, Any]:
    folder = tempfile.mkdtemp(prefix="spark-", dir=files.plain.parent)
    task = {
        "scan": scan,
        "folder": folder,
        "codec": files.codec,
        "plain": str(files.plain),
        "encrypted": str(files.encrypted),
        "encrypt": ENCRYPT,
        "repetitions": repetitions,
        # Spark's own source needs the master keys themselves; these were made for this run.
        "keys": {
            f"{name}@{version}": base64.b64encode(key).decode()
            for (name, version), key in files.keys._keys._keys.items()
        },
    }
    try:
        done = subprocess.run(
            [sys.executable, str(CHILD)], input=json.dumps(task), check=True, capture_output=True, text=True
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
