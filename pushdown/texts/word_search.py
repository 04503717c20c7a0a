"""The keys of a word index, from texts and from search terms: words, and pieces of unspaced runs."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.pushdown.texts.patterns import are_runs, is_run, words_of, words_of_any_engine
from lockgate.pushdown.texts.unspaced import pieces, required_pieces


def indexed_words(texts: pa.Array) -> pa.Array:
    """Return the words of texts and the pieces of their unspaced runs, with few duplicates."""
    words = pc.unique(words_of_any_engine(texts))
    is_run_mask = are_runs(words)
    runs = words.filter(is_run_mask)
    spaced = words.filter(pc.invert(is_run_mask))
    return pa.concat_arrays([spaced, pieces(runs)]) if len(runs) else spaced


def required_words(terms: str) -> list[str]:
    """Return the indexed words that every text has that matches `terms`."""
    words: list[str] = []
    for word in words_of(terms):
        words += required_pieces(word) if is_run(word) else [word]
    return words
