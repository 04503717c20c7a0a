package io.lockgate.spark.files.batches;

import org.apache.spark.unsafe.types.UTF8String;

/** The kinds of rows, by their numbers in files. */
public final class RowKinds {
  private static final UTF8String[] TEXTS = {
    UTF8String.fromString("+I"),
    UTF8String.fromString("-U"),
    UTF8String.fromString("+U"),
    UTF8String.fromString("-D")
  };

  private RowKinds() {}

  /** The text of a kind; IllegalStateException for a number that no file should have. */
  public static UTF8String text(int kind) {
    if (kind < 0 || kind >= TEXTS.length) {
      throw new IllegalStateException("a data file has a row of the unknown kind " + kind);
    }
    return TEXTS[kind];
  }
}
