package io.lockgate.spark.index;

import com.fasterxml.jackson.databind.JsonNode;
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
  public static KeyPlan of(JsonNode asked, List<String> names, List<DataType> types, int tasks) {
    if (asked.isNull()) {
      return null;
    }
    List<Column> columns = new ArrayList<>();
    for (JsonNode each : asked.get("columns")) {
      int ordinal = names.indexOf(each.get("column").asText());
      columns.add(
          new Column(
              ordinal, types.get(ordinal), each.get("kind").asText(), each.get("values").asText()));
    }
    long share = asked.get("inline_bytes").asLong() / Math.max(1, tasks);
    return new KeyPlan(
        asked.get("folder").asText(),
        asked.get("block_rows").asLong(),
        Math.min(MOST_INLINE_BYTES, share),
        List.copyOf(columns));
  }

  /** Begins a file. */
  public KeyCollector collector() {
    return new KeyCollector(this);
  }
}
