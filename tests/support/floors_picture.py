"""The floors of the house and the rooms of its parts, drawn from the imports: `docs/architecture.svg`.

`./dev docs` draws it; a test fails when the picture in the repository is not what the imports say.
"""

from __future__ import annotations

import ast
import textwrap
from dataclasses import dataclass
from html import escape
from pathlib import Path

from house import ROOT, floors, imports, part_of, spread_rooms, storeys

PICTURE = ROOT / "docs" / "architecture.svg"
# All doors are one box, and what stands on the lowest floors is used by everybody: lines to it say nothing.
DOORS = ("governance", "keys", "lineage", "orc", "plugins", "tables")
EVERYBODY = {"errors", "lazy_names", "framework.version"}
WIDTH, MARGIN, GAP, RISE = 1120, 16, 22, 36
LINE, HEAD, CHIP = 17, 30, 24
# Leads from rooms to the rooms that they use.
TO = "›"
NARROW = 430.0
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2937 }
.name { font-weight: 600; font-size: 15px }
.room { font: 12px ui-monospace, monospace }
.box { fill: #f8fafc; stroke: #64748b } .chip { fill: #e0e7ff; stroke: none }
.line { stroke: #94a3b8; fill: none; stroke-width: 1.4; marker-end: url(#end) } #end path { fill: #94a3b8 }
@media (prefers-color-scheme: dark) {
  text { fill: #e5e7eb } .box { fill: #1e293b; stroke: #94a3b8 } .chip { fill: #3730a3 }
}
"""


@dataclass
class Box:
    """A part of the house: its name, what it is, its rooms, and where it stands in the picture (pixels)."""

    name: str
    sentence: str
    storeys: list[list[str]]
    spread: list[str]
    x: float = 0
    y: float = 0
    width: float = 0
    height: float = 0

    @property
    def title(self) -> str:
        """The name as the page's table has it: boxes are too narrow for whole paths."""
        return self.name if "," in self.name or "." not in self.name else self.name.rpartition(".")[2]

    @property
    def weight(self) -> float:
        """The share of a floor's width: boxes of many rooms are wider, and none is a column of words."""
        return 2 + len([room for rooms in self.storeys for room in rooms]) / 4

    def lines(self) -> list[str]:
        return textwrap.wrap(self.sentence, max(14, int((self.width - 20) / 7.2)))

    def chips(self) -> list[list[str]]:
        """The rooms from the top, with arrows to those that they use, as rows of the box."""
        rows: list[list[str]] = [[]]
        for number, rooms in enumerate(self.storeys):
            for chip in [*([TO] if number else []), *rooms]:
                if rows[-1] and _chips_width([*rows[-1], chip]) > self.width - 16:
                    rows.append([])
                rows[-1].append(chip)
        if self.spread:
            rows.append([*self.spread, "(on several of these floors)"])
        return rows if rows[0] else []

    def measure(self) -> None:
        self.height = HEAD + LINE * len(self.lines()) + CHIP * len(self.chips()) + 8


def _chip_width(text: str) -> float:
    return 7.3 * len(text) + (6 if text == TO else 18)


def _chips_width(texts: list[str]) -> float:
    return sum(map(_chip_width, texts))


def sentence(part: str) -> str:
    """Return the first sentence of a part's own docstring."""
    folder = ROOT / "src" / "lockgate" / Path(*part.split("."))
    path = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    text = " ".join((ast.get_docstring(ast.parse(path.read_text())) or "").split("\n\n")[0].split())
    return text.split(". ")[0].rstrip(".").replace("`", "")


def floor_boxes() -> list[list[Box]]:
    """Return the floors from the top, each with its boxes; the package itself is beside the command line."""
    found = []
    for parts in floors():
        names = sorted(part for part in parts if part not in DOORS and part not in EVERYBODY)
        names += [""] if "cli" in parts else []
        boxes = [
            Box(f"lockgate.{name}".rstrip("."), sentence(name), storeys(name), sorted(spread_rooms(name)))
            if name
            else Box("lockgate", sentence(name), [], [])
            for name in names
        ]
        if DOORS[0] in parts:
            text = "Doors of lockgate itself: the names that users import, each loaded on first use"
            boxes.append(Box(", ".join(DOORS), text, [], []))
        if boxes:
            found.append(boxes)
    errors = Box("lockgate.errors", f"{sentence('errors')} (used on every floor)", [], [])
    return [*found, [errors]]


def uses() -> dict[str, set[str]]:
    """Which box uses which, without what follows from others."""
    found: dict[str, set[str]] = {}
    for module in imports().modules:
        part = part_of(module)
        # Doors load by name what they import only for annotations.
        graph = imports(annotations=part in ("", *DOORS))
        for target in graph.find_modules_directly_imported_by(module):
            here, there = _box_of(part), _box_of(part_of(target))
            if here != there and here and there:
                found.setdefault(here, set()).add(there)
    return {here: _direct(found, here) for here in found}


def _box_of(part: str) -> str:
    if part in EVERYBODY or part == "framework":
        return ""
    if part in DOORS:
        return ", ".join(DOORS)
    return f"lockgate.{part}".rstrip(".")


def _direct(graph: dict[str, set[str]], here: str) -> set[str]:
    def below(name: str) -> set[str]:
        return set().union(*({each} | below(each) for each in graph.get(name, ())))

    return {each for each in graph[here] if not any(each in below(other) for other in graph[here])}


def place(rows: list[list[Box]]) -> float:
    """Give every box its place; return the height of the picture."""
    y = float(MARGIN)
    for boxes in rows:
        weight = sum(box.weight for box in boxes)
        room = float(WIDTH - 2 * MARGIN - GAP * (len(boxes) - 1))
        if len(boxes) == 1:
            wanted = _chips_width([chip for rooms in boxes[0].storeys for chip in [TO, *rooms]]) + 30
            room = min(room, max(NARROW, wanted))
        x = (WIDTH - room - GAP * (len(boxes) - 1)) / 2
        for box in boxes:
            box.x, box.y, box.width = x, y, room * box.weight / weight
            box.measure()
            x += box.width + GAP
        tallest = max(box.height for box in boxes)
        for box in boxes:
            box.height = tallest
        y += tallest + RISE
    return y - RISE + MARGIN


def draw() -> str:
    """Return the picture as SVG."""
    rows = floor_boxes()
    height = place(rows)
    boxes = {box.name: box for row in rows for box in row}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img"'
        ' aria-label="The floors of Lockgate: each part uses only parts below it">',
        f"<style>{STYLE}</style>",
        '<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"'
        ' orient="auto"><path d="M0 0 8 4 0 8z"/></marker></defs>',
    ]
    for here, targets in sorted(uses().items()):
        parts += [_line(boxes[here], boxes[there], rows) for there in sorted(targets)]
    parts += [text for box in boxes.values() for text in _drawn(box)]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _line(here: Box, there: Box, rows: list[list[Box]]) -> str:
    if here.y == there.y:
        left, right = (here, there) if here.x < there.x else (there, here)
        ends = (left.x + left.width, right.x) if left is here else (right.x, left.x + left.width)
        return f'<path class="line" d="M{ends[0]:.0f} {here.y + 15:.0f}H{ends[1]:.0f}"/>'
    end, low = there.x + there.width / 2, here.y + here.height
    path = f"M{here.x + here.width / 2:.0f} {low:.0f}"
    at = here.x + here.width / 2
    for row in rows:
        if here.y < row[0].y <= there.y:
            goal = end if row[0].y == there.y else _free(row, end)
            middle = (low + row[0].y) / 2
            path += f"C{at:.0f} {middle:.0f} {goal:.0f} {middle:.0f} {goal:.0f} {row[0].y:.0f}"
            at, low = goal, row[0].y + row[0].height
            path += f"V{low:.0f}" if row[0].y < there.y else ""
    return f'<path class="line" d="{path}"/>'


def _free(row: list[Box], wanted: float) -> float:
    """Return the place nearest to the wanted one where a line passes between the boxes of a floor."""
    sides = [each for box in row for each in (box.x - GAP / 2, box.x + box.width + GAP / 2)]
    places = [each for each in (wanted, *sides) if not any(box.x < each < box.x + box.width for box in row)]
    return min(places, key=lambda each: abs(each - wanted))


def _drawn(box: Box) -> list[str]:
    parts = [
        f'<rect class="box" x="{box.x:.0f}" y="{box.y:.0f}" width="{box.width:.0f}" height="{box.height:.0f}"'
        ' rx="6"/>',
        f'<text class="name" x="{box.x + 10:.0f}" y="{box.y + 21:.0f}">{escape(box.title)}</text>',
    ]
    y = box.y + HEAD + 9
    for line in box.lines():
        parts.append(f'<text x="{box.x + 10:.0f}" y="{y:.0f}">{escape(line)}</text>')
        y += LINE
    for row in box.chips():
        x = box.x + 8
        for text in row:
            wide = _chip_width(text) - 6
            if text != TO and not text.startswith("("):
                parts.append(
                    f'<rect class="chip" x="{x:.0f}" y="{y - 11:.0f}" width="{wide:.0f}" height="19" rx="9"/>'
                )
            indent = 0 if text == TO else 7
            parts.append(f'<text class="room" x="{x + indent:.0f}" y="{y + 3:.0f}">{escape(text)}</text>')
            x += wide + 6
        y += CHIP
    return parts


if __name__ == "__main__":
    PICTURE.write_text(draw())
