"""What an index of words keeps of texts, and what it is asked for: words, and pieces of unspaced runs."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.pushdown.texts.patterns import are_runs, is_run, words_of, words_of_any_engine
from lockgate.pushdown.texts.unspaced import pieces, required_pieces


def indexed_words(texts: pa.Array) -> pa.Array:
    """Return the words of texts and the pieces of their unspaced runs; few are repeated."""
    found = pc.unique(words_of_any_engine(texts))
    in_runs = are_runs(found)
    runs = found.filter(in_runs)
    spaced = found.filter(pc.invert(in_runs))
    return pa.concat_arrays([spaced, pieces(runs)]) if len(runs) else spaced


def required_words(terms: str) -> list[str]:
    """Return those of `indexed_words` that any text has that matches `terms`."""
    found: list[str] = []
    for word in words_of(terms):
        found += required_pieces(word) if is_run(word) else [word]
    return found
