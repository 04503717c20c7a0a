package io.lockgate.spark.read;

import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import org.apache.hadoop.hive.ql.exec.vector.BytesColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;
import org.apache.orc.OrcFilterContext;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.hash.Murmur3_x86_32;

/**
 * The rows of an ORC file that have one of some single values in each of some columns; ORC decodes
 * the other columns for these rows only.
 *
 * <p>Rows that pass are filtered again by Spark. Where many pass this costs more than it saves:
 * after some batches it is given up.
 */
final class SearchedRows implements Consumer<OrcFilterContext> {
  private static final int TRIED_ROWS = 16 * 1024;
  // Of more rows than one in so many all columns are decoded.
  private static final int ONE_IN = 4;

  /** Tells whether a value that is not null is among those asked for. */
  private interface Values {
    boolean hold(ColumnVector vector, int row);

    /** Tells whether they can be compared with those of a vector. */
    boolean fit(ColumnVector vector);
  }

  /** A column, named as ORC parses names, and the values asked for. */
  record Sought(String column, Values values) {
    /** Whole numbers of any size. */
    static Sought numbers(String column, long[] values) {
      return new Sought(column, new Numbers(values));
    }

    /** Texts, in UTF-8. */
    static Sought texts(String column, byte[][] values) {
      return new Sought(column, new Texts(values));
    }
  }

  private static final class Numbers implements Values {
    private final long[] values;

    Numbers(long[] values) {
      this.values = values.clone();
      Arrays.sort(this.values);
    }

    @Override
    public boolean fit(ColumnVector vector) {
      return vector instanceof LongColumnVector;
    }

    @Override
    public boolean hold(ColumnVector vector, int row) {
      long value = ((LongColumnVector) vector).vector[row];
      return values.length == 1 ? values[0] == value : Arrays.binarySearch(values, value) >= 0;
    }
  }

  private static final class Texts implements Values {
    private final byte[][] values;
    // By hash: one more than the number of a value, 0 for none.
    private final int[] slots;

    Texts(byte[][] values) {
      this.values = values.clone();
      this.slots = new int[Integer.highestOneBit(values.length) << 2];
      for (int i = 0; i < values.length; i++) {
        int slot = slot(values[i], 0, values[i].length);
        while (slots[slot] != 0) {
          slot = next(slot);
        }
        slots[slot] = i + 1;
      }
    }

    private int slot(byte[] bytes, int start, int length) {
      int hash =
          Murmur3_x86_32.hashUnsafeBytes2(
              bytes, Platform.BYTE_ARRAY_OFFSET + start, length, values.length);
      return hash & slots.length - 1;
    }

    private int next(int slot) {
      return slot + 1 & slots.length - 1;
    }

    @Override
    public boolean fit(ColumnVector vector) {
      return vector instanceof BytesColumnVector;
    }

    @Override
    public boolean hold(ColumnVector vector, int row) {
      BytesColumnVector texts = (BytesColumnVector) vector;
      byte[] bytes = texts.vector[row];
      int start = texts.start[row];
      int length = texts.length[row];
      if (values.length == 1) {
        return equal(values[0], bytes, start, length);
      }
      for (int slot = slot(bytes, start, length); slots[slot] != 0; slot = next(slot)) {
        if (equal(values[slots[slot] - 1], bytes, start, length)) {
          return true;
        }
      }
      return false;
    }

    private static boolean equal(byte[] value, byte[] bytes, int start, int length) {
      return value.length == length
          && Arrays.equals(value, 0, length, bytes, start, start + length);
    }
  }

  private final List<Sought> sought;
  private LongSupplier position;
  private long first;
  private long seen;
  private long found;
  private boolean givenUp;

  SearchedRows(List<Sought> sought) {
    this.sought = List.copyOf(sought);
  }

  String[] columns() {
    return sought.stream().map(Sought::column).toArray(String[]::new);
  }

  /** Says where the reader stands, which passes over batches without a row. */
  void follow(LongSupplier reader) {
    position = reader;
  }

  /** The number of the first row of the batch that was read last. */
  long first() {
    return first;
  }

  @Override
  public void accept(OrcFilterContext batch) {
    first = position.getAsLong();
    if (givenUp) {
      return;
    }
    int rows = batch.getSelectedSize();
    int left = select(batch, rows);
    seen += rows;
    found += left;
    givenUp = seen >= TRIED_ROWS && found * ONE_IN > seen;
  }

  /** Selects the rows with values of all columns; returns how many there are. */
  private int select(OrcFilterContext batch, int rows) {
    int left = rows;
    int[] chosen = batch.isSelectedInUse() ? batch.getSelected() : null;
    for (Sought each : sought) {
      ColumnVector[] path = batch.findColumnVector(each.column());
      ColumnVector vector = path[path.length - 1];
      if (!each.values().fit(vector)) {
        continue;
      }
      if (chosen == null) {
        chosen = batch.updateSelected(rows);
        Arrays.setAll(chosen, row -> row);
      }
      left = select(each.values(), vector, chosen, left);
    }
    if (left < rows) {
      batch.setSelected(chosen);
      batch.setSelectedSize(left);
      batch.setSelectedInUse(true);
    }
    return left;
  }

  private static int select(Values values, ColumnVector vector, int[] chosen, int count) {
    if (vector.isRepeating) {
      boolean none = count == 0 || !vector.noNulls && vector.isNull[0] || !values.hold(vector, 0);
      return none ? 0 : count;
    }
    int left = 0;
    for (int i = 0; i < count; i++) {
      int row = chosen[i];
      if ((vector.noNulls || !vector.isNull[row]) && values.hold(vector, row)) {
        chosen[left++] = row;
      }
    }
    return left;
  }
}
