"""Graphs as text: Graphviz's DOT, Mermaid and GraphML. Names are quoted, whatever is in them."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

Pairs = Sequence[tuple[str, str, str]]
"""Source, target and the kinds of the edge between them."""

xml = escape


def dot(pairs: Pairs) -> str:
    """Return a graph for Graphviz, from left to right."""
    lines = [f"  {_dot(source)} -> {_dot(target)} [label={_dot(kinds)}];" for source, target, kinds in pairs]
    return "\n".join(["digraph lineage {", "  rankdir=LR;", *lines, "}", ""])


def mermaid(pairs: Pairs) -> str:
    """Return a flowchart for Mermaid, from left to right."""
    numbers = _numbers(pairs)
    nodes = [f'  n{number}["{_mermaid(name)}"]' for name, number in numbers.items()]
    edges = [f'  n{numbers[a]} -->|"{_mermaid(kinds)}"| n{numbers[b]}' for a, b, kinds in pairs]
    return "\n".join(["flowchart LR", *nodes, *edges, ""])


def graphml(pairs: Pairs) -> str:
    """Return GraphML: vertices have a `name`, edges `kinds`."""
    numbers = _numbers(pairs)
    nodes = [f'<node id="n{n}"><data key="name">{xml(name)}</data></node>' for name, n in numbers.items()]
    edges = [
        f'<edge source="n{numbers[a]}" target="n{numbers[b]}"><data key="kinds">{xml(kinds)}</data></edge>'
        for a, b, kinds in pairs
    ]
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">',
            '<key id="name" for="node" attr.name="name" attr.type="string"/>',
            '<key id="kinds" for="edge" attr.name="kinds" attr.type="string"/>',
            '<graph edgedefault="directed">',
            *nodes,
            *edges,
            "</graph></graphml>",
            "",
        ]
    )


def _numbers(pairs: Pairs) -> dict[str, int]:
    names = dict.fromkeys(name for source, target, _ in pairs for name in (source, target))
    return {name: number for number, name in enumerate(names)}


def _dot(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _mermaid(text: str) -> str:
    return text.replace("#", "#35;").replace('"', "#quot;").replace("\n", " ")
