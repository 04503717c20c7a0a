"""The parts of the documentation that are written from the code: between markers, by `./dev docs`.

A part begins with the line `<!-- generated: NAME -->`, or `<!-- generated: NAME ARGUMENT -->`, and ends with
`<!-- end of generated -->`. WRITERS has the function that returns the text of each NAME.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import option_tables
import procedure_tables
import spark_tables

PAGES = sorted((Path(__file__).resolve().parents[2] / "docs").glob("*.md"))
# Each gets the ARGUMENT of its marker, or an empty text.
WRITERS: dict[str, Callable[[str], str]] = {
    "options": option_tables.table,
    "procedure": procedure_tables.tables,
    "sparks": spark_tables.table,
}
END = "<!-- end of generated -->"
PART = re.compile(rf"^(<!-- generated: ([\w-]+) ?(.*?) -->\n)(?:(?!<!--).*\n)*{END}$", re.MULTILINE)


def generated(text: str) -> str:
    """Return the text of a page with its generated parts up to date."""
    return PART.sub(lambda part: f"{part[1]}\n{WRITERS[part[2]](part[3]).strip()}\n\n{END}", text)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(generated(page.read_text()))
