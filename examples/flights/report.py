"""The page: one self-contained HTML file that shows what happened, in light and in dark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from statistics import median

from flights.charts import grouped_bars, noted_bars, share_bars
from flights.story import Batch, Funnel, Step, Story, human_bytes
from flights.wording import counted, counts

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_LONGEST = 16  # letters of a value; the whole of it shows where the pointer rests
_STYLE = Path(__file__).with_name("page.css")
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Lockgate: a year of flights</title>
<style>
{style}</style></head>
<body><main>
<h1>A year of flights, enriched while it streams</h1>
<p class="soft">Every flight that left New York City in 2013, joined with planes, airports and weather by
Lockgate's lookup join, from tables whose sensitive columns are encrypted inside ORC.</p>
{body}
</main></body></html>
"""


def render(story: Story, docs: str = "docs") -> str:
    """The whole page as HTML text; `docs` is where the documentation lies, seen from the page."""
    sections = [_tiles(story), _missed(story), _lag(story), _stream(story), _big(story), _funnels(story)]
    sections += [_keys(story), _rights(story), _lineage(story), _calls(story), _checks(story)]
    sections.append(_about(story, docs))
    return _PAGE.format(style=_STYLE.read_text(), body="".join(section for section in sections if section))


def _section(title: str, body: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{body}</section>"


def _table(
    name: str,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    numbers: Sequence[int] = (),
    *,
    stacked: bool = False,
) -> str:
    """A table of ready HTML cells; the columns in `numbers` are set to the right.

    Where it is wider than the screen it scrolls by itself, also by the keyboard; `stacked`, the cells of a
    row stand one below the other on a phone.
    """
    top = "".join(f'<th scope="col">{escape(each)}</th>' for each in head)
    body = ""
    for row in rows:
        cells = (f"<td{_right(place in numbers)}>{cell}</td>" for place, cell in enumerate(row))
        body += f"<tr>{''.join(cells)}</tr>"
    kind = "scroll stack" if stacked else "scroll"
    return (
        f'<div class="{kind}" role="region" aria-label="{escape(name)}" tabindex="0">'
        f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _right(number: bool) -> str:
    return ' class="number"' if number else ""


def _tiles(story: Story) -> str:
    held = sum(check.ok for check in story.checks)
    tiles = [
        (f"{story.flights:,}", "flights enriched"),
        (f"{held} of {len(story.checks)}", "checks hold"),
        (f"{story.rows_per_second:,.0f}", "rows a second, median batch, three lookup joins and the write"),
        (f"{story.wall_seconds:.0f} s", "from the first table to this page"),
    ]
    missed = story.missed
    if missed is not None:
        share = f"{missed.lookup / missed.flights:.0%}" if missed.flights else "0%"
        tiles.insert(
            0,
            (
                share,
                "of the flights after a change show it; with Spark's own join "
                f"{missed.spark / missed.flights if missed.flights else 0:.0%}",
            ),
        )
    shown = (f'<div class="tile"><b>{figure}</b><span>{text}</span></div>' for figure, text in tiles)
    return f'<div class="tiles">{"".join(shown)}</div>'


def _names(batches: Sequence[Batch]) -> list[str]:
    return [_MONTHS[batch.month - 1] for batch in batches]


def _marker(story: Story) -> tuple[int, str]:
    before = sum(batch.month < story.updated_before_month for batch in story.batches)
    return before, "100 planes updated, 10 deleted"


def _legend(*names: str) -> str:
    keys = (
        f'<i class="key" style="background:var(--{colour})"></i>{escape(name)}'
        for colour, name in zip(("one", "two"), names, strict=False)
    )
    return f'<p class="soft">{"".join(keys)}</p>'


def _stream(story: Story) -> str:
    if not story.batches:
        return ""
    series = [("lookup join", [batch.seconds for batch in story.batches])]
    if story.peer:
        series.append(("Spark's stream-static join", [batch.seconds for batch in story.peer]))
    chart = grouped_bars(
        _names(story.batches),
        [values for _, values in series],
        unit="s",
        label="Seconds of each batch",
        marker=_marker(story),
    )
    text = (
        "<p>Each micro-batch holds the flights of one month. The first batch of the lookup join "
        "also builds the caches. These dimensions are small (some thousand rows), so Spark's broadcast join "
        "has little to do and is faster. The lookup join is there for freshness; with a large dimension it "
        "is faster as well (<code>./dev demo --big</code>).</p>"
    )
    return _section("How long each batch took", text + _legend(*(name for name, _ in series)) + chart)


def _lag(story: Story) -> str:
    if not story.batches:
        return ""
    rows = [(_MONTHS[batch.month - 1], batch.lag, f"{batch.lag:.2f} s") for batch in story.batches]
    chart = noted_bars(
        rows,
        [_used(batch) for batch in story.batches],
        label="Seconds from the commit of a snapshot until it was served, and the snapshot of planes",
        marker=_marker(story),
    )
    text = (
        "<p>Every row of a batch is answered from one snapshot of <code>planes</code>. A bar says how long "
        "after its commit that snapshot could be served. After June the stream waited until the change had "
        "arrived. Before each later month one more plane was changed and nobody waited, so a batch may use "
        "the snapshot before the newest: then both numbers are given.</p>"
    )
    biggest = max(batch.cache_bytes for batch in story.batches)
    after = f'<p class="soft">All caches together: {human_bytes(biggest)} on disk.</p>' if biggest else ""
    return _section("How fresh each batch was", text + chart + after)


def _used(batch: Batch) -> str:
    used = batch.snapshots.get("planes", 0)
    return f"snapshot {used}" if used >= batch.newest else f"snapshot {used} of {batch.newest}"


def _missed(story: Story) -> str:
    missed = story.missed
    if missed is None:
        return ""
    rows = [
        ("lookup join", missed.lookup, missed.flights, f"{missed.lookup:,} of {missed.flights:,}"),
        ("Spark's own join", missed.spark, missed.flights, f"{missed.spark:,} of {missed.flights:,}"),
    ]
    text = (
        "<p>After June, 100 planes were updated and 10 deleted in SQL while the stream ran. Of the later "
        "flights by these planes, so many show the change:</p>"
    )
    why = (
        '<p class="soft">A stream-static join lists the files of its static side when the query starts, '
        "so it does not see what is appended to the folder later.</p>"
    )
    return _section(
        "What a running query sees of a change", text + share_bars(rows, label="Changes seen") + why
    )


def _funnels(story: Story) -> str:
    if not story.funnels:
        return ""
    text = (
        "<p>What was left to read after each step, of three queries. Lockgate applies a <b>guaranteed</b> "
        "filter fully, and Spark does not look at it again. A filter that only <b>skips</b> files leaves "
        "other rows in the files it keeps; so it is also among those that <b>remain</b>, which Spark applies "
        "to the rows.</p>"
    )
    return _section("What a query did not have to read", text + "".join(map(_funnel, story.funnels)))


def _funnel(funnel: Funnel) -> str:
    rows = []
    for step in _changing(funnel.steps):
        shown = human_bytes if "bytes" in step.name else str
        rows.append((step.name, step.kept, step.total, f"{shown(step.kept)} of {shown(step.total)}"))
    facts = [
        ("guaranteed", ", ".join(funnel.accepted) or "none"),
        ("used to skip", ", ".join(funnel.skipping) or "none"),
        ("remaining", ", ".join(funnel.remaining) or "none"),
        ("columns read", ", ".join(funnel.columns) or "none"),
        ("answer", f"{counted(funnel.rows, 'row')} in {funnel.seconds:.2f} s"),
    ]
    return (
        f'<div class="query"><h3>{escape(funnel.title)}</h3><pre><code>{escape(funnel.sql)}</code></pre>'
        f"{share_bars(rows, label='What was left after each step')}"
        f"{_facts((name, escape(value)) for name, value in facts)}</div>"
    )


def _facts(facts: Iterable[tuple[str, str]]) -> str:
    """Return a table of names and values, both as HTML."""
    rows = "".join(f'<tr><th scope="row">{name}</th><td>{value}</td></tr>' for name, value in facts)
    return f'<table class="facts"><tbody>{rows}</tbody></table>' if rows else ""


def _changing(steps: Sequence[Step]) -> list[Step]:
    """Put steps that left as much as the one before them into one: "files, partitions and statistics"."""
    found: list[Step] = []
    for step in steps:
        last = found[-1] if found else None
        kind, _, by = step.name.partition(", ")
        if last and by and last.kept == step.kept and last.name.startswith(f"{kind}, "):
            found[-1] = Step(f"{last.name} and {by}", step.kept, step.total)
        else:
            found.append(step)
    return found


def _keys(story: Story) -> str:
    if not story.with_key:
        return ""
    text = (
        "<p>The same rows of <code>planes</code>. Only the key tells the difference: the files are the "
        "same, and any ORC reader can open them.</p>"
    )
    opened = [[_cell(value) for value in row] for row in story.with_key]
    masked = [
        [_cell(value, masked=value != plain) for value, plain in zip(row, plain_row, strict=True)]
        for row, plain_row in zip(story.without_key, story.with_key, strict=True)
    ]
    return _section(
        "With and without the key",
        f"{text}<p><b>With the key</b></p>{_table('With the key', story.columns, opened)}"
        f"<p><b>Without it</b></p>{_table('Without the key', story.columns, masked)}",
    )


def _rights(story: Story) -> str:
    rights = story.rights
    if rights is None:
        return ""
    text = (
        "<p>The same query of two users, under policies in Apache Ranger's format: <b>ann</b> works for "
        "United and sees its flights, with masked tail numbers; <b>bob</b> sees everything.</p>"
        f"<pre><code>{escape(rights.sql)}</code></pre>"
    )
    tables = ""
    for user, rows in (("ann", rights.ann), ("bob", rights.bob)):
        cells = [[_cell(value) for value in row] for row in rows]
        tables += f"<p><b>{user}</b></p>{_table(user, rights.columns, cells)}"
    facts = (
        ("ann asks", f"<code>{escape(rights.refused_sql)}</code>"),
        ("refused", escape(rights.refusal)),
        ("after the grant", f"{escape(str(rights.granted))} minutes"),
        ("audit", f"<code>{escape(rights.audit)}</code>"),
    )
    table = _facts(facts)
    return _section("What two users see", f"{text}{tables}{table}")


def _lineage(story: Story) -> str:
    if not story.lineage:
        return ""
    text = (
        "<p>Every column of the enriched flights, traced back to the tables that it came from. Lockgate "
        "recorded it while the stream ran.</p>"
    )
    frame = f'<iframe title="Lineage of flights.enriched" srcdoc="{escape(story.lineage)}"></iframe>'
    return _section("Where the columns came from", f"{text}{frame}")


def _cell(value: object, *, masked: bool = False) -> str:
    text = "null" if value is None else escape(str(value))
    if len(text) > _LONGEST:
        text = f'<span title="{text}">{text[:_LONGEST]}…</span>'
    return f'<span class="mask">{text}</span>' if masked else text


def _calls(story: Story) -> str:
    if not story.calls:
        return ""
    rows = [
        [
            f"<code>{escape(call.sql)}</code>",
            escape(counts(call.result)),
            f"{call.seconds:.2f} s",
        ]
        for call in story.calls
    ]
    return _section(
        "Maintenance",
        _table("Procedures", ("statement", "what it did", "time"), rows, numbers=(2,), stacked=True),
    )


def _big(story: Story) -> str:
    big = story.big
    if big is None:
        return ""
    names = [str(number + 1) for number in range(len(big.lookup_seconds))]
    chart = grouped_bars(
        names,
        [big.lookup_seconds, big.spark_seconds],
        unit="s",
        label="Seconds of each batch with a large dimension",
    )
    text = (
        f"<p>The same flights against a dimension of {big.dimension_rows:,} rows. Spark's join reads the "
        "whole dimension again for each batch; the lookup join built its cache once, in "
        f"{big.build_seconds:.1f} s. Median batch: {median(big.lookup_seconds):.2f} s against "
        f"{median(big.spark_seconds):.2f} s, {big.speed_up:.1f} times faster.</p>"
    )
    return _section(
        "With a large dimension", text + _legend("lookup join", "Spark's stream-static join") + chart
    )


def _checks(story: Story) -> str:
    rows = [
        [
            '<span class="good">✓ holds</span>' if check.ok else '<span class="bad">✗ FAILED</span>',
            escape(check.name),
            escape(check.detail),
        ]
        for check in story.checks
    ]
    return _section("Checks", _table("Checks", ("result", "what was checked", "found"), rows, stacked=True))


def _about(story: Story, docs: str) -> str:
    """When and where it ran, with which versions, and where to read on."""
    pages = (
        ("what each step does", "demo.md"),
        ("lookup joins", "lookup.md"),
        ("encryption", "encryption.md"),
        ("governance", "governance.md"),
        ("lineage", "lineage.md"),
    )
    links = ", ".join(f'<a href="{escape(docs)}/{page}">{text}</a>' for text, page in pages)
    table = _facts((escape(name), escape(value)) for name, value in story.about)
    return _section("About this run", f"{table}<p>Read on: {links}.</p>")
