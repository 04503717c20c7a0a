package io.lockgate.spark.enforcement;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.Failure;
import io.lockgate.spark.bridge.RequestSessions;
import io.lockgate.spark.bridge.Users;
import io.lockgate.spark.enforcement.parts.PlanWalk;
import io.lockgate.spark.enforcement.parts.StatementText;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.AnalysisContext;
import org.apache.spark.sql.catalyst.analysis.RelationTimeTravel;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTable;
import org.apache.spark.sql.catalyst.plans.logical.AlterTableCommand;
import org.apache.spark.sql.catalyst.plans.logical.CacheTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;

/**
 * Refuses statements that are wrong, and name a relation of which their user may see nothing,
 * before Spark's own error shows its columns.
 *
 * <p>Most errors wait for {@link Govern}, which refuses first. Some do not: a column that {@code
 * USING}, {@code EXCEPT}, {@code ALTER TABLE} or {@code INSERT} does not find ends the analysis at
 * once, with all columns that there are. So {@link Holding} marks relations before anything is
 * resolved, and {@link Resolving} takes the marks off.
 */
public final class EarlyRights {
  private static final int MOST_NAMES = 10_000;

  /**
   * Names by which users have found what they may see. A right that was taken away since then shows
   * columns that its user knew.
   */
  private static final Set<String> SEEN = Collections.synchronizedSet(new LinkedHashSet<>());

  private EarlyRights() {}

  private static boolean isOff(SparkSession session) {
    return RequiredColumns.active() != null || !Govern.decides(session);
  }

  /** Marks the relations that a statement names. */
  public static final class Holding extends Rule<LogicalPlan> {
    private final SparkSession session;

    /** For one session. */
    public Holding(SparkSession session) {
      this.session = session;
    }

    @Override
    public LogicalPlan apply(LogicalPlan plan) {
      return isOff(session) ? plan : held(plan);
    }

    private LogicalPlan held(LogicalPlan plan) {
      if (plan instanceof UnresolvedRelation relation) {
        String name = name(relation);
        return SEEN.contains(name) ? plan : new HeldRelation(plan, name);
      } else if (plan instanceof RelationTimeTravel) {
        return new HeldRelation(plan, null);
      } else if (plan instanceof AlterTableCommand alter
          && alter.table() instanceof UnresolvedTable table) {
        return plan.mapChildren(each -> each == table ? new HeldRelation(each, null) : each);
      }
      boolean isDone =
          plan.analyzed() || plan instanceof HeldRelation || plan instanceof CacheTable;
      return isDone ? plan : plan.mapChildren(this::held);
    }

    private String name(UnresolvedRelation relation) {
      AnalysisContext context = AnalysisContext.get();
      return String.join(
          "\n",
          RequestSessions.nameOf(session),
          Users.current(),
          session.sessionState().catalogManager().currentCatalog().name(),
          String.join(".", session.sessionState().catalogManager().currentNamespace()),
          context.catalogAndNamespace().mkString("."),
          relation.multipartIdentifier().mkString("\0"));
    }
  }

  /** Asks about marked relations as they are resolved, and takes the marks off. */
  public static final class Resolving extends Rule<LogicalPlan> {
    private final SparkSession session;

    /** For one session. */
    public Resolving(SparkSession session) {
      this.session = session;
    }

    @Override
    public LogicalPlan apply(LogicalPlan plan) {
      List<HeldRelation> held = new ArrayList<>();
      LogicalPlan bare = released(plan, held);
      if (held.isEmpty()) {
        return plan;
      }
      Map<ObjectNode, Set<String>> refused = refused(plan, held);
      if (refused.isEmpty()) {
        if (SEEN.size() > MOST_NAMES) {
          SEEN.clear();
        }
        held.stream().map(HeldRelation::name).filter(each -> each != null).forEach(SEEN::add);
      } else {
        analyze(bare, refused);
      }
      return bare;
    }

    private LogicalPlan released(LogicalPlan plan, List<HeldRelation> held) {
      if (plan instanceof HeldRelation one && one.child().resolved()) {
        held.add(one);
        return one.child();
      }
      return plan.analyzed() ? plan : plan.mapChildren(each -> released(each, held));
    }

    private Map<ObjectNode, Set<String>> refused(LogicalPlan plan, List<HeldRelation> held) {
      String user = Users.current();
      Statements statements = new Statements(session);
      List<ObjectNode> relations = new ArrayList<>();
      Map<ObjectNode, Set<String>> refused = new LinkedHashMap<>();
      ObjectNode request = Bridge.object();
      ArrayNode asked = request.putArray("relations");
      ArrayNode nodes = request.putArray("nodes");
      for (HeldRelation each : held) {
        if (each.child() instanceof ResolvedTable) {
          nodes.add(statements.describeNamed(each.child()).put("node", "AlteredName"));
        } else {
          new PlanWalk(inner -> noted(inner, user, relations, refused)).over(each.child());
        }
      }
      if (relations.isEmpty() && nodes.isEmpty()) {
        return refused;
      }
      relations.forEach(asked::add);
      request.putArray("settings");
      request.putArray("guarded");
      request.put("statement", StatementText.start(plan, StatementText.LONGEST));
      JsonNode answers = Bridge.ask("governance.decide", request).get("relations");
      for (int i = 0; i < relations.size(); i++) {
        if (answers.get(i).get("refused").asBoolean()) {
          refused.put(relations.get(i), Set.of());
        }
      }
      return refused;
    }

    private static LogicalPlan noted(
        LogicalPlan plan,
        String user,
        List<ObjectNode> relations,
        Map<ObjectNode, Set<String>> refused) {
      Barrier barrier = Barrier.of(plan);
      ObjectNode found = Govern.relation(plan, user);
      if (found != null && !found.get("kind").asText().equals("system")) {
        relations.add(found);
      } else if (barrier != null && barrier.guarded().refused()) { // of a view
        refused.put(barrier.guarded().relation(), Set.of());
      }
      return found != null || barrier != null ? plan : null;
    }

    /**
     * Tries the rest of the analysis, whose refusal names columns and all relations, and takes the
     * place of any other error.
     */
    private void analyze(LogicalPlan plan, Map<ObjectNode, Set<String>> refused) {
      try {
        session
            .sessionState()
            .analyzer()
            .org$apache$spark$sql$catalyst$analysis$Analyzer$$executeSameContext(plan.clone());
      } catch (Exception e) {
        if (e instanceof Failure ours && "AccessDeniedError".equals(ours.pythonType())) {
          throw Failure.within(ours);
        }
        LastCheck.refuse(refused, false, StatementText.start(plan, StatementText.LONGEST));
      }
    }
  }
}
