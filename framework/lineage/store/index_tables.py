"""Tables of the index: a cache in SQLite that anyone may delete, since the segments hold the truth."""

from __future__ import annotations

# Written into the file; an index of another format is made again from the segments.
FORMAT = 4

TABLES = """
CREATE TABLE segment(name TEXT PRIMARY KEY, damage TEXT) WITHOUT ROWID;
CREATE TABLE dataset(
  id INTEGER PRIMARY KEY, namespace TEXT NOT NULL, name TEXT NOT NULL, type TEXT NOT NULL, uid TEXT NOT NULL,
  created INTEGER, creator TEXT, version INTEGER, seen INTEGER);
CREATE INDEX dataset_of ON dataset(namespace, name, uid);
CREATE INDEX dataset_by ON dataset(namespace, uid) WHERE uid != '';
CREATE TABLE former(namespace TEXT, name TEXT, dataset INTEGER, at INTEGER,
  PRIMARY KEY(namespace, name, dataset)) WITHOUT ROWID;
CREATE TABLE dropped(
  namespace TEXT, name TEXT, at INTEGER, PRIMARY KEY(namespace, name)) WITHOUT ROWID;
CREATE TABLE dropped_database(
  namespace TEXT, prefix TEXT, at INTEGER, PRIMARY KEY(namespace, prefix)) WITHOUT ROWID;
CREATE TABLE field(
  id INTEGER PRIMARY KEY, dataset INTEGER NOT NULL, name TEXT NOT NULL, uid TEXT NOT NULL,
  named INTEGER NOT NULL, dropped INTEGER);
CREATE INDEX field_of ON field(dataset, name);
CREATE INDEX whole ON field(dataset) WHERE name = '*';
CREATE TABLE process(
  id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, name TEXT NOT NULL, target INTEGER,
  views TEXT, opaque TEXT, cut INTEGER, created INTEGER, creator TEXT, count INTEGER, failed INTEGER,
  first INTEGER, last INTEGER, first_written INTEGER, written INTEGER, rows INTEGER, bytes INTEGER, run TEXT);
CREATE INDEX process_of ON process(target);
CREATE TABLE input(
  process INTEGER, number INTEGER, dataset INTEGER, PRIMARY KEY(process, number)) WITHOUT ROWID;
CREATE INDEX input_of ON input(dataset);
CREATE TABLE run(process INTEGER, ended INTEGER, run TEXT);
CREATE INDEX run_of ON run(process, ended);
CREATE TABLE edges(
  id INTEGER PRIMARY KEY, count INTEGER NOT NULL, digest INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE row_edge(
  process INTEGER, source INTEGER, kinds INTEGER, PRIMARY KEY(process, source)) WITHOUT ROWID;
CREATE INDEX row_edge_of ON row_edge(source);
"""
NAMES = (
    "segment",
    "dataset",
    "dropped",
    "dropped_database",
    "former",
    "field",
    "process",
    "input",
    "run",
    "edges",
    "row_edge",
)
