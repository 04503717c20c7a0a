package io.lockgate.spark.enforcement.parts;

import java.io.IOException;
import java.util.function.Supplier;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.streaming.WriteToStream;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.streaming.sinks.FileStreamSink;

/**
 * The log of a sink of a stream that writes files.
 *
 * <p>Spark makes the log of such a sink before anybody can refuse its stream. Readers of the folder
 * believe an empty log, and no longer see the files that are there.
 */
public final class SinkLog {
  /** The start of the text of a sink, before its folder. */
  private static final String NAME = "FileSink[";

  private SinkLog() {}

  /** The folder of the sink of a stream; null if it is of another kind. */
  public static String folder(WriteToStream stream) {
    String text = stream.sink().toString();
    boolean isOfFiles = stream.sink() instanceof FileStreamSink && text.startsWith(NAME);
    return isOfFiles ? text.substring(NAME.length(), text.length() - 1) : null;
  }

  /**
   * The answer of a decision about a plan; if it refuses a stream, its sink leaves no empty log.
   */
  public static <T> T refusedBy(LogicalPlan plan, Supplier<T> decision) {
    boolean isAllowed = false;
    try {
      T answer = decision.get();
      isAllowed = true;
      return answer;
    } finally {
      if (!isAllowed && plan instanceof WriteToStream stream && folder(stream) != null) {
        forget(new Path(folder(stream), FileStreamSink.metadataDir()));
      }
    }
  }

  /** Deletes the log of a sink, unless there is anything in it. */
  private static void forget(Path log) {
    try {
      log.getFileSystem(SparkSession.active().sessionState().newHadoopConf()).delete(log, false);
    } catch (IOException e) {
      return; // it has entries, and so it was there before
    }
  }
}
