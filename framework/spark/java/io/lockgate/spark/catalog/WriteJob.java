package io.lockgate.spark.catalog;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.Predicates;
import io.lockgate.spark.bridge.Values;
import io.lockgate.spark.files.FileColumns;
import io.lockgate.spark.files.SentConfiguration;
import io.lockgate.spark.scan.LockgateScan;
import io.lockgate.spark.write.Committed;
import io.lockgate.spark.write.TaskWriter.FilesWritten;
import io.lockgate.spark.write.WriteSpec;
import io.lockgate.spark.write.Writers;
import java.util.Arrays;
import java.util.function.Supplier;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** One write of one query (or of one epoch of a stream): begun, committed or aborted in Python. */
final class WriteJob {
  /** A write that ends as its job does. */
  interface Batch extends BatchWrite {
    WriteJob job();

    @Override
    default void commit(WriterCommitMessage[] messages) {
      job().commit(null, messages);
    }

    @Override
    default void abort(WriterCommitMessage[] messages) {
      job().abort(null, messages);
    }
  }

  private final LockgateTable table;
  private final LogicalWriteInfo info;
  private String mode;
  private Predicate[] overwritten = new Predicate[0];
  private String writeId;
  private Supplier<LockgateScan> rewritten;
  private boolean marks;

  WriteJob(LockgateTable table, LogicalWriteInfo info, String mode) {
    this.table = table;
    this.info = info;
    this.mode = mode;
  }

  void mode(String mode, Predicate[] overwritten) {
    this.mode = mode;
    this.overwritten = overwritten;
  }

  /** The files that a scan has read are written again: what is committed takes their place. */
  void rewrites(Supplier<LockgateScan> scan) {
    mode = "rewrite";
    rewritten = scan;
  }

  /** Rows of the table, as it was read, are deleted where they lie. */
  void marks() {
    marks = true;
  }

  boolean hasOption(String key) {
    return info.options().containsKey(key);
  }

  private ObjectNode request() {
    ObjectNode request =
        table.request(info.options()).put("mode", mode).put("query_id", info.queryId());
    request.set("filters", Predicates.toJson(overwritten));
    request.put("snapshot_id", table.snapshotId());
    request.put("base_snapshot_id", table.baseSnapshot());
    request.put("base_commit_id", table.baseCommit());
    return request;
  }

  /**
   * Begin the write; fails before any task runs if the table cannot take these rows or a key is
   * missing.
   */
  JsonNode begin() {
    return begin(null);
  }

  /** Begin the write of the batch that a stream runs. */
  JsonNode beginBatch() {
    String epoch = SparkSession.active().sparkContext().getLocalProperty("streaming.sql.batchId");
    return begin(epoch == null ? null : Long.valueOf(epoch));
  }

  private JsonNode begin(Long epoch) {
    ObjectNode request = request().put("epoch", epoch);
    request.set("schema", Values.typeToJson(written()));
    JsonNode reply = Bridge.ask("write.begin", request);
    writeId = reply.get("write_id").asText();
    return reply;
  }

  /**
   * The columns that come; those that say where a changed row was, which Spark sends along, are not
   * written.
   */
  private StructType written() {
    boolean changes = mode.equals("rewrite") || mode.equals("delete");
    return new StructType(
        Arrays.stream(info.schema().fields())
            .filter(field -> !changes || !FileColumns.has(field.name(), table.structType()))
            .toArray(StructField[]::new));
  }

  Writers writers(JsonNode reply, PhysicalWriteInfo written) {
    SparkSession spark = SparkSession.active();
    return new Writers(
        WriteSpec.of(reply, written.numPartitions()),
        SentConfiguration.of(spark),
        table.structType(),
        info.schema(),
        ordinals());
  }

  /**
   * Positions of the table's columns in the rows that come: Spark does not order those of a stream.
   */
  private int[] ordinals() {
    StructType incoming = info.schema();
    StructField[] fields = table.structType().fields();
    if (incoming.isEmpty()) {
      return new int[0]; // a DELETE sends no rows
    }
    int[] out = new int[fields.length];
    for (int i = 0; i < out.length; i++) {
      out[i] = ordinal(incoming, fields[i]);
    }
    return out;
  }

  private int ordinal(StructType schema, StructField field) {
    for (int i = 0; i < schema.length(); i++) {
      if (schema.apply(i).name().equalsIgnoreCase(field.name())) {
        return i;
      }
    }
    if (mergesSchema(info) && field.nullable()) {
      return Writers.ABSENT;
    }
    throw Bridge.failure("Column '" + field.name() + "' is missing in the rows to be written");
  }

  /** Says that the writer of a stream wants the table to have the columns of its rows too. */
  static boolean mergesSchema(LogicalWriteInfo info) {
    return info.options().getBoolean("write.merge-schema", false);
  }

  void commit(Long epoch, WriterCommitMessage[] messages) {
    ObjectNode request = end(epoch, messages);
    if (rewritten != null) {
      request.put("base_snapshot_id", rewritten.get().snapshotId());
      request.put("base_commit_id", table.snapshotCommit());
      request.set("replaced", rewritten.get().fileNames());
    }
    JsonNode answer = Bridge.ask("write.commit", request);
    Committed.note(table.request(), answer, request.get("messages"));
    CachedPlans.refreshTable(table.request());
  }

  void abort(Long epoch, WriterCommitMessage[] messages) {
    if (writeId != null) {
      Bridge.ask("write.abort", end(epoch, messages));
    }
  }

  private ObjectNode end(Long epoch, WriterCommitMessage[] messages) {
    ObjectNode request = request().put("write_id", writeId).put("epoch", epoch);
    request.putNull("replaced");
    if (marks) {
      request
          .put("base_snapshot_id", table.snapshotId())
          .put("base_commit_id", table.snapshotCommit());
    }
    ArrayNode files = request.putArray("messages");
    for (WriterCommitMessage message : messages) {
      if (message != null) {
        // A message of another class means two class loaders of this jar: fail, since skipping it
        // would lose rows.
        add(files, ((FilesWritten) message).json());
      }
    }
    return request;
  }

  private static void add(ArrayNode files, String json) {
    try {
      Bridge.JSON.readTree(json).forEach(files::add);
    } catch (JsonProcessingException e) {
      throw new IllegalStateException(e);
    }
  }
}
