"""Page of a check: the statement, its points, the policies that grant each, and what is missing.

One file that loads nothing and runs no script; names and texts go in escaped.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lockgate.framework.governance.statement_checks import Check, PointAnswer

_SEEN = {"rows": "some of its rows"}
_HEADS = ("Point", "Granted by", "The user sees", "Missing")


def page(check: Check) -> str:
    """Return the page of a check, as HTML."""
    template = (files("lockgate.framework.governance.points") / "page.html").read_text(encoding="utf-8")
    lacking = sum(bool(each.missing) for each in check.answers)
    verdict = "may" if check.allowed else "may not"
    return Template(template).substitute(
        title=escape(f"{check.user} {verdict} run this statement"),
        user=escape(check.user),
        verdict=verdict,
        verdict_class="good" if check.allowed else "bad",
        summary=f"{_count(len(check.answers), 'point')}, {lacking} without a grant",
        statement=f"<pre>{escape(check.sql)}</pre>" if check.sql else "",
        points=_points(check.answers),
        others=_list("What else it lacks", check.of_statement),
        ask=_list("Where to apply", check.ask),
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _points(answers: Iterable[PointAnswer]) -> str:
    rows = [_row(each) for each in answers]
    if not rows:
        return '<p class="dim">It reads no table.</p>'
    heads = "".join(f'<th scope="col">{name}</th>' for name in _HEADS)
    caption = "A point is a table or a column, with all rows or those with certain constants."
    return (
        f"<table><caption>{caption}</caption><thead><tr>{heads}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _row(answer: PointAnswer) -> str:
    if answer.missing:
        seen, style = "nothing", "bad"
    elif answer.hidden:
        seen, style = " and ".join(_SEEN.get(each, "masks of its values") for each in answer.hidden), "some"
    else:
        seen, style = "everything", "good"
    granted = ", ".join(answer.granted_by) or ("nobody decides about it" if not answer.missing else "nothing")
    cells = (
        escape(answer.point.text()),
        escape(granted),
        f'<span class="word {style}">{escape(seen)}</span>',
        "<br>".join(escape(each) for each in answer.missing) or "nothing",
    )
    named = zip(_HEADS, cells, strict=True)
    return "<tr>" + "".join(f'<td data-name="{name}">{cell}</td>' for name, cell in named) + "</tr>"


def _list(title: str, texts: Iterable[str]) -> str:
    items = "".join(f"<li>{escape(each)}</li>" for each in texts)
    return f"<h2>{title}</h2><ul>{items}</ul>" if items else ""
