"""The command `lockgate orc verify`: checks that a file is as written, and that it decodes."""

from __future__ import annotations

import argparse
import sys
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lockgate.cli.command_parts import KEYS_HELP, add_command, answer, existing
from lockgate.cli.exposure_output import is_table, look
from lockgate.cli.progress import Progress
from lockgate.errors import CorruptFileError, LockgateError, MaskedDataWarning

if TYPE_CHECKING:
    from lockgate.framework.keys import KeyProvider

_SHOWN = 5


@dataclass
class FileVerdict:
    """The result for one file; `ok` is False for damage, and if the check itself failed."""

    file: str
    status: str
    detail: str
    bytes_checked: int = 0
    rows_decoded: int | None = None
    damage: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Say whether no damage was found, and the check itself did not fail."""
        return self.status in ("verified", "absent", "unverified")

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {**vars(self), "ok": self.ok}

    def __str__(self) -> str:
        lines = [f"{self.file}: {self.status} ({self.detail})", *self.damage[:_SHOWN]]
        if len(self.damage) > _SHOWN:
            lines.append(f"and {len(self.damage) - _SHOWN} more places")
        text = "\n    ".join(lines)
        return "".join(
            each if each.isprintable() or each == "\n" else "\N{REPLACEMENT CHARACTER}" for each in text
        )


def add_verify(commands: Any) -> None:
    """Add `verify` to the subcommands of `lockgate orc`."""
    parser = add_command(
        commands,
        "verify",
        _verify,
        "check that files are unchanged, or at least that they decode",
        """
        lockgate orc verify people.orc --keys keys.json
        lockgate orc verify *.orc --keys keys.json --require       # also fail if a file has no tags
        lockgate orc verify people.orc --keys keys.json --json
        lockgate orc verify warehouse/hr.db/people                 # is nothing left in the clear?

        verified    every byte is as a holder of the key wrote it
        absent      the file has no tags; all its values were decoded, which does not show whether they were
                    changed
        unverified  it has tags, but you hold no key that opens them; the parts that need no key decode
        damaged     bytes changed, or values do not decode: exit code 1

        For a table's folder it lists the files that show values of encrypted columns; if there are any, the
        exit code is 1.
        """,
    )
    parser.add_argument(
        "files", metavar="FILE", nargs="+", help="an ORC file, encrypted or not, or a table's folder"
    )
    parser.add_argument("--keys", metavar="KEYS", help=f"{KEYS_HELP}; one key of each file is enough")
    parser.add_argument(
        "--require", action="store_true", help="exit with 1 unless every file is verified by its tags"
    )
    parser.add_argument(
        "--deadline",
        type=_seconds,
        default=5.0,
        metavar="SECONDS",
        help="how long a file without tags may take to decode, plus a second per 16 MiB (default: 5)",
    )


def _verify(options: argparse.Namespace) -> int:
    from lockgate.framework.keys import provider_from

    provider = provider_from(options.keys)
    failed = False
    for path in options.files:
        try:
            if is_table(path):
                failed |= _shows(options, path)
                continue
            verdict = _verdict(path, provider, options.deadline)
        except LockgateError as error:
            # Such as another key of that name: no damage, but no answer either. Others may still have one.
            if options.json:
                answer(options, FileVerdict(path, "failed", str(error)).to_dict(), "")
            else:
                print(f"lockgate: {error}", file=sys.stderr)
            failed = True
            continue
        answer(options, verdict.to_dict(), str(verdict))
        failed |= not verdict.ok or (options.require and verdict.status != "verified")
    return 1 if failed else 0


def _shows(options: argparse.Namespace, path: str) -> bool:
    """Say whether a table's folder shows values of encrypted columns, and print which files do."""
    found, text = look(path)
    answer(options, {**found, "ok": not found["readable"]}, text)
    return bool(found["readable"])


def _verdict(path: str, keys: KeyProvider, deadline: float) -> FileVerdict:
    from lockgate.framework.orc import verify_file

    try:
        with Progress(f"verifying {existing(path)}") as progress:
            report = verify_file(path, keys, progress=progress.show)
        if report.status == "verified":
            detail = f"{report.size:,} bytes, {report.tags:,} tags"
            return FileVerdict(path, "verified", detail, report.checked)
        if report.damage:
            places = [str(each) for each in report.damage]
            return FileVerdict(path, "damaged", "it is not as it was written", report.checked, None, places)
        rows = _decode(path, keys, deadline)
    except CorruptFileError as error:
        return FileVerdict(path, "damaged", str(error))
    why = "no tags" if report.status == "absent" else "no key that opens its tags is held"
    detail = f"{why}; all {rows:,} rows decode, which does not show whether values were changed"
    return FileVerdict(path, report.status, detail, rows_decoded=rows)


def _decode(path: str, keys: KeyProvider, deadline: float) -> int:
    """Decode everything in a child process; how many rows there are."""
    from lockgate.framework.orc import EncryptedOrcFile, Isolation

    rows = 0
    with (
        warnings.catch_warnings(),
        EncryptedOrcFile(path, keys, timestamp_unit="us", isolate=Isolation(deadline)) as file,
        Progress(f"decoding {path}") as progress,
    ):
        warnings.simplefilter("ignore", MaskedDataWarning)
        for batch in file.iter_batches():
            rows += batch.num_rows
            progress.show(rows, file.num_rows)
    return rows


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return seconds
