package io.lockgate.spark.index;

import io.lockgate.spark.messages.IndexKeyColumn;
import io.lockgate.spark.messages.IndexKeys;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.types.DataType;

/**
 * The keys that tasks collect of each file for the index database, as write.begin says; up to
 * {@code inlineBytes} of a task's keys travel in its message, others in files of {@code folder}.
 */
public record KeyPlan(String folder, long blockRows, long inlineBytes, List<Column> columns)
    implements Serializable {
  // More in one message would not pay: a file takes the driver one request.
  private static final long MOST_INLINE_BYTES = 64 << 10;

  /**
   * A column by its ordinal in the table, with its type and the names of its kind of index and kind
   * of values.
   */
  record Column(int ordinal, DataType type, String kind, String values) implements Serializable {}

  /**
   * Reads what one of {@code tasks} collects of a table with columns of some {@code names} and
   * {@code types}; null if that is nothing.
   */
  public static KeyPlan of(IndexKeys asked, List<String> names, List<DataType> types, int tasks) {
    if (asked == null) {
      return null;
    }
    List<Column> columns = new ArrayList<>();
    for (IndexKeyColumn each : asked.columns()) {
      int ordinal = names.indexOf(each.column());
      columns.add(new Column(ordinal, types.get(ordinal), each.kind(), each.values()));
    }
    long share = asked.inlineBytes() / Math.max(1, tasks);
    return new KeyPlan(
        asked.folder(),
        asked.blockRows(),
        Math.min(MOST_INLINE_BYTES, share),
        List.copyOf(columns));
  }

  /** Begins a file. */
  public KeyCollector collector() {
    return new KeyCollector(this);
  }
}
