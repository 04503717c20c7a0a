package io.lockgate.spark.enforcement.fences;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.enforcement.Govern;
import io.lockgate.spark.enforcement.parts.PlanWalk;
import io.lockgate.spark.enforcement.parts.StatementText;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.analysis.UnresolvedProcedure;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Asks for the right to call a procedure of another catalog, of which nobody knows what it reads
 * and changes.
 *
 * <p>Spark runs a procedure as soon as its name is resolved, before {@link Govern} sees the
 * statement. It analyses the name that IDENTIFIER computes by itself, without a Call above it.
 * Procedures of ours ask for themselves.
 */
public final class ForeignCalls extends Rule<LogicalPlan> {
  private static final String NODE = "ForeignCall";
  private static final String DESCRIPTION = "DescribeProcedureCommand"; // runs nothing
  private static final String OURS = "io.lockgate.spark";

  /** Under it Spark looks for a name of one part in the catalogs that SET PATH names. */
  private static final String PATH = "spark.sql.path.enabled";

  private final SparkSession session;

  /** For one session. */
  public ForeignCalls(SparkSession session) {
    this.session = session;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    List<LogicalPlan> found = new ArrayList<>();
    new PlanWalk(each -> noted(each, found)).over(plan);
    if (!found.isEmpty() && Govern.decides(session)) {
      ObjectNode request = Bridge.object();
      request.put("statement", StatementText.start(plan, StatementText.LONGEST));
      ObjectNode node = request.putArray("nodes").addObject().put("node", NODE);
      node.putNull("setting").putNull("source").putArray("targets");
      node.putArray("locations");
      List.of("relations", "settings", "guarded").forEach(request::putArray);
      Bridge.ask("governance.decide", request);
    }
    return plan;
  }

  /** Null where the walk goes on to the parts. */
  private LogicalPlan noted(LogicalPlan plan, List<LogicalPlan> found) {
    if (plan.nodeName().equals(DESCRIPTION)) {
      return plan;
    }
    if (plan instanceof UnresolvedProcedure named
        && isForeign(CollectionConverters.asJava(named.nameParts()))) {
      found.add(named);
    }
    return null;
  }

  private boolean isForeign(List<String> name) {
    boolean isOnPath =
        name.size() == 1
            && session.sessionState().conf().getConfString(PATH, "false").equalsIgnoreCase("true");
    return isOnPath || !isOurs(catalogOf(name));
  }

  private static boolean isOurs(CatalogPlugin catalog) {
    return catalog.getClass().getPackageName().equals(OURS);
  }

  private CatalogPlugin catalogOf(List<String> name) {
    CatalogManager catalogs = session.sessionState().catalogManager();
    return name.size() > 1 && catalogs.isCatalogRegistered(name.get(0))
        ? catalogs.catalog(name.get(0))
        : catalogs.currentCatalog();
  }
}
