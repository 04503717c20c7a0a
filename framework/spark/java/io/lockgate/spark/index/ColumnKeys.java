package io.lockgate.spark.index;

import java.util.Arrays;
import java.util.BitSet;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;

/** The keys of one column of a file. */
final class ColumnKeys {
  /** Puts the keys of one value that is not null into a set; false: this twin cannot tell them. */
  @FunctionalInterface
  interface Source {
    boolean put(SpecializedGetters row, int ordinal, KeySet keys);
  }

  private static final int HEAD_BYTES = 5;

  private final Source source;
  private KeySet keys;
  private KeyRuns runs = new KeyRuns();
  private final BitSet nulls = new BitSet();
  private final BitSet values = new BitSet();
  private int block;
  private boolean leftOut;

  private ColumnKeys(Source source, KeySet keys) {
    this.source = source;
    this.keys = keys;
  }

  static ColumnKeys of(KeyPlan.Column column) {
    return switch (column.kind()) {
      case "values" ->
          new ColumnKeys(ValueKeys.ofValues(column.values(), column.type()), new LongSet());
      case "bloom" ->
          new ColumnKeys(ValueKeys.ofFilters(column.values(), column.type()), new PagedBits());
      case "ngrams" -> new ColumnKeys(new TextPieces(), new PagedBits());
      case "words" -> new ColumnKeys(new TextWords(), new LongSet());
      default -> throw new IllegalArgumentException("there is no kind of index " + column.kind());
    };
  }

  void add(SpecializedGetters row, int ordinal) {
    if (leftOut) {
      return;
    }
    if (row.isNullAt(ordinal)) {
      nulls.set(block);
      return;
    }
    values.set(block);
    if (!source.put(row, ordinal, keys)) {
      leaveOut();
    } else if (keys.isFull()) {
      drain();
    }
  }

  private void drain() {
    keys.drain(block, runs);
    if (runs.isFull()) {
      leaveOut();
    }
  }

  /** Gives up: the driver reads the column. */
  private void leaveOut() {
    leftOut = true;
    keys = null;
    runs = null;
  }

  boolean isLeftOut() {
    return leftOut;
  }

  void endBlock(int number) {
    if (!leftOut) {
      drain();
      block = number + 1;
    }
  }

  long size(int blocks) {
    return leftOut ? 1 : HEAD_BYTES + 2L * ((blocks + 7) / 8) + runs.size();
  }

  void write(Bytes out, int blocks) {
    out.put(leftOut ? 0 : 1);
    if (!leftOut) {
      out.putInt(runs.runs());
      write(out, nulls, blocks);
      write(out, values, blocks);
      runs.write(out);
    }
  }

  private static void write(Bytes out, BitSet set, int blocks) {
    byte[] bytes = Arrays.copyOf(set.toByteArray(), (blocks + 7) / 8);
    out.put(bytes, bytes.length);
  }
}
