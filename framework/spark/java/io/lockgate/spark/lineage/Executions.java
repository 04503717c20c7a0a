package io.lockgate.spark.lineage;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.write.Committed;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;
import org.apache.spark.sql.catalyst.plans.logical.CommandResult;
import org.apache.spark.sql.catalyst.plans.logical.CreateTableAsSelect;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.streaming.runtime.IncrementalExecution;

/**
 * Makes one process of each statement, though Spark runs several executions for some.
 *
 * <p>Those inside another one wait until that ends: inside a stream's batch they are statements of
 * their own, whose rows the batch's plan explains; inside any other they are a part of it. Used by
 * one thread.
 */
final class Executions {
  private static final int MOST_WAITING = 256;
  private static final int MOST_CHECKPOINTS = 64;
  private static final int MOST_STREAMS = 256;

  /** A running stream: the record of its first batch, and the batches since then. */
  private static final class Stream {
    private final SparkSession session;
    private final ObjectNode line;
    private ObjectNode run;
    private int batches;

    Stream(SparkSession session, ObjectNode line) {
      this.session = session;
      this.line = line;
    }
  }

  private final Map<Long, List<Execution>> waiting = new LinkedHashMap<>();
  private final Deque<LogicalPlan> checkpoints = new ArrayDeque<>();
  private final Map<String, Stream> streams = new LinkedHashMap<>();
  private final BiConsumer<SparkSession, ObjectNode> recorder;

  /** {@code recorder} is given each record, and the session that it is of. */
  Executions(BiConsumer<SparkSession, ObjectNode> recorder) {
    this.recorder = recorder;
  }

  void ended(Execution execution) {
    if (execution.isNested()) {
      wait(execution);
      return;
    }
    List<Execution> inside = waiting.remove(execution.id());
    List<Execution> nested = inside == null ? List.of() : inside;
    if (execution.isBatch()) {
      batch(execution, nested);
    } else {
      record(execution, nested, List.of());
    }
  }

  /** Tells of the batches that have not been told of. */
  void flush() {
    streams.values().forEach(this::tell);
  }

  private void wait(Execution execution) {
    waiting.computeIfAbsent(execution.root(), root -> new ArrayList<>()).add(execution);
    if (waiting.size() > MOST_WAITING) {
      Long oldest = waiting.keySet().iterator().next();
      waiting.remove(oldest).forEach(each -> record(each, List.of(), List.of()));
    }
  }

  // --- statements ---

  private void record(Execution execution, List<Execution> nested, List<LogicalPlan> origins) {
    List<Committed.Commit> commits = commits(execution, nested);
    ObjectNode run = run(execution, commits);
    LogicalPlan analysed = analysed(execution);
    if (analysed == null) {
      recorder.accept(session(execution), LineageReports.failed().set("run", run));
      return;
    }
    if (execution.fetchesResult()) {
      return;
    }
    List<LogicalPlan> plans = new ArrayList<>(origins);
    if (execution.hasHiddenOrigin()) {
      plans.addAll(checkpoints);
    }
    if (execution.isCheckpoint()) {
      remember(analysed);
    }
    List<Statement> statements = statements(execution, analysed);
    for (Statement statement : statements) {
      boolean isNoted = writes(statement) || isWanted(execution);
      if (isNoted && !findsItsTable(analysed, execution, nested)) {
        ObjectNode line = LineageReports.of(statement, plans);
        if (statements.size() == 1) {
          StatementMetrics.put(run, execution, nested, commits);
        }
        line.set("run", run.deepCopy());
        recorder.accept(session(execution), line);
      }
    }
  }

  /** The statements of a plan; columns of some are in the catalog of the session alone. */
  private static List<Statement> statements(Execution execution, LogicalPlan analysed) {
    SparkSession.setActiveSession(session(execution));
    try {
      return Statement.all(analysed);
    } finally {
      SparkSession.clearActiveSession();
    }
  }

  /** Tells whether CREATE TABLE IF NOT EXISTS found a table: then it has written nothing. */
  private static boolean findsItsTable(
      LogicalPlan plan, Execution execution, List<Execution> nested) {
    LogicalPlan command = plan instanceof CommandResult result ? result.commandLogicalPlan() : plan;
    return command instanceof CreateTableAsSelect create
        && create.ignoreIfExists()
        && nested.isEmpty()
        && execution.error() == null;
  }

  /**
   * The analysed plan, or null. A plan that could not be analysed is not asked for: Spark would
   * throw the statement's own exception again, with the stack of this thread in it.
   */
  private static LogicalPlan analysed(Execution execution) {
    return execution.isAnalysed() ? execution.plans().analyzed() : null;
  }

  private static boolean writes(Statement statement) {
    return !statement.kind().equals("SELECT");
  }

  private static boolean isWanted(Execution execution) {
    return "all".equals(LineageListener.mode(execution.confs()));
  }

  private void remember(LogicalPlan plan) {
    checkpoints.addLast(plan);
    if (checkpoints.size() > MOST_CHECKPOINTS) {
      checkpoints.removeFirst();
    }
  }

  private static SparkSession session(Execution execution) {
    return execution.plans().sparkSession();
  }

  /** Commits of an execution and of those inside of it. */
  private static List<Committed.Commit> commits(Execution execution, List<Execution> nested) {
    List<Committed.Commit> found = new ArrayList<>(execution.commits());
    nested.forEach(inner -> found.addAll(inner.commits()));
    return found;
  }

  private static ObjectNode run(Execution execution, List<Committed.Commit> committed) {
    ObjectNode run =
        Bridge.object()
            .put("started", execution.started())
            .put("ended", execution.ended())
            .put("sql", execution.sql())
            .put("description", execution.description())
            .put("reason", execution.confs().get("spark.lockgate.lineage.reason"))
            .put("literals", execution.confs().get("spark.lockgate.lineage.literals"))
            .put("error", execution.error())
            .putNull("stream")
            .put("count", 1);
    StatementMetrics.unknown(run);
    ArrayNode commits = run.putArray("commits");
    for (Committed.Commit each : committed) {
      commits.addObject().setAll(commit(each));
    }
    return run;
  }

  private static ObjectNode commit(Committed.Commit commit) {
    return Datasets.committed(commit.table()).put("version", commit.snapshot());
  }

  // --- streams ---

  private void batch(Execution execution, List<Execution> nested) {
    IncrementalExecution plans = (IncrementalExecution) execution.plans();
    for (Execution inner : nested) {
      // A sink of Spark's own runs the batch's plan inside of it; a function runs others.
      if (!inner.isBatch()) {
        record(inner, List.of(), List.of(query(plans.analyzed())));
      }
    }
    String id = plans.runId().toString();
    Stream stream = streams.get(id);
    if (stream == null) {
      Statement statement = Statement.of(plans.analyzed());
      if (statement == null || !statement.kind().equals("STREAM")) {
        return;
      }
      stream = new Stream(session(execution), LineageReports.of(statement, List.of()));
      streams.put(id, stream);
      if (streams.size() > MOST_STREAMS) {
        tell(streams.remove(streams.keySet().iterator().next()));
      }
    }
    List<Execution> own = nested.stream().filter(Execution::isBatch).toList();
    List<Committed.Commit> commits = commits(execution, own);
    ObjectNode run = run(execution, commits);
    StatementMetrics.put(run, execution, own, commits);
    add(stream, run, plans);
  }

  private static LogicalPlan query(LogicalPlan plan) {
    Statement statement = Statement.of(plan);
    return statement == null || statement.query() == null ? plan : statement.query();
  }

  private static void add(Stream stream, ObjectNode run, IncrementalExecution plans) {
    run.put("stream", plans.queryId().toString());
    run.putNull("description"); // the numbers of the batch
    if (stream.batches > 0) {
      run.set("started", stream.run.get("started"));
      ArrayNode commits = (ArrayNode) run.get("commits");
      ArrayNode before = (ArrayNode) stream.run.get("commits");
      if (!before.isEmpty()) {
        commits.insert(0, before.get(0));
      }
      StatementMetrics.add(run, stream.run);
      if (!stream.run.get("error").isNull()) {
        run.set("error", stream.run.get("error"));
      }
    }
    stream.run = run;
    stream.batches++;
  }

  private void tell(Stream stream) {
    if (stream.batches > 0) {
      ObjectNode line = stream.line.deepCopy();
      line.set("run", stream.run.put("count", stream.batches));
      stream.batches = 0;
      recorder.accept(stream.session, line);
    }
  }
}
