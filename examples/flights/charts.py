"""Small charts as inline SVG: no scripts, no assets; colours come from the page's variables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 720, 46, 8, 14, 34


def nice_ceiling(value: float) -> float:
    """The next round number at or above `value`: 1, 2, 2.5 or 5 times a power of ten."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= value * (1 - 1e-9))


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "middle") -> str:
    style = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{style}>{escape(text)}</text>'


def _frame(height: int, top_value: float, unit: str) -> list[str]:
    """The value axis: a line for each of its ticks, and their figures, the last with the unit."""
    parts = []
    values = ticks(top_value)
    for value in values:
        y = _y(height, value, top_value)
        text = f"{value:g}{f' {unit}' if value == values[-1] else ''}"
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(_text(LEFT - 6, y + 4, text, "tick", "end"))
    return parts


def ticks(top_value: float) -> list[float]:
    """From 0 to a round number, in four or five steps that are round numbers as well."""
    steps = 4 if f"{top_value:e}"[0] == "2" and not f"{top_value:e}".startswith("2.5") else 5
    return [top_value * step / steps for step in range(steps + 1)]


def _y(height: int, value: float, top_value: float) -> float:
    return TOP + (height - TOP - BOTTOM) * (1 - value / top_value)


def _svg(height: int, label: str, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(label, quote=True)}">'
        f"{''.join(parts)}</svg>"
    )


def grouped_bars(
    names: Sequence[str],
    series: Sequence[tuple[str, Sequence[float]]],
    *,
    unit: str,
    label: str,
    marker: tuple[int, str] | None = None,
    height: int = 260,
) -> str:
    """Bars side by side, one group a name, one bar a series; `marker` draws a line before a group."""
    top_value = nice_ceiling(max((value for _, values in series for value in values), default=1.0))
    slot = (WIDTH - LEFT - RIGHT) / max(len(names), 1)
    bar = slot * 0.72 / max(len(series), 1)
    parts = _frame(height, top_value, unit)
    for index, name in enumerate(names):
        start = LEFT + slot * index + slot * 0.14
        parts.append(_text(LEFT + slot * (index + 0.5), height - BOTTOM + 16, name, "tick"))
        for place, (title, values) in enumerate(series):
            if index < len(values):
                y = _y(height, values[index], top_value)
                parts.append(
                    f'<rect class="series{place + 1}" x="{start + place * bar:.1f}" y="{y:.1f}" rx="2" '
                    f'width="{bar - 1.5:.1f}" height="{max(height - BOTTOM - y, 0.5):.1f}">'
                    f"<title>{escape(f'{name}, {title}: {values[index]:.2f} {unit}')}</title></rect>"
                )
    if marker:
        x = LEFT + slot * marker[0]
        parts.append(
            f'<line class="marker" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 8}" y2="{height - BOTTOM}"/>'
        )
        parts.append(_text(x + 6, TOP + 2, marker[1], "note", "start"))
    return _svg(height, label, parts)


def lag_dots(
    names: Sequence[str],
    values: Sequence[float],
    notes: Sequence[str],
    *,
    unit: str,
    label: str,
    marker: tuple[int, str] | None = None,
    height: int = 220,
) -> str:
    """One stem and dot a name, with a note under each name."""
    top_value = nice_ceiling(max([*values, 1e-9]) if any(values) else 1.0)
    slot = (WIDTH - LEFT - RIGHT) / max(len(names), 1)
    height += 16
    base = height - BOTTOM - 16
    scale = height - 16
    parts = _frame(scale, top_value, unit)
    for index, (name, value, note) in enumerate(zip(names, values, notes, strict=True)):
        x, y = LEFT + slot * (index + 0.5), _y(scale, value, top_value)
        parts.append(f'<line class="stem" x1="{x:.1f}" x2="{x:.1f}" y1="{y:.1f}" y2="{base}"/>')
        parts.append(
            f'<circle class="series1" cx="{x:.1f}" cy="{y:.1f}" r="5">'
            f"<title>{escape(f'{name}: {value:.2f} {unit}, {note}')}</title></circle>"
        )
        parts.append(_text(x, base + 16, name, "tick"))
        parts.append(_text(x, base + 32, note, "note"))
    if marker:
        x = LEFT + slot * marker[0]
        parts.append(f'<line class="marker" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 8}" y2="{base}"/>')
        parts.append(_text(x + 6, TOP + 2, marker[1], "note", "start"))
    return _svg(height, label, parts)


def share_bars(rows: Sequence[tuple[str, int, int, str]], *, label: str) -> str:
    """A funnel: for each (name, kept, total, text) a faint bar with the kept share filled in."""
    row_height, start = 30, 130
    full = WIDTH - start - 150
    parts = []
    for index, (name, kept, total, text) in enumerate(rows):
        y = 6 + index * row_height
        share = kept / total if total else 0.0
        parts.append(_text(start - 10, y + 14, name, "", "end"))
        parts.append(f'<rect class="whole" x="{start}" y="{y}" width="{full}" height="19" rx="3"/>')
        parts.append(
            f'<rect class="series1" x="{start}" y="{y}" width="{max(full * share, 2 if kept else 0):.1f}" '
            'height="19" rx="3"/>'
        )
        parts.append(_text(start + full + 10, y + 14, text, "", "start"))
    return _svg(12 + row_height * len(rows), label, parts)
