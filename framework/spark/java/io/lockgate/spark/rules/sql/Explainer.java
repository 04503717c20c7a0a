package io.lockgate.spark.rules.sql;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.RequestSessions;
import io.lockgate.spark.enforcement.Barrier;
import io.lockgate.spark.rules.UnpushedFilters;
import io.lockgate.spark.rules.results.ResultCacheRule;
import io.lockgate.spark.scan.LockgateScan;
import io.lockgate.spark.scan.Reported;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.CommandExecutionMode;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.jdk.javaapi.CollectionConverters;

/** Plans a query without running it. */
public final class Explainer {
  private Explainer() {}

  /**
   * The scans of Lockgate tables in the query, each planned, in the order of the optimized plan, as
   * JSON: {"scans": [{"id", "kept": filters that Spark has not offered}], "governed": the number of
   * relations whose scans policies hide}. The session asks, whichever one this thread used last.
   */
  public static String scans(SparkSession spark, String sql) throws ParseException {
    return RequestSessions.within(spark, () -> planned(spark, sql));
  }

  private static String planned(SparkSession spark, String sql) throws ParseException {
    LogicalPlan parsed = spark.sessionState().sqlParser().parsePlan(sql);
    LogicalPlan optimized =
        ResultCacheRule.without(
            () ->
                spark
                    .sessionState()
                    .executePlan(parsed, CommandExecutionMode.SKIP())
                    .optimizedPlan());
    Set<String> ids = new LinkedHashSet<>();
    Map<String, List<String>> kept = new HashMap<>();
    kept(optimized, kept);
    int governed = visit(optimized, ids);
    ArrayNode scans = Bridge.JSON.createArrayNode();
    for (String id : ids) {
      ObjectNode scan = scans.addObject().put("id", id);
      scan.set("kept", Bridge.JSON.valueToTree(kept.getOrDefault(id, List.of())));
    }
    ObjectNode found = Bridge.object().put("governed", governed);
    found.set("scans", scans);
    return found.toString();
  }

  /**
   * Notes the scans of a plan, and returns how many tables policies hide something of. Their scans
   * have the policies' conditions, and count hidden rows.
   */
  private static int visit(LogicalPlan plan, Set<String> ids) {
    if (plan instanceof Barrier) {
      return 1;
    }
    if (plan instanceof DataSourceV2ScanRelation relation
        && relation.scan() instanceof Reported scan) {
      if (scan instanceof LockgateScan files) {
        files.plan();
      }
      ids.add(scan.scanId());
    }
    int governed = 0;
    for (LogicalPlan query : CollectionConverters.asJava(plan.subqueries())) {
      governed += visit(query, ids);
    }
    for (LogicalPlan child : CollectionConverters.asJava(plan.children())) {
      governed += visit(child, ids);
    }
    return governed;
  }

  private static void kept(LogicalPlan plan, Map<String, List<String>> found) {
    found.putAll(UnpushedFilters.of(plan));
    CollectionConverters.asJava(plan.subqueriesAll())
        .forEach(query -> found.putAll(UnpushedFilters.of(query)));
  }
}
