package io.lockgate.spark.write;

import io.lockgate.spark.messages.FileMessage;
import io.lockgate.spark.messages.Message;
import io.lockgate.spark.messages.TableRequest;
import io.lockgate.spark.messages.WrittenFileJson;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.ToLongFunction;
import org.apache.spark.sql.classic.SparkSession;

/** The snapshots that executions of SQL have made, until they are taken; old ones are dropped. */
public final class Committed {
  private static final int MOST = 2_000;

  private static final Map<Long, List<Commit>> BY_EXECUTION =
      new LinkedHashMap<>() {
        @Override
        protected boolean removeEldestEntry(Map.Entry<Long, List<Commit>> eldest) {
          return size() > MOST;
        }
      };

  /** A snapshot of a table; rows and bytes are null where no files were written for it. */
  public record Commit(TableRequest table, long snapshot, Long rows, Long bytes) {}

  private Committed() {}

  /**
   * Notes what the execution of this thread has committed to a table, since Spark does not say it;
   * {@code answer} has no snapshot if there was nothing to commit.
   */
  public static void note(TableRequest table, io.lockgate.spark.messages.Committed answer) {
    note(table, answer, null, null);
  }

  /** Notes it with the rows and bytes of the files that were written for it. */
  public static void note(
      TableRequest table, io.lockgate.spark.messages.Committed answer, List<Message> messages) {
    note(table, answer, sum(messages, WrittenFileJson::rows), sum(messages, WrittenFileJson::size));
  }

  private static void note(
      TableRequest table, io.lockgate.spark.messages.Committed answer, Long rows, Long bytes) {
    String id = SparkSession.active().sparkContext().getLocalProperty("spark.sql.execution.id");
    if (id == null || answer.snapshotId() == null) {
      return;
    }
    synchronized (BY_EXECUTION) {
      BY_EXECUTION
          .computeIfAbsent(Long.parseLong(id), key -> new ArrayList<>())
          .add(new Commit(table, answer.snapshotId(), rows, bytes));
    }
  }

  /** Adds up what files hold; other messages mark rows of files that are there. */
  private static long sum(List<Message> messages, ToLongFunction<WrittenFileJson> value) {
    return messages.stream()
        .filter(FileMessage.class::isInstance)
        .mapToLong(message -> value.applyAsLong(((FileMessage) message).file()))
        .sum();
  }

  /** Takes what an execution has committed. */
  public static List<Commit> take(long execution) {
    synchronized (BY_EXECUTION) {
      List<Commit> found = BY_EXECUTION.remove(execution);
      return found == null ? List.of() : found;
    }
  }
}
