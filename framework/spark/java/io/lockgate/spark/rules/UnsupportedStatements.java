package io.lockgate.spark.rules;

import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.PythonHandle;
import org.apache.spark.sql.catalyst.analysis.ResolvedNamespace;
import org.apache.spark.sql.catalyst.plans.logical.AnalyzeTables;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/** Refuses statements for which Spark has no plan, and says only that it has a bug. */
public final class UnsupportedStatements extends AbstractFunction1<LogicalPlan, BoxedUnit> {
  public static final UnsupportedStatements CHECK = new UnsupportedStatements();

  private UnsupportedStatements() {}

  @Override
  public BoxedUnit apply(LogicalPlan plan) {
    if (plan instanceof AnalyzeTables analyze
        && analyze.child() instanceof ResolvedNamespace namespace
        && namespace.catalog() instanceof PythonHandle) {
      throw Bridge.failure(
          "ANALYZE TABLES is not supported in catalog "
              + namespace.catalog().name()
              + ": its tables have statistics for each file, which are written with it");
    }
    return BoxedUnit.UNIT;
  }
}
