package io.lockgate.spark.index;

/** The different keys of the rows of a block, or of a part of them. */
interface KeySet {
  void add(long key);

  /** Tells whether it has as many keys as it should hold in memory. */
  boolean isFull();

  /** Adds its keys to the runs of a block; then it is empty. */
  void drain(int block, KeyRuns runs);
}
