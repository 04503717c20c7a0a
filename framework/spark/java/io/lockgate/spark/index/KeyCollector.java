package io.lockgate.spark.index;

import java.util.List;
import java.util.zip.CRC32;
import org.apache.spark.sql.catalyst.InternalRow;

/**
 * The keys of the indexed columns of one file, each once for each block of rows.
 *
 * <p>framework/index/database/collected_keys.py says how its bytes are made up.
 */
public final class KeyCollector {
  private static final long MAGIC = 0x31305359454B474CL; // LGKEYS01
  private static final int HEAD_BYTES = 28;
  private static final int SUM_BYTES = 4;

  private final long blockRows;
  private final int[] ordinals;
  private final ColumnKeys[] columns;
  private long rows;
  private long left;
  private int block = -1;

  KeyCollector(KeyPlan plan) {
    List<KeyPlan.Column> asked = plan.columns();
    this.blockRows = plan.blockRows();
    this.ordinals = asked.stream().mapToInt(KeyPlan.Column::ordinal).toArray();
    this.columns = asked.stream().map(ColumnKeys::of).toArray(ColumnKeys[]::new);
  }

  /** Takes in a row of the file, whose table columns begin at {@code offset}. */
  public void add(InternalRow row, int offset) {
    if (left == 0) {
      endBlock();
      block++;
      left = blockRows;
    }
    left--;
    rows++;
    for (int i = 0; i < columns.length; i++) {
      columns[i].add(row, offset + ordinals[i]);
    }
  }

  private void endBlock() {
    if (block >= 0) {
      for (ColumnKeys column : columns) {
        column.endBlock(block);
      }
    }
  }

  /** Returns the bytes of all keys, null if every column was left out. */
  public byte[] finish() {
    endBlock();
    int blocks = Math.max(1, block + 1);
    long size = HEAD_BYTES + SUM_BYTES;
    boolean any = false;
    for (ColumnKeys column : columns) {
      size += column.size(blocks);
      any |= !column.isLeftOut();
    }
    if (!any || size > KeyRuns.MOST_BYTES) {
      return null;
    }
    Bytes out = new Bytes((int) size);
    out.putLong(MAGIC);
    out.putLong(rows);
    out.putLong(blockRows);
    out.putInt(columns.length);
    for (ColumnKeys column : columns) {
      column.write(out, blocks);
    }
    CRC32 sum = new CRC32();
    sum.update(out.array(), 0, out.size());
    out.putInt((int) sum.getValue());
    return out.toByteArray();
  }
}
