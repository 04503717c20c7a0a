package io.lockgate.spark.governance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.Users;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.classic.SparkSession;

/**
 * Asks Python what the user may see of the relations of a statement, once it is analysed, and puts
 * barriers above those of which something is hidden.
 *
 * <p>What is not hidden stays as it is, so that every way to read it quickly stays too.
 */
public final class Govern extends Rule<LogicalPlan> {
  /** The user who may see all of a relation, as was decided when its statement was analysed. */
  private static final TreeNodeTag<String> OPEN_TO = new TreeNodeTag<>("lockgate.open-to");

  private static final String DECLARED = "spark.lockgate.governed";

  private final SparkSession session;

  /** For one session. */
  public Govern(SparkSession session) {
    this.session = session;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (!isGoverned() || PolicySession.isInside()) {
      return plan;
    }
    String user = Users.current();
    Map<LogicalPlan, ObjectNode> open = new IdentityHashMap<>();
    List<LogicalPlan> order = new ArrayList<>();
    new PlanWalk(each -> collected(each, user, open, order)).over(plan);
    if (order.isEmpty()) {
      return plan;
    }
    ObjectNode request = Bridge.object();
    ArrayNode relations = request.putArray("relations");
    order.forEach(each -> relations.add(open.get(each)));
    JsonNode answers = Bridge.ask("governance.decide", request).get("relations");
    Map<LogicalPlan, JsonNode> decided = new IdentityHashMap<>();
    for (int i = 0; i < order.size(); i++) {
      decided.put(order.get(i), answers.get(i));
    }
    Guard guard = new Guard(session, user);
    return new PlanWalk(each -> guarded(each, user, open, decided, guard)).over(plan);
  }

  /** Before there is a Python, the server's own configuration says it: no user's SET can. */
  private boolean isGoverned() {
    return Bridge.isAttached()
        ? Bridge.isGoverned()
        : session.sparkContext().conf().getBoolean(DECLARED, false);
  }

  /** Notes a relation to ask about; null for a plan that is none, whose parts are looked at. */
  private static LogicalPlan collected(
      LogicalPlan plan, String user, Map<LogicalPlan, ObjectNode> open, List<LogicalPlan> order) {
    ObjectNode described = relation(plan, user);
    if (described != null && open.put(plan, described) == null) {
      order.add(plan);
    }
    return described != null || plan instanceof Barrier ? plan : null;
  }

  private static ObjectNode relation(LogicalPlan plan, String user) {
    if (plan instanceof Barrier barrier) {
      return barrier.guarded().user().equals(user) ? null : barrier.guarded().relation();
    }
    boolean isKnown = plan.getTagValue(OPEN_TO).exists(user::equals);
    return isKnown ? null : Relations.describe(plan);
  }

  private static LogicalPlan guarded(
      LogicalPlan plan,
      String user,
      Map<LogicalPlan, ObjectNode> described,
      Map<LogicalPlan, JsonNode> decided,
      Guard guard) {
    JsonNode answer = decided.get(plan);
    if (answer == null) {
      return plan instanceof Barrier ? plan : null;
    }
    boolean isBarrier = plan instanceof Barrier;
    if (answer.get("restricted").asBoolean() || isBarrier) {
      LogicalPlan relation = isBarrier ? Guard.relationOf((Barrier) plan) : plan;
      return guard.over(relation, Relations.output(plan), described.get(plan), answer);
    }
    // A copy: Spark keeps relations for later statements, but none of streams.
    LogicalPlan seen = plan.isStreaming() ? plan : plan.clone();
    seen.setTagValue(OPEN_TO, user);
    return seen;
  }
}
