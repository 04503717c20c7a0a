"""Small charts as HTML tables whose bars are boxes: no scripts, no assets, readable at every width.

Text keeps its size on a phone, a screen reader reads a table, and colours come from the page's variables.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

Row = tuple[str, float, str]


def grouped_bars(
    names: Sequence[str],
    series: Sequence[Sequence[float]],
    *,
    unit: str,
    label: str,
    marker: tuple[int, str] | None = None,
) -> str:
    """One row a name with one bar a series; `marker` writes a line before the row of that number."""
    longest = max((value for values in series for value in values), default=0.0)
    body = ""
    for index, name in enumerate(names):
        if marker and marker[0] == index:
            body += _note(marker[1])
        shown = [(values[index], f"{values[index]:.2f} {unit}") for values in series if index < len(values)]
        body += _row(name, shown, longest)
    return _chart(label, body)


def noted_bars(
    rows: Sequence[Row], notes: Sequence[str], *, label: str, marker: tuple[int, str] | None = None
) -> str:
    """One bar for each (name, value, text) with a note at the end, and a line before the row of `marker`."""
    longest = max((value for _, value, _ in rows), default=0.0)
    body = ""
    for index, ((name, value, text), note) in enumerate(zip(rows, notes, strict=True)):
        if marker and marker[0] == index:
            body += _note(marker[1])
        body += _row(name, [(value, text)], longest, note)
    return _chart(label, body)


def share_bars(rows: Sequence[tuple[str, int, int, str]], *, label: str) -> str:
    """For each (name, kept, total, text) a faint bar with the kept share filled in."""
    return _chart(
        label,
        "".join(
            _row(name, [(kept / total if total else 0.0, text)], 1.0) for name, kept, total, text in rows
        ),
        "bars named",
    )


def _chart(label: str, body: str, kind: str = "bars") -> str:
    return f'<table class="{kind}"><caption>{escape(label)}</caption><tbody>{body}</tbody></table>'


def _row(name: str, values: Sequence[tuple[float, str]], longest: float, note: str = "") -> str:
    boxes = "".join(_bar(number, value, longest) for number, (value, _) in enumerate(values, 1))
    texts = "".join(f"<span>{escape(text)}</span>" for _, text in values)
    noted = f'<td class="note">{escape(note)}</td>' if note else ""
    return (
        f'<tr><th scope="row">{escape(name)}</th><td>{boxes}</td><td class="number">{texts}</td>{noted}</tr>'
    )


def _bar(number: int, value: float, longest: float) -> str:
    share = 100 * value / longest if longest else 0.0
    return f'<span class="bar"><i class="series{number}" style="width:{share:.2f}%"></i></span>'


def _note(text: str) -> str:
    return f'<tr class="marker"><td colspan="4">{escape(text)}</td></tr>'
