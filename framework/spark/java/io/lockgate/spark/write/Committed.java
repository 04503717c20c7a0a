package io.lockgate.spark.write;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.classic.SparkSession;

/** The snapshots that executions of SQL have made, until they are taken; old ones are dropped. */
public final class Committed {
  private static final int MOST = 2_000;

  private static final Map<Long, List<ObjectNode>> BY_EXECUTION =
      new LinkedHashMap<>() {
        @Override
        protected boolean removeEldestEntry(Map.Entry<Long, List<ObjectNode>> eldest) {
          return size() > MOST;
        }
      };

  private Committed() {}

  /**
   * Notes what the execution of this thread has committed to a table, since Spark does not say it;
   * {@code answer} has no snapshot if there was nothing to commit.
   */
  public static void note(ObjectNode table, JsonNode answer) {
    note(table, answer, null);
  }

  /** Notes it with the rows and bytes of the files that were written for it. */
  public static void note(ObjectNode table, JsonNode answer, JsonNode messages) {
    String id = SparkSession.active().sparkContext().getLocalProperty("spark.sql.execution.id");
    JsonNode snapshot = answer.get("snapshot_id");
    if (id == null || snapshot.isNull()) {
      return;
    }
    if (messages != null) {
      table.put("rows", sum(messages, "rows")).put("bytes", sum(messages, "size"));
    }
    synchronized (BY_EXECUTION) {
      BY_EXECUTION
          .computeIfAbsent(Long.parseLong(id), key -> new ArrayList<>())
          .add(table.put("snapshot_id", snapshot.asLong()));
    }
  }

  private static long sum(JsonNode messages, String field) {
    long total = 0;
    for (JsonNode message : messages) {
      // Others mark rows of files that are there.
      if (message.has("file")) {
        total += message.get("file").get(field).asLong();
      }
    }
    return total;
  }

  /** Takes what an execution has committed. */
  public static List<ObjectNode> take(long execution) {
    synchronized (BY_EXECUTION) {
      List<ObjectNode> found = BY_EXECUTION.remove(execution);
      return found == null ? List.of() : found;
    }
  }
}
