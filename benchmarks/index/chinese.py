"""Searches of Chinese titles made of a dictionary's words: size, what is left out, and what others find.

Each title is some words, drawn by their frequency, without blanks between them. Searches are for words of one
to four letters, all of the dictionary as likely. A block has the titles of one file. `possible` is what an
index would leave out that knows each block without a match. The kind `words` before it knew unspaced runs is
here as `whole_words`; DuckDB says which titles have a text, and SQLite's trigrams are an index of rows.
"""

from __future__ import annotations

import importlib.util
import sqlite3
from collections.abc import Callable
from functools import reduce
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from harness import emit, note
from pyroaring import BitMap

from lockgate.framework.index.database.segment_kinds import Ngrams, hashed
from lockgate.framework.index.database.words import Words
from lockgate.framework.types import STRING
from lockgate.pushdown import col, filter_table
from lockgate.pushdown.index import (
    Files,
    PartContent,
    PartName,
    Segment,
    ValueKind,
    distinct,
    segment_of,
    sorted_pairs,
    write_segment,
)

BENCH = "index"
SEED = 35
WORDS_A_TITLE = 12
LENGTHS = (1, 2, 3, 4)
SEARCHES = 100
PART = PartName("words", 0, "STRING")

Keys = Callable[[pa.Array], npt.NDArray[np.uint64]]


def measure(files: int, titles_a_file: int) -> None:
    """Print sizes and rates of all indexes on the same titles."""
    words, shares = _dictionary()
    chance = np.random.default_rng(SEED)
    blocks = [_titles(words, shares, titles_a_file, chance) for _ in range(files)]
    text_bytes = sum(_size(block) for block in blocks)
    emit(BENCH, "chinese_text_bytes", text_bytes, "bytes")
    indexes = {
        "words": _segment(blocks, lambda block: Words().keys(block, STRING)),
        "ngrams": _segment(blocks, lambda block: Ngrams().keys(block, STRING)),
        "whole_words": _segment(blocks, _whole_words),
    }
    for name, segment in indexes.items():
        emit(BENCH, f"chinese_{name}_share", segment.parts[PART].size / text_bytes, "ratio")
    emit(BENCH, "chinese_fts5_trigram_share", _trigrams(blocks) / text_bytes, "ratio")
    for length in LENGTHS:
        candidates = [word for word in words if len(word) == length]
        asked = [str(each) for each in chance.choice(candidates, SEARCHES, replace=False)]
        _measure_searches(blocks, indexes, asked, length)


def _measure_searches(
    blocks: list[pa.Array], indexes: dict[str, Segment], asked: list[str], length: int
) -> None:
    note(f"searches for {length} letters")
    counts = _counts_of_duckdb(blocks, asked)
    every = pa.table({"title": pa.concat_arrays(blocks)})
    whole = sum(pc.sum(_has_word(every["title"], each)).as_py() or 0 for each in asked)
    found = [filter_table(every, col("title").match(each)).num_rows for each in asked]
    assert found == [int(row.sum()) for row in counts], "match finds other titles than DuckDB"
    emit(BENCH, f"chinese_{length}_letters_found_share", sum(found) / int(counts.sum()), "ratio", 1)
    emit(BENCH, f"chinese_{length}_letters_found_share_whole_words", whole / int(counts.sum()), "ratio")
    emit(BENCH, f"chinese_{length}_letters_possible", float(np.mean(counts == 0)), "ratio")
    for name, kind in (("words", Words()), ("ngrams", Ngrams())):
        part = indexes[name].parts[PART]
        pruned = []
        for each, own in zip(asked, counts, strict=True):
            # ngrams have no `match`: they answer the same search as LIKE '%...%'
            question = col("title").match(each) if name == "words" else col("title").contains(each)
            keys = kind.lookup_keys(question, STRING)
            left = part.values if keys is None else part.places(keys.keys, every=keys.every)
            assert set(np.flatnonzero(own).tolist()) <= set(left), "a block with a match is left out"
            pruned.append(1 - len(left) / len(blocks))
        emit(BENCH, f"chinese_{length}_letters_pruned_{name}", float(np.mean(pruned)), "ratio")


def _dictionary() -> tuple[list[str], npt.NDArray[np.float64]]:
    """Return the words of jieba's dictionary that are Han alone, and how often each comes."""
    package = importlib.util.find_spec("jieba")
    assert package is not None, "install the dependency group dev: ./dev build"
    assert package.origin is not None, "jieba is a package with files"
    lines = (Path(package.origin).parent / "dict.txt").read_text(encoding="utf-8").splitlines()
    entries = [line.split(" ") for line in lines]
    counts = {word: int(count) for word, count, _ in entries if all("一" <= each <= "鿿" for each in word)}
    frequencies = np.array(list(counts.values()), np.float64)
    return list(counts), frequencies / frequencies.sum()


def _titles(
    words: list[str], shares: npt.NDArray[np.float64], count: int, chance: np.random.Generator
) -> pa.Array:
    drawn = pa.array(words).take(pa.array(chance.choice(len(words), count * WORDS_A_TITLE, p=shares)))
    columns = [drawn[at::WORDS_A_TITLE] for at in range(WORDS_A_TITLE)]
    return reduce(lambda title, word: pc.binary_join_element_wise(title, word, ""), columns)


def _size(texts: pa.Array) -> int:
    return int(pc.sum(pc.binary_length(texts)).as_py())


def _segment(blocks: list[pa.Array], keys_of: Keys) -> Segment:
    keys = [distinct(keys_of(block)) for block in blocks]
    places = np.repeat(np.arange(len(blocks), dtype=np.uint64), [len(each) for each in keys])
    everywhere = BitMap(range(len(blocks)))
    content = PartContent(
        *sorted_pairs(np.concatenate(keys), places), everywhere, BitMap(), everywhere, chosen=False
    )
    rows = np.array([len(block) for block in blocks], np.int64)
    files = Files(tuple(map(str, range(len(blocks)))), rows, rows)
    return segment_of(write_segment(files, {PART: content}), "titles")


def _whole_words(block: pa.Array) -> npt.NDArray[np.uint64]:
    found = pc.unique(pc.list_flatten(pc.split_pattern_regex(block, r"[^\p{L}\p{M}\p{N}]+")))
    return hashed(ValueKind.TEXT, found.cast(pa.binary()))


def _has_word(titles: pa.ChunkedArray, word: str) -> pa.ChunkedArray:
    other = r"[^\p{L}\p{M}\p{N}]"
    return pc.match_substring_regex(titles, rf"(?:\A|{other}){word}(?:\z|{other})")


def _counts_of_duckdb(blocks: list[pa.Array], asked: list[str]) -> npt.NDArray[np.int64]:
    """Return how many titles of each block have each of some texts."""
    numbers = pa.array(np.repeat(np.arange(len(blocks)), [len(block) for block in blocks]))
    titles = pa.table({"block": numbers, "title": pa.concat_arrays(blocks)})
    searches = pa.table({"number": range(len(asked)), "text": asked})
    connection = duckdb.connect()
    connection.register("titles", titles)
    connection.register("searches", searches)
    found = np.zeros((len(asked), len(blocks)), np.int64)
    for number, block, count in connection.execute(
        "SELECT number, block, count(*) FROM titles, searches WHERE contains(title, text) GROUP BY ALL"
    ).fetchall():
        found[number, block] = count
    return found


def _trigrams(blocks: list[pa.Array]) -> int:
    """Return the bytes of SQLite's index of trigrams, without the titles."""
    connection = sqlite3.connect(":memory:")
    connection.execute(
        "CREATE VIRTUAL TABLE t USING fts5(title, tokenize = 'trigram', content = '', detail = 'none')"
    )
    for block in blocks:
        connection.executemany("INSERT INTO t (title) VALUES (?)", [(each,) for each in block.to_pylist()])
    connection.execute("INSERT INTO t (t) VALUES ('optimize')")
    ((pages,),) = connection.execute("PRAGMA page_count")
    ((size,),) = connection.execute("PRAGMA page_size")
    return int(pages) * int(size)
