package io.lockgate.spark.rules;

import io.lockgate.spark.catalog.LockgateTable;
import io.lockgate.spark.scan.LockgateScan;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.write.RowLevelOperationTable;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec;
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.WriteToDataSourceV2;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Makes a query's scans of the table that it writes strict, through whatever catalog: without a key
 * such a query would store masks in place of values. Also notes the snapshot that the query reads,
 * so that the write fails if others have since changed what it replaces.
 *
 * <p>An optimizer rule, since only there a query shows both what it reads and what it writes. It
 * changes one plan: DELETE without a condition, which Spark cannot run on a table with a CHAR
 * column, because it puts what fills up CHAR between the two.
 */
public final class Rewrites extends Rule<LogicalPlan> {
  static final Rewrites RULE = new Rewrites();

  private Rewrites() {}

  @Override
  @SuppressWarnings("deprecation") // streams still write by WriteToDataSourceV2
  public LogicalPlan apply(LogicalPlan plan) {
    if (plan instanceof DeleteFromTable delete
        && delete.condition().equals(Literal.TrueLiteral())
        && delete.table() instanceof Project project
        && project.child() instanceof DataSourceV2ScanRelation read
        && ours(read.relation().table()) != null) {
      return new DeleteFromTable(read, delete.condition());
    }
    FlowCheck.look(plan);
    if (plan instanceof V2WriteCommand write
        && write.table() instanceof DataSourceV2Relation written) {
      logical(write.query(), written.table());
    } else if (plan instanceof WriteToDataSourceV2 stream && stream.relation().isDefined()) {
      logical(stream.query(), stream.relation().get().table());
    } else {
      // FROM ... INSERT INTO ... INSERT INTO ... is several writes side by side.
      CollectionConverters.asJava(plan.children()).forEach(this::apply);
    }
    return plan;
  }

  private static LockgateTable ours(Table table) {
    Table inner = table instanceof RowLevelOperationTable rows ? rows.table() : table;
    return inner instanceof LockgateTable lockgate ? lockgate : null;
  }

  private static boolean same(Scan scan, Table written) {
    LockgateTable table = ours(written);
    return table != null
        && table.id() != null
        && scan instanceof LockgateScan ours
        && table.ids().contains(ours.table().id());
  }

  private static void logical(LogicalPlan plan, Table written) {
    if (ours(written) == null) {
      return;
    }
    if (plan instanceof DataSourceV2ScanRelation read && same(read.scan(), written)) {
      LockgateScan scan = (LockgateScan) read.scan();
      scan.requireStrict();
      if (!scan.timeTravel()) {
        ours(written).computedFrom(scan.table());
      }
    } else if (plan instanceof InMemoryRelation cached) {
      physical(cached.cachedPlan(), written);
    }
    CollectionConverters.asJava(plan.children()).forEach(child -> logical(child, written));
    CollectionConverters.asJava(plan.subqueries()).forEach(query -> logical(query, written));
  }

  /**
   * Looks into what a cached DataFrame was made of: its rows are there already, so it is refused if
   * it holds masks.
   */
  private static void physical(SparkPlan plan, Table written) {
    if (plan instanceof BatchScanExec read && same(read.scan(), written)) {
      ((LockgateScan) read.scan()).requireKeys();
    } else if (plan instanceof DriverScanExec read && same(read.scan(), written)) {
      read.scan().requireKeys();
    } else if (plan instanceof AdaptiveSparkPlanExec adaptive) {
      physical(adaptive.executedPlan(), written);
    } else if (plan instanceof QueryStageExec stage) {
      physical(stage.plan(), written);
    } else if (plan instanceof InMemoryTableScanExec cached) {
      physical(cached.relation().cachedPlan(), written);
    }
    CollectionConverters.asJava(plan.children()).forEach(child -> physical(child, written));
    CollectionConverters.asJava(plan.subqueries()).forEach(query -> physical(query, written));
  }
}
