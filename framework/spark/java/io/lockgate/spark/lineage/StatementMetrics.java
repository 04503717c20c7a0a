package io.lockgate.spark.lineage;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.write.Committed;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.execution.DataSourceScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.command.DataWritingCommandExec;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanExecBase;
import org.apache.spark.sql.execution.metric.SQLMetric;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Rows and bytes that a statement read and wrote, by metrics of its plans and by its commits; null
 * where those do not say it.
 */
final class StatementMetrics {
  private static final String ROWS = "numOutputRows";
  private static final List<String> FIELDS =
      List.of("rows_read", "bytes_read", "rows_written", "bytes_written");

  /** Leaves with rows that were read before, perhaps by another statement. */
  private static final Set<String> HIDDEN =
      Set.of("RDDScanExec", "ExternalRDDScanExec", "InMemoryTableScanExec", "HiveTableScanExec");

  /** A sum, unknown before the first value, and after one that is unknown. */
  private static final class Sum {
    private long value;
    private boolean isKnown;
    private boolean isIncomplete;

    void add(Long more) {
      isIncomplete |= more == null;
      isKnown = true;
      value += more == null ? 0 : more;
    }

    void writeTo(ObjectNode run, String field) {
      run.put(field, isKnown && !isIncomplete ? (Long) value : null);
    }
  }

  private final Set<SparkPlan> walked = Collections.newSetFromMap(new IdentityHashMap<>());
  private final Sum rowsRead = new Sum();
  private final Sum bytesRead = new Sum();
  private final Sum rowsWritten = new Sum();
  private final Sum bytesWritten = new Sum();

  private StatementMetrics() {}

  /** Puts nulls, which is all that is known of several statements in one plan. */
  static void unknown(ObjectNode run) {
    FIELDS.forEach(run::putNull);
  }

  /**
   * Puts the amounts of an execution, with those inside of it and all their commits, into a run.
   */
  static void put(
      ObjectNode run, Execution execution, List<Execution> nested, List<Committed.Commit> commits) {
    StatementMetrics amounts = new StatementMetrics();
    // A plan that failed may not be there, and to ask for it would make it.
    if (execution.error() == null) {
      amounts.walk(execution.plans().executedPlan());
      nested.stream()
          .filter(inner -> inner.error() == null)
          .forEach(inner -> amounts.walk(inner.plans().executedPlan()));
    }
    commits.forEach(amounts::commit);
    amounts.rowsRead.writeTo(run, "rows_read");
    amounts.bytesRead.writeTo(run, "bytes_read");
    amounts.rowsWritten.writeTo(run, "rows_written");
    amounts.bytesWritten.writeTo(run, "bytes_written");
  }

  /** Adds the amounts of the batches before to those of a batch. */
  static void add(ObjectNode run, ObjectNode before) {
    for (String field : FIELDS) {
      JsonNode one = before.get(field);
      JsonNode other = run.get(field);
      run.put(
          field, one.isNull() || other.isNull() ? null : (Long) (one.asLong() + other.asLong()));
    }
  }

  private void commit(Committed.Commit commit) {
    // Without them it has replaced or dropped files, and written none.
    if (commit.rows() != null) {
      rowsWritten.add(commit.rows());
      bytesWritten.add(commit.bytes());
    }
  }

  private void walk(SparkPlan plan) {
    if (!walked.add(plan)) {
      return;
    }
    if (plan instanceof AdaptiveSparkPlanExec adaptive) {
      walk(adaptive.executedPlan());
    } else if (plan instanceof QueryStageExec stage) {
      walk(stage.plan());
    } else if (isScan(plan)) {
      rowsRead.add(metric(plan, ROWS));
      Long bytes = metric(plan, "bytes");
      bytesRead.add(bytes == null ? metric(plan, "filesSize") : bytes);
    } else if (HIDDEN.contains(plan.getClass().getSimpleName())) {
      rowsRead.add(null);
      bytesRead.add(null);
    } else if (plan instanceof DataWritingCommandExec) {
      rowsWritten.add(metric(plan, ROWS));
      bytesWritten.add(metric(plan, "numOutputBytes"));
    }
    CollectionConverters.asJava(plan.children()).forEach(this::walk);
    CollectionConverters.asJava(plan.subqueries()).forEach(this::walk);
  }

  private static boolean isScan(SparkPlan plan) {
    return plan instanceof DataSourceV2ScanExecBase
        || plan instanceof DataSourceScanExec
        || plan.getClass().getSimpleName().equals("DriverScanExec");
  }

  private static Long metric(SparkPlan plan, String name) {
    Option<SQLMetric> found = plan.metrics().get(name);
    return found.isDefined() ? (Long) found.get().value() : null;
  }
}
