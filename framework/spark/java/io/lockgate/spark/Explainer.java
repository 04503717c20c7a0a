package io.lockgate.spark;

import java.util.LinkedHashSet;
import java.util.Set;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.CommandExecutionMode;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.runtime.BoxedUnit;

/** Plans a query without running it. */
public final class Explainer {
  private Explainer() {}

  /** A scan that Python has a report of. */
  interface Reported {
    String scanId();
  }

  /** The ids of the scans of Lockgate tables in the query, each planned, in the order of the optimized plan. */
  public static String[] scans(SparkSession spark, String sql) throws Exception {
    LogicalPlan parsed = spark.sessionState().sqlParser().parsePlan(sql);
    LogicalPlan optimized =
        spark.sessionState().executePlan(parsed, CommandExecutionMode.SKIP()).optimizedPlan();
    Set<String> ids = new LinkedHashSet<>();
    optimized.foreachWithSubqueries(
        node -> {
          if (node instanceof DataSourceV2ScanRelation relation && relation.scan() instanceof Reported scan) {
            if (scan instanceof LockgateScan files) {
              files.plan();
            }
            ids.add(scan.scanId());
          }
          return BoxedUnit.UNIT;
        });
    return ids.toArray(new String[0]);
  }
}
