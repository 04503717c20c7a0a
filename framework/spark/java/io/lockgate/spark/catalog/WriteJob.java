package io.lockgate.spark.catalog;

import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.Predicates;
import io.lockgate.spark.bridge.Values;
import io.lockgate.spark.files.FileColumns;
import io.lockgate.spark.files.SentConfiguration;
import io.lockgate.spark.messages.BeginRequest;
import io.lockgate.spark.messages.EndRequest;
import io.lockgate.spark.messages.Message;
import io.lockgate.spark.messages.Operations;
import io.lockgate.spark.messages.WriteRequest;
import io.lockgate.spark.messages.WriteSpec;
import io.lockgate.spark.scan.LockgateScan;
import io.lockgate.spark.write.Committed;
import io.lockgate.spark.write.TaskWriter.FilesWritten;
import io.lockgate.spark.write.Writers;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
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

  private WriteRequest request(Long epoch, Long baseSnapshot, String baseCommit) {
    return new WriteRequest(
        table.request(info.options()),
        mode,
        info.queryId(),
        epoch,
        Predicates.toJson(overwritten),
        table.snapshotId(),
        baseSnapshot,
        baseCommit);
  }

  /**
   * Begin the write; fails before any task runs if the table cannot take these rows or a key is
   * missing.
   */
  WriteSpec begin() {
    return begin(null);
  }

  /** Begin the write of the batch that a stream runs. */
  WriteSpec beginBatch() {
    String epoch = SparkSession.active().sparkContext().getLocalProperty("streaming.sql.batchId");
    return begin(epoch == null ? null : Long.valueOf(epoch));
  }

  private WriteSpec begin(Long epoch) {
    WriteRequest request = request(epoch, table.baseSnapshot(), table.baseCommit());
    WriteSpec reply =
        Bridge.ask(Operations.WRITE_BEGIN, new BeginRequest(request, Values.typeToJson(written())));
    writeId = reply.writeId();
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

  Writers writers(WriteSpec reply, PhysicalWriteInfo written) {
    SparkSession spark = SparkSession.active();
    return new Writers(
        io.lockgate.spark.write.WriteSpec.of(reply, written.numPartitions()),
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
    EndRequest request = end(epoch, messages);
    if (rewritten != null) {
      LockgateScan scan = rewritten.get();
      request =
          request
              .withWriteRequest(request(epoch, scan.snapshotId(), table.snapshotCommit()))
              .withReplaced(scan.fileNames());
    }
    Committed.note(
        table.request(), Bridge.ask(Operations.WRITE_COMMIT, request), request.messages());
    CachedPlans.refreshTable(table.request());
  }

  void abort(Long epoch, WriterCommitMessage[] messages) {
    if (writeId != null) {
      Bridge.ask(Operations.WRITE_ABORT, end(epoch, messages));
    }
  }

  private EndRequest end(Long epoch, WriterCommitMessage[] messages) {
    WriteRequest request =
        marks
            ? request(epoch, table.snapshotId(), table.snapshotCommit())
            : request(epoch, table.baseSnapshot(), table.baseCommit());
    List<Message> written = new ArrayList<>();
    for (WriterCommitMessage message : messages) {
      if (message != null) {
        // A message of another class means two class loaders of this jar: fail, since skipping it
        // would lose rows.
        written.addAll(((FilesWritten) message).messages());
      }
    }
    return new EndRequest(request, writeId, null, written);
  }
}
