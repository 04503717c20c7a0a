package io.lockgate.spark.enforcement;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.enforcement.parts.PlanWalk;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;

/**
 * The rights that a plan was made under.
 *
 * @param planned those to each relation that is read; null if nothing of it was hidden
 */
record RunRights(Map<ObjectNode, String> planned) {
  /** The rights to all that a plan reads; null if there is nothing to ask about. */
  static RunRights of(LogicalPlan plan) {
    Map<ObjectNode, String> found = new LinkedHashMap<>();
    note(plan, found);
    return found.isEmpty() ? null : new RunRights(found);
  }

  private static void note(LogicalPlan plan, Map<ObjectNode, String> found) {
    new PlanWalk(
            each -> {
              Barrier.ProtectedRelation guarded = Barrier.guardOf(each);
              LogicalPlan leaf =
                  each instanceof DataSourceV2ScanRelation scan ? scan.relation() : each;
              ObjectNode relation =
                  each.isStreaming() || guarded != null ? null : Relations.describe(leaf);
              if (guarded != null && !each.isStreaming()) {
                found.put(guarded.relation(), guarded.rights());
              } else if (each instanceof InMemoryRelation cached) {
                note(cached.cacheBuilder().logicalPlan(), found);
              } else if (relation != null) {
                found.put(relation, null);
              }
              return guarded != null ? each : null;
            })
        .over(plan);
  }

  /** Ends a query under other rights than its plan was made under. */
  void ask() {
    planned.forEach((relation, rights) -> Govern.rightsHold(relation, rights));
  }
}
